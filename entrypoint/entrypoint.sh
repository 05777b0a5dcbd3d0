#!/usr/bin/env bash
# What runs in every agent container, under tini. It runs the phases of the
# set-up in order and branches on the mode; whatever parses, merges or decides
# is a verb of the guest. It knows no agent by name. Its contract is Params in
# params.go; every fixed path has a variable that points it elsewhere.
set -eu

mode=$AGENT_CONTAINER_MODE
guest=${AGENT_CONTAINER_GUEST:-/usr/local/bin/agent-container-guest}

# A stop during the set-up: the record must not stay open.
trap 'stopped' TERM INT

stopped() {
	trap '' TERM INT
	"$guest" record close stopped engine-stop 143 || true
	exit 143
}

# failed PHASE REASON ends the set-up. A job ends with it; elsewhere it is a
# state that can be looked at: a crash loop would refuse every exec.
failed() {
	"$guest" status failed "$1" "$2"
	printf 'agent-container: error: %s failed: %s\n' "$1" "$2" >&2
	"$guest" record close failed set-up 1 "$1 failed: $2" || true
	[ "$mode" != headless ] || exit 1
	exec "$guest" hold
}

# phase NAME COMMAND... runs one step; the last line it says is the reason when
# it fails.
phase() {
	local name=$1 said reason
	shift
	"$guest" status starting "$name"
	if said=$("$@" 2>&1); then
		[ -z "$said" ] || printf '%s\n' "$said" >&2
		return 0
	fi
	[ -z "$said" ] || printf '%s\n' "$said" >&2
	reason=${said##*$'\n'}
	failed "$name" "${reason#agent-container: error: }"
}

start_session() {
	# A restart begins with a fresh session; -A would attach to a dying one.
	"$guest" env tmux new-session -d -s main -n agent -x 200 -y 50 "$guest" interactive &&
		"$guest" env tmux new-window -d -t =main: -n shell
}

phase record "$guest" record open
phase environment "$guest" setup environment
phase git "$guest" setup git
phase config "$guest" setup config
phase seed "$guest" seed
phase agent "$guest" setup agent

case $mode in
headless)
	exec "$guest" headless # which also takes over the signals
	;;
interactive)
	phase session start_session
	;;
idle) ;;
*)
	failed mode "unknown mode $mode"
	;;
esac

"$guest" status ready
exec "$guest" hold
