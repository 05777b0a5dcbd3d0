package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What the tests about headless jobs share.

// job deploys the stub as a job that runs the shell commands in script, and
// fails the test unless up exits with code.
func (u *user) job(code int, script string, flags ...string) result {
	u.t.Helper()
	return u.want(code, append([]string{"up", u.name, "--mode", "headless", "--task", "do it", "--env", "STUB_RUN=" + script}, flags...)...)
}

// again gives the deployment a new job.
func (u *user) again(code int, script string, flags ...string) result {
	u.t.Helper()
	return u.want(code, append([]string{"redeploy", u.name, "--mode", "headless", "--task", "do it", "--env", "STUB_RUN=" + script}, flags...)...)
}

// untilGo is an agent that says "started" and goes on until go is called.
const untilGo = "echo started; until [ -e /workspace/go ]; do sleep 0.1; done; rm /workspace/go; echo over"

// goOn waits for no answer: what is executed in a container is killed with it, and
// the job may be over before it has ended.
func (u *user) goOn() {
	u.t.Helper()
	docker(u.t, "exec", "--detach", u.container(), "touch", "/workspace/go")
}

// untilStopped is an agent that says "started", and when it is told to stop
// leaves a mark and exits with code 7.
const untilStopped = `trap 'echo TERM >"$HOME/.claude/mark"; exit 7' TERM; echo started; while :; do sleep 0.1; done`

const mark = "/home/agent/.claude/mark"

// identity changes when the container is another one or was started again.
func (u *user) identity() string {
	u.t.Helper()
	return u.inspect("{{.Id}} started {{.State.StartedAt}} restarts {{.RestartCount}}")
}

// unchanged returns a check that the container is the one of now, started as
// it is now, and that there is no record more.
func (u *user) unchanged() func() {
	u.t.Helper()
	before, records := u.identity(), len(u.records())
	return func() {
		u.t.Helper()
		if now := u.identity(); now != before {
			u.t.Errorf("the container was %s and is %s", before, now)
		}
		if now := len(u.records()); now != records {
			u.t.Errorf("there were %d records and are %d", records, now)
		}
	}
}

// waitState waits until the engine calls the container state.
func (u *user) waitState(state string) {
	u.t.Helper()
	eventually(u.t, 30*time.Second, func() string {
		if now := u.inspect("{{.State.Status}}"); now != state {
			return "the container is " + now + ", not " + state
		}
		return ""
	})
}

// waitLog waits until the container has said text.
func (u *user) waitLog(text string) {
	u.t.Helper()
	eventually(u.t, 30*time.Second, func() string {
		if r := dockerTry(u.t, "logs", u.container()); !contains(r.stdout, text) {
			return "the container has not said " + text + ": " + r.String()
		}
		return ""
	})
}

// records are all run records of the deployment, newest first.
func (u *user) records() []map[string]any {
	u.t.Helper()
	r := u.run("runs", "list", u.name, "--json")
	var e struct {
		Data struct{ Runs []map[string]any }
	}
	if r.code == 4 { // neither a deployment nor runs
		return nil
	}
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil {
		u.t.Fatalf("%v: %s", err, r)
	}
	return e.Data.Runs
}

// wantEnd checks how a record says its run ended; code nil means none.
func wantEnd(t *testing.T, record map[string]any, outcome, cause string, code any) {
	t.Helper()
	if c, ok := code.(int); ok {
		code = float64(c)
	}
	if record["outcome"] != outcome || record["cause"] != cause || record["exit_code"] != code || record["ended_at"] == nil {
		t.Errorf("want outcome %s, cause %s, exit code %v and an end; the record is %v", outcome, cause, code, record)
	}
}

// wantHint checks that the hint names a command that helps.
func wantHint(t *testing.T, r result, command string) {
	t.Helper()
	for _, line := range strings.Split(r.stderr, "\n") {
		if strings.HasPrefix(line, "agent-container: hint: ") && contains(line, command) {
			return
		}
	}
	t.Errorf("no hint names %q: %s", command, r)
}

// archive is what the engine copies out of the container, running or not, as a
// tar; empty when there is no such path.
func (u *user) archive(path string) []byte {
	u.t.Helper()
	r := dockerTry(u.t, "cp", u.container()+":"+path, "-")
	return []byte(r.stdout)
}

// file is the content of a file in the container, running or not, and whether
// it exists.
func (u *user) file(path string) (string, bool) {
	u.t.Helper()
	t := tar.NewReader(bytes.NewReader(u.archive(path)))
	if _, err := t.Next(); err != nil {
		return "", false
	}
	content, err := io.ReadAll(t)
	if err != nil {
		u.t.Fatal(err)
	}
	return string(content), true
}

// running is a command of the program that goes on.
type running struct {
	t       *testing.T
	cmd     *exec.Cmd
	out     lockedBuffer
	errOut  lockedBuffer
	done    chan struct{} // closed when it has ended
	waitErr error
}

// lockedBuffer is written by a command and read by the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start starts the program and does not wait for it.
func (u *user) start(args ...string) *running {
	u.t.Helper()
	return u.startWith(nil, nil, nil, args...)
}

// startWith is start with an input and extra variables. stdout is where the
// output goes, nil for running.out.
func (u *user) startWith(stdin io.Reader, env []string, stdout io.Writer, args ...string) *running {
	u.t.Helper()
	r := &running{t: u.t, cmd: exec.Command(program, args...), done: make(chan struct{})}
	r.cmd.Dir = u.path("project")
	r.cmd.Env = append(append(outerEnvironment(), u.env...), env...)
	r.cmd.Stdin = stdin
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.errOut
	if stdout != nil {
		r.cmd.Stdout = stdout
	}
	if err := r.cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	go func() {
		r.waitErr = r.cmd.Wait()
		close(r.done)
	}()
	u.t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.done })
	return r
}

// signal sends a signal to this one process, as kill does.
func (r *running) signal(s syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatalf("signal %v: %v", s, err)
	}
}

// said waits until the command has printed text on either stream.
func (r *running) said(text string) {
	r.t.Helper()
	eventually(r.t, 60*time.Second, func() string {
		if !contains(r.out.String()+r.errOut.String(), text) {
			return "it has not said " + text + ": stdout " + r.out.String() + " stderr " + r.errOut.String()
		}
		return ""
	})
}

// wait waits for the command's end, for the limit or patience, whichever is longer.
func (r *running) wait(limit time.Duration) result {
	r.t.Helper()
	limit = max(limit, patience)
	select {
	case <-r.done:
	case <-time.After(limit):
		r.t.Fatalf("%v still runs after %s: stdout %s stderr %s", r.cmd.Args, limit, r.out.String(), r.errOut.String())
	}
	end := result{argv: r.cmd.Args, stdout: r.out.String(), stderr: r.errOut.String()}
	var exit *exec.ExitError
	if errors.As(r.waitErr, &exit) {
		end.code = exit.ExitCode()
	} else if r.waitErr != nil {
		r.t.Fatal(r.waitErr)
	}
	return end
}
