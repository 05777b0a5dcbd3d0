package panes

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

// A pane in which an attach runs must be marked with the agent of its session, as long as it is in front, and what it leaves behind when it is killed must count for nothing.
func TestAttached(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	ctx, pane := context.Background(), s.pane()
	inFront := func() (f Front) {
		t.Helper()
		s.until(func() string {
			var err error
			if f, err = s.front(pane); err != nil || f.Shell {
				return fmt.Sprintf("in front is %+v, %v", f, err)
			}
			return ""
		})
		return f
	}
	attach := func(f Found, pid int) {
		t.Helper()
		if err := s.tmux.Attach(ctx, pane, f, pid); err != nil {
			t.Fatal(err)
		}
	}
	s.types(pane, "editor")
	attach(Found{"claude", "docker"}, inFront().PID)
	s.within(patient, pane, "claude|docker|")
	if f := inFront(); f.Found != (Found{"claude", "docker"}) {
		t.Errorf("without a watcher, in front is %+v", f)
	}
	s.types(pane, "end")
	s.within(patient, pane, "||")
	s.types(pane, "editor") // what the first has left names another process
	if f := inFront(); f.Agent != "" {
		t.Errorf("behind a leftover, in front is %+v", f)
	}
	attach(Found{"codex", "podman"}, inFront().PID)
	s.within(patient, pane, "codex|podman|")
	if err := s.tmux.Detach(ctx, pane); err != nil {
		t.Fatal(err)
	}
	s.within(patient, pane, "codex||") // as behind any other program
	if left := s.must("show-options", "-p", "-q", "-v", "-t", pane, AttachedOption); left != "" {
		t.Errorf("%q is left", left)
	}
}

// What is not of attach's making must be nothing.
func TestParseAttached(t *testing.T) {
	for value, want := range map[string]attached{
		"claude/docker/42": {Found{"claude", "docker"}, 42},
		"codex/podman/1":   {Found{"codex", "podman"}, 1},
		"":                 {}, "claude": {}, "claude/docker": {}, "claude/docker/": {}, "claude/docker/0": {}, "claude/docker/-4": {},
		"claude/docker/4/": {}, "emacs/docker/4": {}, "claude/#(id)/4": {}, "claude//4": {}, "claude/docker/x": {},
	} {
		if got := parseAttached(value); got != want {
			t.Errorf("%q is %+v, want %+v", value, got, want)
		}
	}
}

// The status line of the session in the container must not be taken for the agent's own last line.
func TestWithoutStatus(t *testing.T) {
	status := "[main] 0:agent* 1:shell-                                  \"box\" 16:40 30-Nov-26\n"
	b, err := os.ReadFile("testdata/screens/claude-done.idle")
	if err != nil {
		t.Fatal(err)
	}
	screen := string(b)
	if got := strings.TrimRight(withoutStatus(screen+status), " \n"); got != strings.TrimRight(screen, " \n") {
		t.Errorf("left is %q", got)
	}
	for _, other := range []string{"", "\n", "one line", screen, "[main] above\n❯\n"} {
		if got := withoutStatus(other); got != strings.TrimRight(other, " \n") {
			t.Errorf("of %q is left %q", other, got)
		}
	}
	if got := stateOf("claude", withoutStatus(screen+status), ""); got != spec.ScreenIdle {
		t.Errorf("the state is %q", got)
	}
}
