package panes

import (
	"context"
	"testing"
	"time"
)

// Behind another program an agent must keep its row for about half a minute and then lose it; back in front before that it must keep it.
func TestHalfAMinute(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	left, back := s.pane(), s.pane()
	var begun time.Time
	for _, pane := range []string{back, left} {
		s.types(pane, "docker run img claude; editor; claude")
		s.within(patient, pane, "claude|docker|")
		begun = time.Now() // the half minute of the second begins after it
		s.types(pane, "end")
		s.within(patient, pane, "claude||")
	}
	s.types(back, "end") // claude of the host, in time
	s.within(Behind+patient, left, "||")
	if took := time.Since(begun); took < Behind-10*time.Second {
		t.Errorf("the row was gone after %v", took)
	}
	if got := s.marks(back); got != "claude||" {
		t.Errorf("in front again, the marks are %q", got)
	}
}

// turns is a source with something that happens before it is read anew: the next of what
// is left, or each time the same.
type turns struct {
	source
	left []func()
	each func()
}

func (s *turns) refresh(ctx context.Context) error {
	if s.each != nil {
		s.each()
	}
	if len(s.left) > 0 {
		s.left[0]()
		s.left = s.left[1:]
	}
	return s.source.refresh(ctx)
}

// A shell that is in front for a moment, between two programs of one line or two commands of a script, must not end a row; one that stays must, in the same look.
func TestShellForAMoment(t *testing.T) {
	s := newServer(t)
	for name, c := range map[string]struct {
		then func(fakeProc) // what is in front after the agent
		next func(fakeProc) // and a moment later
		want string
	}{
		"the shell of a line, then a program": {
			func(f fakeProc) { f.put(10, "sh", "S", 10, 10, 1, "", "sh") },
			func(f fakeProc) {
				f.put(10, "sh", "S", 10, 30, 1, "30", "sh")
				f.put(30, "editor", "S", 30, 30, 3, "", "editor")
			},
			"claude||",
		},
		"the shell of a line, then another agent": {
			func(f fakeProc) { f.put(10, "sh", "S", 10, 10, 1, "", "sh") },
			func(f fakeProc) {
				f.put(10, "sh", "S", 10, 30, 1, "30", "sh")
				f.put(30, "podman", "S", 30, 30, 3, "", "podman", "run", "img", "codex")
			},
			"codex|podman|",
		},
		"what the shell has started, before it becomes a program": {
			func(f fakeProc) {
				f.put(10, "sh", "S", 10, 30, 1, "30", "sh")
				f.put(30, "sh", "S", 30, 30, 3, "", "sh")
			},
			func(f fakeProc) { f.put(30, "editor", "S", 30, 30, 3, "", "editor") },
			"claude||",
		},
		"a script between two commands": {
			func(f fakeProc) {
				f.put(10, "sh", "S", 10, 40, 1, "40", "sh")
				f.put(40, "sh", "S", 40, 40, 3, "", "sh", "-c", "docker run img claude; make")
			},
			func(f fakeProc) {
				f.put(40, "sh", "S", 40, 40, 3, "41", "sh", "-c", "docker run img claude; make")
				f.put(41, "make", "S", 40, 40, 4, "", "make")
			},
			"claude||",
		},
		"the shell at its prompt": {
			func(f fakeProc) { f.put(10, "sh", "S", 10, 10, 1, "", "sh") },
			func(fakeProc) {},
			"||",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := fakeProc{t, t.TempDir()}
			p := f.processes()
			story := &turns{source: p.source, left: []func(){
				func() {
					f.put(10, "sh", "S", 10, 20, 1, "20", "sh")
					f.put(20, "docker", "S", 20, 20, 2, "", claudeInDocker...)
				},
				func() { c.then(f) },
				func() { c.next(f) },
			}}
			p.source = story
			pane := s.pane()
			w := &Watcher{Tmux: s.tmux, Processes: p, panes: []Pane{{ID: pane, PID: 10}}}
			w.begin(0)
			for _, want := range []string{"claude|docker|", c.want} {
				w.looks = 1 // and so tmux is not asked
				if err := w.look(context.Background(), time.Now()); err != nil {
					t.Fatal(err)
				}
				if got := s.marks(pane); got != want {
					t.Errorf("the marks are %q, want %q", got, want)
				}
			}
			if len(story.left) != 0 {
				t.Errorf("%d turns are left", len(story.left))
			}
		})
	}
}
