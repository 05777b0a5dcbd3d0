package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kept is what the engine and the host hold of a deployment.
type kept struct {
	container, volumes, model, records bool
}

func (u *user) kept() kept {
	u.t.Helper()
	exists := func(pattern string) bool {
		found, err := filepath.Glob(pattern)
		return err == nil && len(found) > 0
	}
	return kept{
		container: docker(u.t, "ps", "--all", "--quiet", "--filter", "label=agent-container.name="+u.name) != "",
		volumes:   docker(u.t, "volume", "ls", "--quiet", "--filter", "label=agent-container.name="+u.name) != "",
		model:     exists(u.path("state", "local", u.name, "compose.yaml")),
		records:   exists(u.path("data", "runs", "local", u.name, "*.json")),
	}
}

// Each verb that takes something away must take what its help says and no more;
// done twice it is no error as long as something is left; of nothing at all
// every verb says 4.
func TestWhatVerbsTakeAway(t *testing.T) {
	u := newUser(t)
	u.withStub()
	up := []string{"up", u.name, "--mode", "headless", "--foreground", "--task", "x"}
	check := func(after string, want kept) {
		t.Helper()
		if got := u.kept(); got != want {
			t.Errorf("after %s: %+v, want %+v", after, got, want)
		}
	}

	u.must(up...)
	check("up", kept{true, true, true, true})
	u.must("stop", u.name)
	check("stop", kept{true, true, true, true})
	if r := u.must("down", u.name, "--yes"); r.stdout != u.name+": removed 1 containers, 0 volumes\n" {
		t.Errorf("down says %s", r)
	}
	check("down", kept{false, true, true, true})
	// Its volumes are still there: the deployment is known, and down is done.
	if r := u.must("down", u.name, "--yes"); r.stdout != u.name+": removed 0 containers, 0 volumes\n" {
		t.Errorf("the second down says %s", r)
	}
	u.want(4, "stop", u.name)

	u.must(up...)
	u.must("down", u.name, "--purge", "--yes")
	check("down --purge", kept{false, false, false, true})
	u.want(4, "down", u.name, "--purge", "--yes")
	if n := len(u.records()); n != 2 {
		t.Errorf("after a purge %d runs are listed", n)
	}
	u.must("wipe", u.name, "--yes") // its records were left
	check("wipe", kept{})

	u.must(up...)
	u.must("wipe", u.name, "--yes")
	check("wipe at once", kept{})
	if n := len(u.records()); n != 0 {
		t.Errorf("after a wipe %d runs are listed", n)
	}
	for _, args := range [][]string{
		{"start", u.name}, {"stop", u.name}, {"redeploy", u.name}, {"exec", u.name, "--", "true"}, {"logs", u.name},
		{"down", u.name, "--yes"}, {"down", u.name, "--purge", "--yes"}, {"wipe", u.name, "--yes"}, {"runs", "show", "20260102"},
	} {
		u.want(4, args...)
	}
	check("the refusals", kept{})
}

// stop and start must keep the container with all it holds; up on what is
// stopped must start it, and done twice each is no error.
func TestStopAndStart(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle", "--env", "A=b")
	id := u.inspect("{{.Id}}")
	u.must("exec", u.name, "--", "touch", "/tmp/in-the-layer")
	state := func(want string) {
		t.Helper()
		if got := u.inspect("{{.Id}} {{.State.Status}}"); got != id+" "+want {
			t.Errorf("the container is %s, want %s %s", got, id, want)
		}
	}
	u.must("stop", u.name)
	state("exited")
	u.must("stop", u.name)
	if r := u.want(4, "exec", u.name, "--", "true"); !contains(r.stderr, "agent-container up "+u.name) {
		t.Errorf("exec on what is stopped names no way on: %s", r)
	}
	u.must("start", u.name)
	state("running")
	u.must("start", u.name)
	u.must("stop", u.name)
	u.must("up", u.name)
	state("running")
	if got := u.must("exec", u.name, "--", "sh", "-c", "ls /tmp/in-the-layer; echo $A").stdout; got != "/tmp/in-the-layer\nb\n" {
		t.Errorf("inside is %q", got)
	}
}

// everyVerb is a line of each command, that succeed and that fail, for a user
// with a running deployment; done in this order.
func (u *user) everyVerb() [][]string {
	return [][]string{
		{"version"}, {"context"}, {"list"}, {"ls"}, {"completions", "bash"}, {"completions", "zsh"}, {"completions", "tcsh"},
		{"build"}, {"build", "--agent", "cluade"}, {"runs", "list"}, {"runs", "list", u.name}, {"runs", "show", "nothing"}, {"runs"},
		{"up", u.name}, {"up", u.name, "--task", "x"}, {"up", u.name, "--mode", "headless"}, {"up", "My.App"}, {"up"}, {"up", u.name, "--no-such-flag"},
		{"up", u.name + "-x", "--mode", "headless"}, {"up", u.name + "-x", "--dry-run"}, {"up", u.name + "-x", "--mode", "idle", "--foreground"},
		{"redeploy", u.name, "--dry-run"}, {"redeploy", u.name}, {"redeploy", u.name + "-x"}, {"plan", u.name}, {"plan", u.name + "-x"}, {"trust"}, {"logs", u.name}, {"logs", u.name, "--tail", "x"},
		{"exec", u.name, "--", "cat"}, {"exec", u.name, "--", "sh", "-c", "exit 9"}, {"exec", u.name}, {"exec", u.name, "--", "no-such-command"},
		{"stop", u.name}, {"start", u.name}, {"start", u.name + "-x"}, {"no-such-command"}, {"--help"}, {},
		{"down", u.name}, {"down", u.name, "--purge"}, {"wipe", u.name}, // no terminal and no --yes: refused
		{"down", u.name, "--yes"}, {"down", u.name, "--purge", "--yes"}, {"wipe", u.name, "--yes"}, {"down", u.name, "--yes"},
	}
}

// With --json every verb must print one envelope and nothing else on stdout,
// whose ok agrees with the exit code and whose error has code and message.
func TestJSONIsOneEnvelope(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	for _, args := range u.everyVerb() {
		if len(args) == 0 || args[0] == "--help" {
			continue // the help is text
		}
		r := u.run(append([]string{"--json"}, args...)...)
		var e struct {
			Schema string
			OK     bool
			Data   json.RawMessage
			Error  *struct{ Code, Message, Hint string }
		}
		dec := json.NewDecoder(strings.NewReader(r.stdout))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&e); err != nil || dec.More() {
			t.Errorf("not one envelope: %v: %s", err, r)
			continue
		}
		if e.Schema != "agent-container/v1" || e.OK != (r.code == 0) {
			t.Errorf("the envelope does not agree with the exit code: %s", r)
		}
		if e.OK != (e.Error == nil) || e.OK && len(e.Data) == 0 {
			t.Errorf("data or error is missing: %s", r)
		}
		if e.Error != nil && (e.Error.Code == "" || e.Error.Message == "") {
			t.Errorf("the error has no code or no message: %s", r)
		}
	}
}

// Without a terminal and with stdin closed every verb must end, ask nothing,
// and destroy nothing unconfirmed.
func TestEveryVerbEndsWithoutATerminal(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	for _, args := range u.everyVerb() {
		// The shell closes stdin for real; a session of its own has no terminal
		// that could be opened instead.
		cmd := exec.Command("sh", append([]string{"-c", `exec "$0" "$@" <&-`, program}, args...)...)
		cmd.Dir, cmd.Env = u.path("project"), append(outerEnvironment(), u.env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		done := make(chan result, 1)
		go func() { done <- finish(t, cmd) }()
		select {
		case r := <-done:
			unconfirmed := len(args) > 0 && (args[0] == "down" || args[0] == "wipe") && args[len(args)-1] != "--yes"
			if unconfirmed && (r.code != 2 || !contains(r.stderr, "add --yes")) {
				t.Errorf("it was not refused: %s", r)
			}
			if contains(r.stdout+r.stderr, "[y/N]") {
				t.Errorf("it asked: %s", r)
			}
			if contains(r.stderr, "panic:") || contains(r.stderr, "bad file descriptor") {
				t.Errorf("it stumbled over the closed stdin: %s", r)
			}
		case <-time.After(commandTime):
			t.Fatalf("%v does not end", args)
		}
	}
}

// A signal must end a question at once, and nothing be done.
func TestSignalsAtAQuestion(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	s := u.sit(80, 24, nil, "down", u.name)
	s.shows("[y/N]")
	s.types("\x03")
	if r := s.wait(10 * time.Second); r.code != 130 {
		t.Errorf("Ctrl-C: %s", r)
	}
	s = u.sit(80, 24, nil, "wipe", u.name)
	s.shows("[y/N]")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := s.wait(10 * time.Second); r.code != 143 {
		t.Errorf("TERM: %s", r)
	}
	s = u.sit(80, 24, nil, "redeploy", u.name, "--mode", "headless", "--task", "-")
	s.shows("type the task; end it with Ctrl-D")
	s.types("\x03")
	if r := s.wait(10 * time.Second); r.code != 130 {
		t.Errorf("Ctrl-C at a task: %s", r)
	}
	if state := u.inspect("{{.State.Status}}"); state != "running" {
		t.Errorf("the container is %s", state)
	}
	if r := u.want(2, "redeploy", u.name, "--cpus", "4000"); !contains(r.stderr, "processors, not 4000") {
		t.Error(r)
	}
	if state := u.inspect("{{.State.Status}}"); state != "running" {
		t.Errorf("after too many processors the container is %s", state)
	}
}

// On a terminal a verb that destroys must ask, do nothing on "n" or on a bare
// Enter, and do it on "y".
func TestConfirmationOnATerminal(t *testing.T) {
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("skipped: script (bsdutils) is not installed")
	}
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	answer := func(typed string, args ...string) result {
		t.Helper()
		// The answer is not echoed into what the program reads by being early:
		// the terminal keeps the line until it is read.
		line := `exec "$PROGRAM" ` + strings.Join(args, " ")
		cmd := exec.Command(script, "--quiet", "--return", "--command", line, "/dev/null")
		cmd.Dir, cmd.Env = u.path("project"), append(append(outerEnvironment(), u.env...), "PROGRAM="+program, "SHELL=/bin/sh")
		cmd.Stdin = strings.NewReader(typed)
		return finish(t, cmd)
	}
	for _, c := range []struct {
		typed string
		args  []string
	}{
		{"n\n", []string{"down", u.name}}, {"\n", []string{"down", u.name, "--purge"}}, {"no\n", []string{"wipe", u.name}}, {"yess\n", []string{"wipe", u.name}},
	} {
		r := answer(c.typed, c.args...)
		if r.code != 2 || !contains(r.stdout, "remove") || !contains(r.stdout, u.name) || !contains(r.stdout, "[y/N]") {
			t.Errorf("%v answered %q: %s", c.args, c.typed, r)
		}
		if state := u.inspect("{{.State.Status}}"); state != "running" {
			t.Fatalf("%v answered %q: the container is %s", c.args, c.typed, state)
		}
	}
	if r := answer("y\n", "--no-input", "down", u.name); r.code != 2 || contains(r.stdout, "[y/N]") {
		t.Errorf("--no-input asked: %s", r)
	}
	if r := answer("y\n", "down", u.name); r.code != 0 || !contains(r.stdout, "[y/N]") {
		t.Errorf("the answer y: %s", r)
	}
	if got, want := u.kept(), (kept{volumes: true, model: true}); got.container || !got.volumes {
		t.Errorf("after y: %+v, want %+v", got, want)
	}
}

// What the engine has ended and nobody has stopped must be started by the next
// exec, and said; what was stopped must stay so.
func TestWhatShouldRunIsStarted(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle", "--env", "A=b")
	docker(t, "stop", u.container())
	r := u.must("exec", u.name, "--", "sh", "-c", "echo $A")
	if r.stdout != "b\n" || !contains(r.stderr, "was ended by the engine, not by stop: starting it") {
		t.Error(r)
	}
	u.must("stop", u.name)
	u.want(4, "exec", u.name, "--", "true")
	u.must("start", u.name)
	if got := u.inspect("{{.HostConfig.RestartPolicy.Name}}"); got != "unless-stopped" {
		t.Errorf("after a start the policy is %s", got)
	}
	u.must("exec", u.name, "--", "true")
}
