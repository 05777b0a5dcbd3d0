package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// A project's services and environment must take effect on the engine once they
// were trusted as they are, and a change of them keep a redeploy from touching
// what runs.
func TestTrustOfAProject(t *testing.T) {
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("skipped: script (bsdutils) is not installed")
	}
	u := newUser(t)
	u.withStub()
	folder := "project/.agent-container/" + u.name
	u.write(folder+".services.yaml", strings.ReplaceAll(webServices, "IMAGE", u.built()[0]))
	u.write(folder+".env", "FROM_PROJECT=one\n")
	u.write(folder+".config/claude/commands/hello.md", "hello\n")
	if r := u.want(2, "up", u.name, "--mode", "idle"); !contains(r.stderr, ".config/claude/commands/hello.md: not trusted") || !contains(r.stderr, "agent-container trust "+u.path("project")) {
		t.Error(r)
	}
	if left := docker(t, "ps", "--all", "--quiet", "--filter", "label=agent-container.name="+u.name); left != "" {
		t.Errorf("something was made: %s", left)
	}
	u.must("trust", "--yes")
	u.must("up", u.name, "--mode", "idle")
	inside := func(want string) {
		t.Helper()
		r := u.must("exec", u.name, "--", "sh", "-c", "echo $FROM_PROJECT; cat ~/.claude/commands/hello.md; curl -fsS --noproxy '*' --max-time 5 http://web:8000/")
		if r.stdout != want+"\nhello\nhello from the service\n" {
			t.Errorf("inside is %q", r.stdout)
		}
	}
	inside("one")

	u.write(folder+".env", "FROM_PROJECT=two\n")
	same := u.unchanged()
	u.want(2, "redeploy", u.name)
	u.want(2, "redeploy", u.name, "--dry-run")
	u.want(2, "plan", u.name)
	answer := func(typed string) result {
		t.Helper()
		cmd := exec.Command(script, "--quiet", "--return", "--command", `exec "$PROGRAM" trust`, "/dev/null")
		cmd.Dir, cmd.Env = u.path("project"), append(append(outerEnvironment(), u.env...), "PROGRAM="+program, "SHELL=/bin/sh")
		cmd.Stdin = strings.NewReader(typed)
		return finish(t, cmd)
	}
	if r := answer("n\n"); r.code != 2 || !contains(r.stdout, "| FROM_PROJECT=two") || !contains(r.stdout, "[y/N]") {
		t.Errorf("answered n: %s", r)
	}
	u.want(2, "redeploy", u.name)
	same()
	if r := answer("y\n"); r.code != 0 {
		t.Errorf("answered y: %s", r)
	}
	u.must("redeploy", u.name)
	inside("two")

	// Whoever brings a file of the host with it is refused, trusted or not.
	u.write(folder+".services.yaml", "services: {web: {image: x, volumes: ['/etc/passwd:/p:ro']}}\n")
	u.must("trust", "--yes")
	same = u.unchanged()
	if r := u.want(2, "redeploy", u.name); !contains(r.stderr, "mounts /etc/passwd") {
		t.Error(r)
	}
	same()
}
