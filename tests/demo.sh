#!/usr/bin/env bash
# The demo: a real agent does a real job on a small repository, in a container.
# Without ANTHROPIC_API_KEY the model is a scripted server that runs beside the
# agent; with it, the real one. Everything it makes is below build/demo or
# belongs to a deployment with a name of this run's own, and goes away at the
# end: a deployment that you called "demo" is not touched.
set -euo pipefail
cd "$(dirname "$0")/.."

demo=$PWD/build/demo
name=demo-$$-$RANDOM
export AGENT_CONTAINER_CONFIG_DIR=$demo/config AGENT_CONTAINER_STATE_DIR=$demo/state AGENT_CONTAINER_DATA_DIR=$demo/data
agent_container() { "$PWD/build/agent-container" --no-input "$@"; }
# show prints a command as a person would type it, then runs it.
show() {
	printf '\n$ agent-container'
	printf ' %q' "$@"
	printf '\n'
	agent_container "$@"
}

trap 'agent_container wipe "$name" --yes >/dev/null 2>&1 || true' EXIT
mkdir -p "$AGENT_CONTAINER_CONFIG_DIR"
rm -f "$AGENT_CONTAINER_CONFIG_DIR"/demo-*.services.yaml

if [ -n "${ANTHROPIC_API_KEY:-}" ]; then
	echo 'demo: ANTHROPIC_API_KEY is set: the real model answers, and bills'
	environment=(--env ANTHROPIC_API_KEY)
	task='Write a file GREETING.md with one friendly sentence about this repository. Commit it. Then say what you did.'
else
	echo 'demo: ANTHROPIC_API_KEY is not set: a scripted model server answers'
	tests/modelserver/image.sh
	cp tests/modelserver/services.yaml "$AGENT_CONTAINER_CONFIG_DIR"/"$name".services.yaml
	environment=(--env ANTHROPIC_BASE_URL=http://model:8080 --env ANTHROPIC_API_KEY=sk-demo
		--env CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1)
	task='model: write /workspace/GREETING.md Hello from an agent in a container.
model: run git add GREETING.md && git commit -q -m "Add a greeting"
model: say I wrote GREETING.md and committed it.'
fi

echo
echo '# 1. a workspace with a small repository in it'
show up "$name" --mode idle "${environment[@]}"
repository=$demo/repository
rm -rf "$repository"
git init -q -b main "$repository"
printf '# A small repository\n' >"$repository/README.md"
git -C "$repository" add README.md
git -C "$repository" -c user.name=demo -c user.email=demo@example.com commit -q -m 'Begin'
git -C "$repository" bundle create -q - HEAD main |
	agent_container exec "$name" -- sh -c 'cat >/tmp/demo.bundle && git clone -q -b main /tmp/demo.bundle /workspace'
git config --global --get user.email >/dev/null ||
	agent_container exec "$name" -- sh -c 'git -C /workspace config user.name demo && git -C /workspace config user.email demo@example.com'

echo
echo '# 2. the job, in the foreground: its output and its exit code are the agent'\''s'
code=0
show redeploy "$name" --mode headless --foreground --task "$task" || code=$?
echo "exit code: $code"

echo
echo '# 3. what it left: the file, the commit, the record'
show redeploy "$name" --mode idle
show exec "$name" -- cat /workspace/GREETING.md
show exec "$name" -- git -C /workspace log --oneline
id=$(agent_container runs list "$name" | awk '$4 == "headless" { print $1; exit }')
show runs show "$id"
exit "$code"
