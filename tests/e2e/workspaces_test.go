package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Every combination of mode and workspace must start: the workload of the mode
// runs, and /workspace is the kind of mount that was asked for.
func TestEveryModeAndWorkspaceStarts(t *testing.T) {
	for _, mode := range []string{"interactive", "headless", "idle"} {
		for _, workspace := range []string{"persistent", "bind", "ephemeral"} {
			t.Run(mode+" "+workspace, func(t *testing.T) {
				u := newUser(t)
				u.withStub()
				u.must(append([]string{"up", u.name, "--workspace", workspace}, u.modeFlags(mode, workspace)...)...)

				if state := u.inspect("{{.State.Status}}"); state != "running" {
					t.Errorf("the container is %s", state)
				}
				mount := u.inspect(`{{range .Mounts}}{{if eq .Destination "/workspace"}}{{.Type}} {{.Name}} {{.RW}}{{end}}{{end}}`)
				want := map[string]string{"persistent": "volume " + u.container() + "-workspace true", "bind": "bind  false", "ephemeral": ""}[workspace]
				if mount != want {
					t.Errorf("/workspace is %q, want %q", mount, want)
				}
				writes := u.run("exec", u.name, "--", "touch", "/workspace/file").code == 0
				if writes != (workspace != "bind") {
					t.Errorf("/workspace can be written: %t", writes)
				}
				session := u.run("exec", u.name, "--", "tmux", "has-session", "-t", "=main").code == 0
				if session != (mode == "interactive") {
					t.Errorf("there is a tmux session: %t", session)
				}
				agent := func() string {
					if u.run("exec", u.name, "--", "pgrep", "-f", "/opt/agent/bin/claude").code != 0 {
						return "the agent does not run"
					}
					return ""
				}
				if mode == "idle" {
					if agent() == "" {
						t.Error("an agent runs although nobody asked for work")
					}
				} else {
					eventually(t, 10*time.Second, agent)
				}
			})
		}
	}
}

// modeFlags are the flags that a mode and a workspace need beside themselves.
func (u *user) modeFlags(mode, workspace string) []string {
	flags := []string{"--mode", mode}
	if mode == "headless" {
		flags = append(flags, "--task", "wait", "--env", "STUB_RUN=sleep 600")
	}
	if workspace == "bind" {
		flags = append(flags, "--workspace-dir", u.openDirectory("input"))
	}
	return flags
}

// openDirectory makes a directory below the user's that the container's user,
// who is nobody special on the host, can read.
func (u *user) openDirectory(name string) string {
	u.t.Helper()
	dir := u.path(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		u.t.Fatal(err)
	}
	for _, d := range []string{dir, u.dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			u.t.Fatal(err)
		}
	}
	return dir
}

// A persistent workspace must survive a redeploy; an ephemeral one must be gone
// after it, and up must have said so beforehand.
func TestWorkspaceAfterRedeploy(t *testing.T) {
	for workspace, survives := range map[string]bool{"persistent": true, "ephemeral": false} {
		t.Run(workspace, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			r := u.must("up", u.name, "--mode", "idle", "--workspace", workspace)
			if warned := contains(r.stderr, "NOTE: an ephemeral workspace"); warned == survives {
				t.Errorf("a note about the loss: %t: %s", warned, r)
			}
			u.must("exec", u.name, "--", "sh", "-c", "echo work >/workspace/file; echo login >~/.claude/login")
			u.must("stop", u.name)
			u.must("start", u.name)
			if got := u.must("exec", u.name, "--", "cat", "/workspace/file").stdout; got != "work\n" {
				t.Errorf("after stop and start the file holds %q", got)
			}
			before := u.inspect("{{.Id}}")
			u.must("redeploy", u.name)
			if u.inspect("{{.Id}}") == before {
				t.Error("redeploy kept the container")
			}
			if there := u.run("exec", u.name, "--", "test", "-e", "/workspace/file").code == 0; there != survives {
				t.Errorf("after a redeploy the file is there: %t", there)
			}
			if got := u.must("exec", u.name, "--", "cat", "/home/agent/.claude/login").stdout; got != "login\n" {
				t.Errorf("the agent's own volume lost its file: %q", got)
			}
		})
	}
}

// A bind workspace must show the host's files as they are, now and later, and
// let nobody change them.
func TestBindWorkspaceIsReadOnly(t *testing.T) {
	u := newUser(t)
	u.withStub()
	dir := u.openDirectory("input with space")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(dir+"/$file", []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	u.must("up", u.name, "--mode", "idle", "--workspace", "bind", "--workspace-dir", dir)
	read := func() string { return u.must("exec", u.name, "--", "cat", "/workspace/$file").stdout }
	if got := read(); got != "first" {
		t.Errorf("the file holds %q", got)
	}
	write("second")
	if got := read(); got != "second" {
		t.Errorf("after a change on the host the file holds %q", got)
	}
	for _, attempt := range []string{"touch /workspace/new", `echo x >'/workspace/$file'`, `rm '/workspace/$file'`, "mkdir /workspace/d"} {
		if r := u.run("exec", u.name, "--", "sh", "-c", attempt); r.code == 0 || !contains(r.stderr, "Read-only file system") {
			t.Errorf("%s: %s", attempt, r)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the host's directory holds %v, %v", entries, err)
	}
}

// A workspace that cannot be must be refused with 2 before anything is made.
func TestImpossibleWorkspaceIsRefused(t *testing.T) {
	u := newUser(t)
	file := u.write("a-file", "")
	for _, c := range []struct {
		flags []string
		says  string
	}{
		{[]string{"--workspace", "bind"}, "--workspace-dir"},
		{[]string{"--workspace", "bind", "--workspace-dir", u.path("missing")}, "missing"},
		{[]string{"--workspace", "bind", "--workspace-dir", file}, "is not a directory"},
		{[]string{"--workspace-dir", u.path("project")}, "has no meaning"},
		{[]string{"--workspace", "presistent"}, `did you mean "persistent"`},
		{[]string{"--workspace", "bind:rw", "--workspace-dir", u.path("project")}, "a host directory is an input, and read-only: what the container writes lives on volumes"},
		{[]string{"--workspace", "bind", "--workspace-dir", u.path("project") + ":rw"}, "a host directory is an input"},
		{[]string{"--mount", u.path("missing")}, "missing"},
		{[]string{"--mount", file}, "is not a directory"},
		{[]string{"--mount", u.path("project") + ":/workspace/vendor"}, "overlaps the container's own /workspace"},
	} {
		r := u.want(2, append([]string{"up", u.name, "--mode", "idle"}, c.flags...)...)
		if !contains(r.stderr, c.says) {
			t.Errorf("the refusal does not say %q: %s", c.says, r)
		}
	}
	// What is here is not on an engine elsewhere, whatever has the same name there.
	if r := finish(t, u.dockerConfig("context", "create", "elsewhere", "--docker", "host=ssh://me@127.0.0.1:1")); r.code != 0 {
		t.Fatal(r)
	}
	for where, env := range map[string]string{"tcp://127.0.0.1:1": "DOCKER_HOST=tcp://127.0.0.1:1", "ssh://me@127.0.0.1:1": "DOCKER_CONTEXT=elsewhere"} {
		for _, flags := range [][]string{{"--workspace", "bind", "--workspace-dir", u.path("project")}, {"--mount", u.path("project")}} {
			r := u.runWith(nil, []string{"DOCKER_CONFIG=" + u.path("docker"), env}, append([]string{"up", u.name, "--mode", "idle"}, flags...)...)
			if r.code != 2 || !contains(r.stderr, u.path("project")+" is a directory of this host, and the engine is reached at "+where) {
				t.Errorf("%s: %s", env, r)
			}
		}
	}
	u.nothingMade()
	if _, err := os.Stat(u.path("missing")); err == nil {
		t.Error("the missing directory was made")
	}
}

// dockerConfig is a command of the engine's with a configuration of the user's own.
func (u *user) dockerConfig(args ...string) *exec.Cmd {
	cmd := exec.Command("docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_CONFIG="+u.path("docker"))
	return cmd
}

// nothingMade checks that neither the engine nor the host's directories hold
// anything of the deployment.
func (u *user) nothingMade() {
	u.t.Helper()
	u.nothingOnEngine()
	for _, dir := range []string{"state", "data"} {
		entries, err := os.ReadDir(u.path(dir))
		if err != nil || len(entries) > 0 {
			u.t.Errorf("%s holds %v, %v", dir, entries, err)
		}
	}
}

// nothingOnEngine checks that the engine holds nothing of the deployment.
func (u *user) nothingOnEngine() {
	u.t.Helper()
	for _, list := range [][]string{
		{"ps", "--all", "--format", "{{.Names}}"}, {"volume", "ls", "--format", "{{.Name}}"}, {"network", "ls", "--format", "{{.Name}}"},
	} {
		for _, name := range strings.Fields(docker(u.t, list...)) {
			if strings.HasPrefix(name, u.container()) {
				u.t.Errorf("docker %s has %s", list[0], name)
			}
		}
	}
	if left := docker(u.t, "ps", "--all", "--quiet", "--filter", "label=agent-container.name="+u.name); left != "" {
		u.t.Errorf("containers are left: %s", left)
	}
}
