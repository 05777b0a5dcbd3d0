package panes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// The marks of a pane whose program has ended must go although tmux keeps the pane, and not come back with another program in it.
func TestMarksOfADeadPane(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	s.must("set-option", "-g", "remain-on-exit", "on")
	pane := s.must("new-window", "-d", "-P", "-F", "#{pane_id}", "docker", "run", "img", "claude")
	s.within(patient, pane, "claude|docker|")
	s.types(pane, "end")
	s.within(patient, pane, "||")
	panes, err := s.tmux.Panes(context.Background())
	if err != nil || len(Marked(panes)) != 0 {
		t.Errorf("listed are %+v, %v", Marked(panes), err)
	}
	s.must("respawn-pane", "-t", pane, "podman", "run", "img", "codex")
	s.within(patient, pane, "codex|podman|")
	s.must("respawn-pane", "-k", "-t", pane, "sh")
	s.within(patient, pane, "||")
}

// Marks that somebody has taken away or changed must be set right, and options of the same names that hold something else be left alone.
func TestMarksOfOthers(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	pane, other := s.pane(), s.pane()
	s.must("set-option", "-p", "-t", other, MarkAgent, "my agent: #(touch "+s.dir+"/ran) x")
	s.must("set-option", "-p", "-t", other, NameOption, "claude\ncode")
	s.types(other, "editor")
	s.types(pane, "docker run img claude")
	s.within(patient, pane, "claude|docker|")
	s.must("set-option", "-p", "-u", "-t", pane, MarkAgent)
	s.within(patient, pane, "claude|docker|")
	s.must("set-option", "-p", "-t", pane, MarkRuntime, "podman")
	s.within(patient, pane, "claude|docker|")
	p, err := s.tmux.Pane(context.Background(), other)
	if err != nil || p.Agent != "" || p.named != "" || p.Where != "work:2.0" {
		t.Errorf("the pane with others' options is %+v, %v", p, err)
	}
	s.types(pane, "end")
	s.within(patient, pane, "||")
	if got := s.must("show-options", "-p", "-v", "-t", other, MarkAgent); got != "my agent: #(touch "+s.dir+"/ran) x" {
		t.Errorf("somebody's option is %q", got)
	}
	if _, err := os.Stat(s.dir + "/ran"); err == nil {
		t.Error("somebody's option was run")
	}
}

// Marks that a pane has from its window, its session or the server must be none of its own: hidden while it is watched, and no more afterwards.
func TestInheritedMarks(t *testing.T) {
	s := newServer(t)
	pane := s.pane()
	s.must("set-option", "-g", MarkAgent, "codex", ";", "set-option", "-w", "-t", pane, MarkAgent, "claude", ";", "set-option", "-w", "-t", pane, MarkState, "idle")
	stop := s.watch(nil)
	s.within(patient, pane, "||")
	s.types(pane, "podman run img codex")
	s.within(patient, pane, "codex|podman|")
	s.types(pane, "end")
	s.within(patient, pane, "||")
	panes, err := s.tmux.Panes(context.Background())
	if err != nil || len(Marked(panes)) != 0 {
		t.Errorf("listed are %+v, %v", Marked(panes), err)
	}
	if err := stop(); err != context.Canceled {
		t.Error(err)
	}
	if got := s.marks(pane); got != "claude||idle" {
		t.Errorf("after the watch its window's marks are %q", got)
	}
}

// An agent that the user has named must be marked also where the runtime is the pane's own first process, alone or in a script.
func TestNamedFirstProcess(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	for _, argv := range [][]string{{"docker", "exec", "-it", "box", "bash"}, {"docker exec -it box bash; read x"}} {
		pane := s.must(append([]string{"new-window", "-d", "-P", "-F", "#{pane_id}"}, argv...)...)
		s.must("set-option", "-p", "-t", pane, NameOption, "claude")
		s.until(func() string {
			if got := s.marks(pane); !strings.HasPrefix(got, "claude|") {
				return fmt.Sprintf("%q is marked %q", argv, got)
			}
			return ""
		})
	}
}

// A script of the user's with an agent's name, which starts that agent in a container, must be marked with the container.
func TestScriptCalledClaude(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	script := filepath.Join(s.dir, "bin", "claude")
	if err := os.MkdirAll(filepath.Dir(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\ndocker run -it img claude \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	pane := s.pane()
	s.types(pane, script)
	s.within(patient, pane, "claude|docker|")
	s.types(pane, "end")
	s.within(patient, pane, "||")
}

// Whoever is told must not hold up the marks, hear of each pane its newest state, and be cut off at the end.
func TestTellTakesItsTime(t *testing.T) {
	s := newServer(t)
	told := make(chan Pane, 10)
	w := &Watcher{Tmux: s.tmux, Processes: NewProcesses(s.tmux.Runner), Tell: func(ctx context.Context, p Pane) {
		told <- p
		<-ctx.Done()
	}}
	stop := s.run(w)
	first, second := s.pane(), s.pane()
	s.types(first, "docker run img claude")
	s.within(patient, first, "claude|docker|")
	s.types(first, "Esc to cancel")
	select {
	case p := <-told:
		if p.ID != first || p.State != "waiting" || p.Agent != "claude" || p.Runtime != "docker" {
			t.Errorf("told was %+v", p)
		}
	case <-time.After(patient):
		t.Fatal("nobody was told")
	}
	s.types(second, "podman run img claude")
	s.within(patient, second, "claude|podman|")
	s.types(second, "Esc to cancel")
	s.within(patient, second, "claude|podman|waiting")
	s.types(second, "esc to interrupt")
	s.within(patient, second, "claude|podman|working")
	s.until(func() string { // the mark comes first
		w.calls.mu.Lock()
		defer w.calls.mu.Unlock()
		if len(w.calls.waiting) != 0 {
			return fmt.Sprintf("of %+v somebody would still be told", w.calls.waiting)
		}
		return ""
	})
	done := make(chan error, 1)
	go func() { done <- stop() }()
	select {
	case <-done:
	case <-time.After(patient):
		t.Error("the watcher does not end")
	}
}

// An agent must be told of as idle once it stays so, and as waiting at once.
func TestTell(t *testing.T) {
	w := &Watcher{Tell: func(context.Context, Pane) {}}
	w.begin(1)
	w.calls.more = make(chan struct{}, 1)
	for i, c := range []struct {
		state  spec.ScreenState
		inView bool
		told   bool
	}{
		{"idle", false, false}, {"idle", false, false}, // it has only come up
		{"working", false, false}, {"idle", false, false}, {"working", false, false}, // half drawn
		{"idle", false, false}, {"idle", false, true}, {"idle", false, false},
		{"waiting", false, true}, {"waiting", false, false},
		{"working", false, false}, {"idle", false, false}, {"idle", true, false}, {"idle", false, false},
	} {
		seen := w.of("%1")
		was := seen.State
		seen.State = c.state
		w.tell(Pane{ID: "%1", InView: c.inView}, was)
		if p, ok := w.calls.take(); ok != c.told || ok && p.State != c.state {
			t.Errorf("step %d: told %v of %+v, want %v", i, ok, p, c.told)
		}
	}
}

// Of each pane the newest state must be told, in the order of the changes, once.
func TestCalls(t *testing.T) {
	var c calls
	for _, p := range []Pane{{ID: "%1", State: "waiting"}, {ID: "%2", State: "idle"}, {ID: "%3", State: "waiting"}, {ID: "%1", State: "idle"}} {
		c.put(p)
	}
	c.drop("%3")
	var got []string
	for p, ok := c.take(); ok; p, ok = c.take() {
		got = append(got, p.ID+" "+string(p.State))
	}
	if len(got) != 2 || got[0] != "%2 idle" || got[1] != "%1 idle" {
		t.Errorf("told would be %q", got)
	}
}

// A watcher that is ended while it looks must not look once more, though it is time to.
func TestNoLookAfterTheEnd(t *testing.T) {
	s := newServer(t)
	var all sync.WaitGroup
	for range 10 { // of what is ready a watcher takes either
		all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			looks := 0
			p := NewProcesses(s.tmux.Runner)
			p.source = &turns{source: p.source, each: func() {
				looks++
				cancel()
				<-time.After(lookEvery + lookEvery/2) // as a slow one, and the next is due
			}}
			w := &Watcher{Tmux: s.tmux, Processes: p}
			if err := w.Watch(ctx); err != context.Canceled || looks != 1 {
				t.Errorf("ended in the first of %d looks, the watcher returns %v", looks, err)
			}
		})
	}
	all.Wait()
}

// A server that has the socket of one that has just ended must be watched in its place.
func TestServerAnew(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	pane := s.pane()
	s.types(pane, "docker run img claude")
	s.within(patient, pane, "claude|docker|")
	_, former, err := s.tmux.Server(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	second := *s
	second.tmux.Socket = filepath.Join(s.dir, "s2")
	second.must("-f", "/dev/null", "new-session", "-d", "-s", "work", "-x", "132", "-y", "40", "sh")
	// In one step, as nobody would do it, so that the watcher never finds no server.
	if err := os.Rename(second.tmux.Socket, s.tmux.Socket); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(former, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, runtime := range []string{"docker", "podman"} {
		pane := s.must("new-window", "-d", "-P", "-F", "#{pane_id}", runtime, "run", "img", "claude")
		s.within(patient, pane, "claude|"+runtime+"|")
	}
}
