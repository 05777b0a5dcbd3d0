package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

// A redeploy must keep what the deployment was given, say what of it is no
// default, and change what is typed and nothing else.
func TestRedeployKeeps(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--workspace", "ephemeral", "--env", "KEPT=a b", "--memory", "1g")
	u.must("exec", u.name, "--", "sh", "-c", "echo one >~/.claude/login; echo two >~/.codex/login")
	port, key, volumes := u.sshPort(), u.hostKey(), docker(t, "volume", "ls", "--quiet", "--filter", "label=agent-container.name="+u.name)
	same := func(agent, mode string) {
		t.Helper()
		if u.sshPort() != port || u.hostKey() != key || key == "" {
			t.Errorf("port %s and key %q became %s and %q", port, key, u.sshPort(), u.hostKey())
		}
		if now := docker(t, "volume", "ls", "--quiet", "--filter", "label=agent-container.name="+u.name); now != volumes {
			t.Errorf("the volumes are %q, were %q", now, volumes)
		}
		r := u.must("exec", u.name, "--", "sh", "-c", "cat ~/.claude/login ~/.codex/login; echo $KEPT $AGENT_CONTAINER_AGENT $AGENT_CONTAINER_MODE")
		if want := "one\ntwo\na b " + agent + " " + mode + "\n"; r.stdout != want {
			t.Errorf("inside is %q, want %q", r.stdout, want)
		}
		if got := u.inspect("{{.HostConfig.Memory}}"); got != "1073741824" {
			t.Errorf("its memory is %s", got)
		}
	}
	r := u.must("redeploy", u.name)
	if want := ": keeps workspace ephemeral, env KEPT, memory 1g\n"; !contains(r.stderr, u.name+want) || contains(r.stderr, " -> ") {
		t.Errorf("it does not say what it keeps: %s", r)
	}
	same("claude", "interactive")
	r = u.must("redeploy", u.name, "--agent", "codex")
	if !contains(r.stderr, u.name+": agent: claude -> codex\n") || strings.Count(r.stderr, " -> ") != 1 {
		t.Errorf("it does not say what it changes: %s", r)
	}
	same("codex", "interactive")
	r = u.must("redeploy", u.name, "--mode", "idle", "--ssh")
	if !contains(r.stderr, u.name+": keeps agent codex, workspace ephemeral,") {
		t.Errorf("it does not say what it keeps: %s", r)
	}
	same("codex", "idle")
	u.must("redeploy", u.name, "--mode", "interactive", "--agent", "claude")
	same("claude", "interactive")
	if r := u.want(2, "redeploy", u.name, "--mode", "headless"); !contains(r.stderr, "a headless job needs a task") {
		t.Errorf("a job without a task: %s", r)
	}
	same("claude", "interactive")
}

// bare replaces the deployment's container by one of the same image that
// carries our name and no spec.
func (u *user) bare(flags ...string) {
	u.t.Helper()
	image := u.inspect("{{.Config.Image}}")
	docker(u.t, "rm", "--force", u.container())
	argv := append([]string{"create", "--name", u.container(), "--label", "agent-container.name=" + u.name, "--volume", u.container() + "-secrets:/run/agent-container-secrets"}, flags...)
	docker(u.t, append(argv, image)...)
}

// specLabel is the spec of the deployment's container.
func (u *user) specLabel() map[string]any {
	u.t.Helper()
	var s map[string]any
	if err := json.Unmarshal([]byte(u.inspect(`{{index .Config.Labels "agent-container.spec"}}`)), &s); err != nil {
		u.t.Fatal(err)
	}
	return s
}

// A container of ours without a spec must be redeployed as its environment, its
// mounts and its limits say.
func TestRedeployWithoutASpec(t *testing.T) {
	u := newUser(t)
	u.withStub()
	dir := u.openDirectory("input")
	u.must("up", u.name, "--mode", "idle", "--env", "KEPT=a b")
	u.must("exec", u.name, "--", "sh", "-c", "echo work >/workspace/file")
	for workspace, flags := range map[string][]string{
		"persistent": {"--volume", u.container() + "-workspace:/workspace"},
		"bind":       {"--mount", "type=bind,source=" + dir + ",target=/workspace,readonly"},
		"ephemeral":  nil,
	} {
		u.bare(append(flags, "--env", "AGENT_CONTAINER_MODE=idle", "--env", "AGENT_CONTAINER_AGENT=pi", "--memory", "300m", "--pids-limit", "99")...)
		u.must("redeploy", u.name, "--agent", "claude")
		s := u.specLabel()
		if s["workspace"] != workspace || s["mode"] != "idle" || s["workspace_dir"] != map[string]any{"bind": dir}[workspace] {
			t.Errorf("%s: the spec is %v", workspace, s)
		}
		if got := u.inspect("{{.HostConfig.Memory}} {{.HostConfig.PidsLimit}}"); got != "314572800 99" {
			t.Errorf("%s: the limits are %s", workspace, got)
		}
		if got := u.must("exec", u.name, "--", "sh", "-c", "echo $KEPT; cat /workspace/file || :").stdout; !strings.HasPrefix(got, "a b\n") || (got == "a b\nwork\n") != (workspace == "persistent") {
			t.Errorf("%s: inside is %q", workspace, got)
		}
	}
	// Killed on the way, it finds the old container under its other name.
	for _, step := range []string{"retired", "created"} {
		u.bare("--env", "AGENT_CONTAINER_MODE=idle", "--env", "AGENT_CONTAINER_AGENT=claude")
		u.endedAt(step, "kill", "redeploy", u.name)
		u.must("redeploy", u.name)
		if got := docker(t, "ps", "--all", "--quiet", "--filter", "label=agent-container.name="+u.name); u.specLabel()["mode"] != "idle" || contains(got, "\n") {
			t.Errorf("killed at %s: %v, containers %q", step, u.specLabel(), got)
		}
	}
	u.bare("--env", "AGENT_CONTAINER_MODE=headless", "--env", "AGENT_CONTAINER_AGENT=claude")
	if r := u.want(2, "redeploy", u.name, "--task", "x"); !contains(r.stderr, "--timeout, --idle-timeout, --headless-restart") {
		t.Errorf("a job that nobody bounds: %s", r)
	}
	// Nothing readable: the default, and said.
	u.bare()
	if r := u.must("redeploy", u.name); !contains(r.stderr, "mode is not readable either: the default is taken") || u.specLabel()["mode"] != "interactive" {
		t.Errorf("%v: %s", u.specLabel(), r)
	}
}

// A redeploy of nothing must name the up that makes it.
func TestRedeployOfNothing(t *testing.T) {
	u := newUser(t)
	r := u.want(4, "redeploy", u.name, "--mode", "idle", "--env", "A=canary b")
	if !contains(r.stderr, "make it: agent-container up "+u.name+" --mode idle --env A\n") || contains(r.stderr, "canary") {
		t.Error(r)
	}
	u.nothingMade()
}

// When the new container does not come up, the image of before and what was
// changed must be named with the command that brings them back, which must do so;
// and what was not taken down must not be called lost.
func TestRedeployThatFailsNamesTheWayBack(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle", "--ssh")
	image := u.inspect("{{.Config.Image}}")
	// A directory where the configuration has a file: the set-up cannot lay it.
	u.must("exec", u.name, "--", "mkdir", "-p", "/home/agent/.codex/config.toml/d")
	u.write("config/"+u.name+".config/codex/config.toml", "# x\n")
	u.write("config/settings.yaml", "limits: {pids: 99}\n")
	r := u.want(1, "redeploy", u.name, "--agent", "codex", "--mode", "interactive", "--memory", "1g")
	back := "agent-container redeploy " + u.name + " --agent claude --mode idle --memory none"
	for _, want := range []string{
		"the set-up of " + u.name + " failed in phase config", "; as before: " + back + "\n", "its image of before: " + image + ", still on the engine\n",
		"changed with it: agent: claude -> codex (--agent)\n", "changed with it: limits.pids: 2048 -> 99 (user " + u.path("config/settings.yaml") + ":1)\n",
	} {
		if !contains(r.stderr, want) {
			t.Errorf("it does not say %q: %s", want, r)
		}
	}
	u.must(strings.Fields(strings.TrimPrefix(back, "agent-container "))...)
	if got := u.inspect("{{.Config.Image}} {{.HostConfig.Memory}}"); got != image+" 0" || u.specLabel()["mode"] != "idle" || u.specLabel()["ssh"] != true {
		t.Errorf("after the way back: %s, %v", got, u.specLabel())
	}

	// A create that fails: the container of before is still there, stopped.
	u.write("config/"+u.name+".services.yaml", "services: {db: {image: localhost/e2e-not-there, pull_policy: never}}\n")
	id := u.inspect("{{.Id}}")
	r = u.want(1, "redeploy", u.name)
	if !contains(r.stderr, "its container of before is still there: agent-container start "+u.name+"\n") {
		t.Error(r)
	}
	u.must("start", u.name)
	if now := u.inspect("{{.Id}}"); now != id {
		t.Errorf("started is %s, before it was %s", now, id)
	}
	u.must("exec", u.name, "--", "true")
}

// A job that ran and failed has come up: no way back is named. One whose set-up
// fails names it, and says when the image of before is no longer what the
// settings make.
func TestJobThatFailsNamesNoWayBack(t *testing.T) {
	u := newUser(t)
	u.withOwnStub()
	image := u.built()[0]
	u.dropImage(image)
	u.job(0, "exit 0")
	u.waitState("exited")
	if r := u.again(3, "exit 3", "--foreground", "--pids", "99"); contains(r.stderr, "before") {
		t.Errorf("the job ran: %s", r)
	}
	u.must("redeploy", u.name, "--mode", "idle")
	u.must("exec", u.name, "--", "sh", "-c", "rm ~/.claude/.claude.json && mkdir ~/.claude/.claude.json")
	u.addLine("repo/entrypoint/entrypoint.sh", "# "+u.name+" again")
	u.dropImage(u.built()[0])
	r := u.again(125, "exit 0", "--foreground", "--pids", "98")
	if !contains(r.stderr, "as before: agent-container redeploy "+u.name+" --mode idle --pids 99\n") ||
		!contains(r.stderr, "its image of before: "+image+", still on the engine; its base image or this program's image files are other ones by now") {
		t.Error(r)
	}
}
