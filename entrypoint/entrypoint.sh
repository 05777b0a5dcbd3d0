#!/usr/bin/env bash
# What runs in every agent container, under tini. It runs the phases of the
# set-up in order and branches on the mode; whatever parses, merges or decides
# is a verb of the guest. It knows no agent by name. Its contract is Params in
# params.go; every fixed path has a variable that points it elsewhere.
set -eu

mode=$AGENT_CONTAINER_MODE
guest=${AGENT_CONTAINER_GUEST:-/usr/local/bin/agent-container-guest}
child=

# A stop during the set-up ends the phase at once and closes the record.
trap 'stopped' TERM INT

stopped() {
	trap '' TERM INT
	[ -z "$child" ] || kill -KILL "$child" 2>/dev/null || true
	exec "$guest" stopped
}

# phases NAME... runs steps in order. A job ends with a failed one; elsewhere it
# is a state that can be looked at: a crash loop would refuse every exec. With 3 a
# step waits for somebody: a job, too.
phases() {
	"$guest" phase "$@" & # in the background: bash answers a signal only while it waits
	child=$!
	wait "$child" || failed $?
	child=
}

failed() {
	[ "$mode" != headless ] || [ "$1" -eq 3 ] || exit "$1"
	exec "$guest" hold
}

phases record gateway environment git ssh config seed agent clone

case $mode in
headless)
	exec "$guest" headless # which also takes over the signals
	;;
interactive)
	phases session
	;;
idle) ;;
*)
	phases mode
	;;
esac

"$guest" status ready
exec "$guest" hold
