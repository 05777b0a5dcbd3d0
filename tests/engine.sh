#!/usr/bin/env bash
# Makes sure that a Docker engine with its compose and buildx plugins answers.
# Where one does, it does nothing. On Debian, as root, it installs and starts
# one from Debian's packages; elsewhere it says what to install.
set -euo pipefail

answers() {
	docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1 && docker buildx version >/dev/null 2>&1
}

give_up() {
	printf 'engine: %s\n' "$1" >&2
	printf 'engine: install Docker Engine 20.10 or later with its compose and buildx plugins, start it, then run this again\n' >&2
	exit 1
}

# debian_source CODENAME FILE writes an apt source for CODENAME that uses the
# mirror this machine already uses.
debian_source() {
	local mirror
	# Some of these files may not exist, and there may be no match.
	mirror=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null || true; } |
		sed -n -e 's/^URIs: *\([^ ]*\).*/\1/p' -e 's/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' |
		grep -m 1 -E '/debian/?$' || true)
	[ -n "$mirror" ] || give_up 'no Debian mirror is configured'
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' "$mirror" "$1" >"$2"
}

install_packages() {
	local release='' source=/etc/apt/sources.list.d/agent-container-trixie.sources
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q
	if [ -e "$source" ] || ! apt-cache show docker-buildx >/dev/null 2>&1; then
		# Debian 12: its own docker.io has no compose and no buildx. Debian 13's
		# are pinned low and named one by one, so that nothing else comes from
		# there, libc least of all.
		debian_source trixie "$source"
		printf 'Package: *\nPin: release n=trixie*\nPin-Priority: 100\n' >/etc/apt/preferences.d/agent-container-trixie
		release=/trixie
		apt-get update -q
	fi
	apt-get install -y -q --no-install-recommends debootstrap ca-certificates
	apt-get install -y -q --no-install-recommends "docker.io$release" "docker-cli$release" "docker-compose$release" "docker-buildx$release" && return
	[ -n "$release" ] || return 1
	# On a machine that has some of the newer libraries already, the older
	# dependencies cannot be installed: then all of it comes from Debian 13.
	apt-get install -y -q --no-install-recommends -t trixie docker.io docker-cli docker-compose docker-buildx
}

start_daemon() {
	# All three streams redirected: whoever waits for our output would wait for
	# the daemon's too.
	setsid dockerd >/var/log/agent-container-dockerd.log 2>&1 </dev/null &
	for _ in $(seq 120); do
		docker info >/dev/null 2>&1 && return 0
		sleep 0.5
	done
	tail -n 20 /var/log/agent-container-dockerd.log >&2
	give_up 'dockerd does not answer after 60 s; its last lines are above'
}

if answers; then
	echo 'engine: docker answers'
	exit 0
fi

# shellcheck source=/dev/null
id=$(. /etc/os-release 2>/dev/null && echo "${ID:-}") || id=
[ "$id" = debian ] || give_up 'no Docker engine answers, and this is not Debian'
[ "$(id -u)" = 0 ] || give_up 'no Docker engine answers, and installing one takes root'

if ! command -v dockerd >/dev/null || ! docker compose version >/dev/null 2>&1 || ! docker buildx version >/dev/null 2>&1; then
	install_packages
fi
docker info >/dev/null 2>&1 || start_daemon
answers || give_up 'docker answers without its compose or buildx plugin'
echo 'engine: docker answers'
