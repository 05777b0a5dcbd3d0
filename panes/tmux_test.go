package panes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Marks must come with an agent, in a container or on the host, and go with it.
func TestMarksComeAndGo(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	for _, c := range []struct{ line, want string }{
		{"docker run -it --rm img claude", "claude|docker|"},
		{"podman exec -it box codex", "codex|podman|"},
		{"docker run -it --entrypoint bash img -lc 'claude; bash'", "claude|docker|"},
		{"claude --resume x", "claude||"},
		{"true | podman run img codex </dev/tty", "codex|podman|"},
		{"sh -c 'docker run img claude; true'", "claude|docker|"},
	} {
		pane := s.pane()
		s.types(pane, c.line)
		s.within(patient, pane, c.want)
		s.types(pane, "end")
		s.within(patient, pane, "||")
	}
}

// What is no agent must get no mark, as long as it is there.
func TestNoMarks(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	none, agent := s.pane(), s.pane()
	s.types(none, "docker run -it --name claude claude bash")
	s.runs(none, "docker")
	for range 3 { // rounds of the watcher, by another pane's marks
		s.types(agent, "docker run img claude")
		s.within(patient, agent, "claude|docker|")
		s.types(agent, "end")
		s.within(patient, agent, "||")
	}
	if got := s.marks(none); got != "||" {
		t.Errorf("the marks are %q", got)
	}
}

// The runtime's mark must go and the agent's stay when another program comes to the front; a new agent must take over at once.
func TestAnotherProgramInFront(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	pane := s.pane()
	s.types(pane, "docker run img claude & until test -e "+s.dir+"/go; do sleep 0.1; done; fg")
	s.types(pane, "")
	s.within(patient, pane, "||")
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.within(patient, pane, "claude|docker|")
	s.must("send-keys", "-t", pane, "C-z")
	s.within(patient, pane, "||")
	s.types(pane, "fg; editor")
	s.within(patient, pane, "claude|docker|")
	s.types(pane, "end")
	s.within(patient, pane, "claude||")
	s.types(pane, "end")
	s.within(patient, pane, "||")
}

// Marks that another watcher has left must go at the start, and ours at the end; with the server the watcher must end, without an error.
func TestStaleMarksAndEnds(t *testing.T) {
	s := newServer(t)
	stale, live := s.pane(), s.pane()
	s.must("set-option", "-p", "-t", stale, MarkAgent, "claude", ";", "set-option", "-p", "-t", stale, MarkRuntime, "docker")
	stop := s.watch(nil)
	s.within(patient, stale, "||")
	s.types(live, "docker run img claude")
	s.within(patient, live, "claude|docker|")
	if err := stop(); err != context.Canceled {
		t.Errorf("a watcher that is ended returns %v", err)
	}
	if got := s.marks(live); got != "||" {
		t.Errorf("after its end the marks are %q", got)
	}

	w := &Watcher{Tmux: s.tmux, Processes: NewProcesses(s.tmux.Runner)}
	done := make(chan error, 1)
	go func() { done <- w.Watch(context.Background()) }()
	s.within(patient, live, "claude|docker|")
	s.must("kill-server")
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("with the server the watcher ends with %v", err)
		}
	case <-time.After(patient):
		t.Error("the watcher outlives its server")
	}
}

// With 50 panes every mark must be there, each process be read once, and a secret in the arguments be in no option of tmux.
func TestFiftyPanes(t *testing.T) {
	s := newServer(t)
	panes := make([]string, 50)
	for i := range panes {
		panes[i] = s.must("new-window", "-d", "-P", "-F", "#{pane_id}", "docker", "run", "-e", "TOKEN=hunter2", "img", "claude", "--resume", "hunter2")
	}
	w := &Watcher{Tmux: s.tmux, Processes: NewProcesses(s.tmux.Runner)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Watch(ctx) }()
	for _, p := range panes {
		s.within(patient, p, "claude|docker|")
	}
	for _, p := range panes {
		if options := s.must("show-options", "-p", "-t", p) + s.must("show-options", "-g") + s.must("show-options", "-s"); strings.Contains(options, "hunter2") {
			t.Errorf("a secret is in the options of %s:\n%s", p, options)
		}
	}
	cancel()
	if err := <-done; err != context.Canceled {
		t.Error(err)
	}
	agents := 0
	for _, r := range w.Processes.known {
		if r.Agent != "" {
			agents++
		}
		if r.Agent != "" && r.reads != 1 {
			t.Errorf("the arguments of an agent were read %d times", r.reads)
		}
	}
	if agents != len(panes) {
		t.Errorf("%d agents are known, want %d", agents, len(panes))
	}
}

// The screens of many panes must be read, each as its own.
func TestScreensOfManyPanes(t *testing.T) {
	s := newServer(t)
	var panes []string
	for i := range atOnce + 5 {
		panes = append(panes, s.must("new-window", "-d", "-P", "-F", "#{pane_id}", "sh", "-c", fmt.Sprintf("echo screen-%d-; read x", i)))
	}
	s.until(func() string {
		seen := s.tmux.screens(context.Background(), panes)
		for i, pane := range panes {
			if want := fmt.Sprintf("screen-%d-", i); !strings.Contains(seen[pane], want) {
				return fmt.Sprintf("the screen of %s is %q, want %s", pane, seen[pane], want)
			}
		}
		return ""
	})
}

// A pane's mark must be there within a second of its agent, in a shell and in a new pane. The best of many tries counts, for other tests may have the processors.
func TestMarksWithinASecond(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	best := map[string]time.Duration{}
	for i := range 40 {
		if i > 2 && max(best["docker"], best["podman"]) < time.Second {
			break
		}
		for _, runtime := range []string{"docker", "podman"} {
			var pane string
			if i%2 == 0 {
				pane = s.pane()
				s.types(pane, runtime+" run img claude")
			} else {
				s.must("set-option", "-g", "remain-on-exit", "on")
				pane = s.must("new-window", "-d", "-P", "-F", "#{pane_id}", runtime, "run", "img", "claude")
			}
			came := s.within(patient, pane, "claude|"+runtime+"|")
			s.types(pane, "end")
			went := s.within(patient, pane, "||")
			t.Logf("%s: came after %v, went after %v", runtime, came.Round(time.Millisecond), went.Round(time.Millisecond))
			if took := max(came, went); i == 0 || took < best[runtime] {
				best[runtime] = took
			}
		}
	}
	for runtime, took := range best {
		if took > time.Second {
			t.Errorf("%s: %v", runtime, took)
		}
	}
}

// What is in front of a pane must be read without a watcher.
func TestFrontOfAPane(t *testing.T) {
	s := newServer(t)
	pane := s.pane()
	s.types(pane, "docker run img claude")
	s.until(func() string {
		f, err := s.front(pane)
		if err != nil || f.Found != (Found{"claude", "docker"}) || f.PID <= 0 {
			return fmt.Sprintf("in front is %+v, %v", f, err)
		}
		return ""
	})
}

// A server that is not there, and a pane that is not, must be told from other trouble.
func TestNoServer(t *testing.T) {
	s := newServer(t)
	var noPane *NoPaneError
	if _, err := s.tmux.Pane(context.Background(), "%99999"); !errors.As(err, &noPane) {
		t.Errorf("a pane that is not there: %v", err)
	}
	s.must("kill-server")
	var none *NoServerError
	if _, err := s.tmux.Panes(context.Background()); !errors.As(err, &none) {
		t.Errorf("without a server: %v", err)
	}
	for _, id := range []string{"", "%", "3", "%3;kill-server", "=work:0", "%1\n", "%1234567890"} {
		if ValidID(id) {
			t.Errorf("%q is taken for the id of a pane", id)
		}
	}
	if !ValidID("%0") || !ValidID("%4711") {
		t.Error("the id of a pane is not taken for one")
	}
}

// The name of a session must be listed as it is, in whatever locale.
func TestNameOfASession(t *testing.T) {
	s := newServer(t)
	s.tmux.Runner.Env = append(s.tmux.Runner.Env, "LC_ALL=C")
	s.must("rename-session", "-t", "work", "büro 2 [x]")
	panes, err := s.tmux.Panes(context.Background())
	if err != nil || len(panes) != 1 || panes[0].Where != "büro 2 [x]:0.0" {
		t.Errorf("the panes are %+v, %v", panes, err)
	}
}

// An agent that the user has named must be marked behind a program whose arguments do not tell, not behind the shell, and no more when the name is taken back.
func TestNamedByHand(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	pane := s.pane()
	s.must("set-option", "-p", "-t", pane, NameOption, "codex")
	for _, c := range []struct{ line, want string }{
		{"docker exec -it box bash", "codex|docker|"},
		{"editor", "codex||"},
		{"podman run img claude", "claude|podman|"},
	} {
		s.types(pane, c.line)
		s.within(patient, pane, c.want)
		s.types(pane, "end")
		s.within(patient, pane, "||")
	}
	s.must("set-option", "-p", "-t", pane, NameOption, "emacs")
	other := s.pane()
	round := func() {
		t.Helper()
		s.types(other, "claude")
		s.within(patient, other, "claude||")
		s.types(other, "end")
		s.within(patient, other, "||")
	}
	round() // with a pane that is new: tmux has been asked
	s.types(pane, "editor")
	s.runs(pane, "editor")
	round()
	if got := s.marks(pane); got != "||" {
		t.Errorf("named emacs, the marks are %q", got)
	}
	for _, taken := range [][]string{{"-p", "-u", "-t", pane, NameOption}, {"-p", "-t", pane, NameOption, "emacs"}} {
		s.must("set-option", "-p", "-t", pane, NameOption, "codex")
		s.within(patient, pane, "codex||")
		s.must(append([]string{"set-option"}, taken...)...)
		s.within(patient, pane, "||")
	}
}

// Where ps is read the marks must come and go as well.
func TestMarksByPS(t *testing.T) {
	s := newServer(t)
	pane := s.pane()
	s.run(&Watcher{Tmux: s.tmux, Processes: &Processes{source: &psSource{runner: s.tmux.Runner, arguments: exactArguments}, known: map[key]*reading{}}})
	for range 2 {
		s.types(pane, "docker run img bash -lc 'mise install; claude'")
		s.within(patient, pane, "claude|docker|")
		s.types(pane, "end")
		s.within(patient, pane, "||")
	}
}
