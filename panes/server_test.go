package panes

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-container/agent-container/process"
)

// TestMain makes this test's binary the stub of every program that is called by the
// name of one: it waits for a line "end".
func TestMain(m *testing.M) {
	if slices.Contains(stubs, filepath.Base(os.Args[0])) {
		time.AfterFunc(10*time.Minute, func() { os.Exit(3) })
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			if in.Text() == "end" {
				os.Exit(0)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var stubs = []string{"docker", "podman", "claude", "codex", "editor"}

// server is a tmux server of a test's own, with a shell in each pane that finds the
// stubs.
type server struct {
	t    testing.TB
	tmux Tmux
	dir  string
}

func newServer(t testing.TB) *server {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "panes") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range stubs {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TMUX=", "PS1=$ ", "ENV=", "GORACE=atexit_sleep_ms=0")
	s := &server{t, Tmux{Runner: &process.Runner{Env: env}, Socket: filepath.Join(dir, "s")}, dir}
	s.must("-f", "/dev/null", "new-session", "-d", "-s", "work", "-x", "132", "-y", "40", "sh")
	t.Cleanup(func() { _, _ = s.tmux.call(context.Background(), "kill-server") })
	return s
}

func (s *server) must(words ...string) string {
	s.t.Helper()
	out, err := s.tmux.call(context.Background(), words...)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// pane makes a pane with a shell in a window of its own.
func (s *server) pane() string { return s.must("new-window", "-d", "-P", "-F", "#{pane_id}", "sh") }

func (s *server) types(pane, line string) {
	s.must("send-keys", "-t", pane, "-l", line, ";", "send-keys", "-t", pane, "Enter")
}

// runs waits until a pane runs a program.
func (s *server) runs(pane, program string) {
	s.t.Helper()
	s.until(func() string {
		if got := s.must("display-message", "-p", "-t", pane, "#{pane_current_command}"); got != program {
			return fmt.Sprintf("%s runs %q, want %q", pane, got, program)
		}
		return ""
	})
}

// until waits until what says no complaint.
func (s *server) until(complaint func() string) {
	s.t.Helper()
	for deadline := time.Now().Add(patient); ; time.Sleep(20 * time.Millisecond) {
		said := complaint()
		if said == "" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatal(said)
		}
	}
}

// front is what is in front of a pane, read without a watcher.
func (s *server) front(pane string) (Front, error) {
	p, err := s.tmux.Pane(context.Background(), pane)
	if err != nil {
		return Front{}, err
	}
	return NewProcesses(s.tmux.Runner).Front(context.Background(), p)
}

// marks are the marks of a pane, "agent|runtime|state".
func (s *server) marks(pane string) string {
	return s.must("display-message", "-p", "-t", pane, "#{@agent}|#{@agent_container}|#{@agent_state}")
}

// within waits until a pane has these marks and returns how long that took.
func (s *server) within(limit time.Duration, pane, want string) time.Duration {
	s.t.Helper()
	begun := time.Now()
	for {
		got := s.marks(pane)
		if took := time.Since(begun); got == want {
			return took
		} else if took > limit {
			s.t.Fatalf("after %v the marks of %s are %q, want %q; its screen:\n%s", took.Round(time.Millisecond), pane, got, want, s.must("capture-pane", "-p", "-t", pane))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// watch runs a watcher until the test ends, or the returned function is called, which
// returns what Watch has returned.
func (s *server) watch(tell func(context.Context, Pane)) (stop func() error) {
	return s.run(&Watcher{Tmux: s.tmux, Processes: NewProcesses(s.tmux.Runner), Tell: tell})
}

// run runs a watcher as watch does.
func (s *server) run(w *Watcher) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Watch(ctx) }()
	stop = func() error { cancel(); err := <-done; done <- err; return err }
	s.t.Cleanup(func() { _ = stop() })
	return stop
}

// patient is how long a mark may take where other tests have the processors; what a
// user waits is measured by TestMarksWithinASecond. It is less than Behind, after which
// marks go also where nothing has ended their row.
const patient = Behind - 5*time.Second
