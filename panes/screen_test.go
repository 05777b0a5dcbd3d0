package panes

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// Every screen of a real agent under testdata/screens, AGENT-WHAT.STATE, must be read as its
// state, and one of STATE unknown as whatever was before.
func TestScreens(t *testing.T) {
	files, err := filepath.Glob("testdata/screens/*")
	if err != nil || len(files) < 80 {
		t.Fatalf("%d screens, %v", len(files), err)
	}
	for _, file := range files {
		screen, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		agent, _, _ := strings.Cut(filepath.Base(file), "-")
		want := spec.ScreenState(strings.TrimPrefix(filepath.Ext(file), "."))
		if want == "unknown" {
			want = ""
		}
		if got := stateOf(agent, string(screen), ""); got != want {
			t.Errorf("%s is read as %q:\n%s", file, got, screen)
		}
	}
}

// A screen that no rule knows must leave the state as it was, and an agent without rules have none.
func TestUnknownScreens(t *testing.T) {
	for _, screen := range []string{"", "\n\n", "half drawn", "a text about esc to interrupt\n1\n2\n3\n4\n5\n6\n7\n8\n9"} {
		if got := stateOf("claude", screen, spec.ScreenWorking); got != spec.ScreenWorking {
			t.Errorf("%q is read as %q", screen, got)
		}
		if got := stateOf("aider", screen, ""); got != "" {
			t.Errorf("%q of an agent without rules is read as %q", screen, got)
		}
	}
}

// Rules must have a state of the table and look at some lines.
func TestScreenRules(t *testing.T) {
	for agent, rules := range screenRules {
		for _, r := range rules {
			if r.Lines < 1 || r.State != spec.ScreenWorking && r.State != spec.ScreenWaiting && r.State != spec.ScreenIdle {
				t.Errorf("%s has the rule %+v", agent, r.ScreenRule)
			}
		}
	}
}

// What is written in the second in which the screen was read, but after that, must be read however late the next reading comes; and a screen to which nothing more is written not for ever.
func TestScreenOfTheSameSecond(t *testing.T) {
	s := newServer(t)
	pane := s.must("new-window", "-d", "-P", "-F", "#{pane_id}", "docker", "run", "img", "claude")
	const second = 1e9
	w := &Watcher{Tmux: s.tmux}
	w.begin(0)
	w.panes = []Pane{{ID: pane, activity: second}}
	w.of(pane).life = life{Found: Found{"claude", "docker"}, inFront: true}
	for _, step := range []struct {
		writes string
		after  int64 // seconds
		want   spec.ScreenState
	}{{"esc to interrupt", 0, "working"}, {"Esc to cancel", 3, "waiting"}, {"esc to interrupt", 6, "waiting"}} {
		s.types(pane, step.writes)
		s.until(func() string {
			if screen := s.must("capture-pane", "-p", "-t", pane); !strings.HasSuffix(screen, step.writes) {
				return "the screen is\n" + screen
			}
			return ""
		})
		if err := w.readScreens(context.Background(), time.Unix(second+step.after, 0)); err != nil {
			t.Fatal(err)
		}
		if got := w.of(pane).State; got != step.want {
			t.Errorf("after %d seconds and %q the state is %q, want %q", step.after, step.writes, got, step.want)
		}
	}
}
