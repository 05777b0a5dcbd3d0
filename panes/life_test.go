package panes

import (
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// A pane's row and marks must follow what is in front of it: made with an agent, ended by the shell and with a name of the user's at once, by another program after half a minute, and kept while the runtime stays.
func TestLife(t *testing.T) {
	at := func(f Front, pid int) Front { f.key = key{pid: pid}; return f }
	docker := Front{Found: Found{"claude", "docker"}}
	podman := Front{Found: Found{"codex", "podman"}}
	host := Front{Found: Found{Agent: "claude"}}
	shell, other, named := Front{Shell: true}, Front{}, Front{Found: Found{"codex", "docker"}, named: true}
	type step struct {
		after                 time.Duration
		front                 Front
		agent, runtime, state string
	}
	for name, steps := range map[string][]step{
		"a runtime with an agent, then the shell": {
			{0, at(shell, 1), "", "", ""},
			{0, at(docker, 2), "claude", "docker", ""},
			{0, at(shell, 1), "", "", ""},
		},
		"a runtime without one":   {{0, at(other, 2), "", "", ""}, {time.Hour, at(other, 2), "", "", ""}},
		"an agent of the host":    {{0, at(host, 2), "claude", "", ""}, {0, at(shell, 1), "", "", ""}},
		"a script that goes on":   {{0, at(docker, 2), "claude", "docker", ""}, {time.Hour, at(docker, 2), "claude", "docker", ""}},
		"one agent after another": {{0, at(docker, 2), "claude", "docker", ""}, {0, at(podman, 3), "codex", "podman", ""}},
		"the host after a container": {
			{0, at(docker, 2), "claude", "docker", ""},
			{0, at(host, 3), "claude", "", ""},
		},
		"another program, for half a minute": {
			{0, at(docker, 2), "claude", "docker", ""},
			{0, at(other, 3), "claude", "", ""},
			{29 * time.Second, at(other, 3), "claude", "", ""},
			{time.Second, at(other, 4), "", "", ""},
			{time.Hour, at(other, 4), "", "", ""},
		},
		"back in time, and behind again": {
			{0, at(docker, 2), "claude", "docker", ""},
			{0, at(other, 3), "claude", "", ""},
			{29 * time.Second, at(docker, 2), "claude", "docker", ""},
			{0, at(other, 3), "claude", "", ""},
			{29 * time.Second, at(other, 3), "claude", "", ""},
		},
		"a name that is taken back": {
			{0, at(named, 2), "codex", "docker", ""},
			{time.Second, at(other, 2), "", "", ""},
		},
		"a name that is taken back behind another agent": {
			{0, at(named, 2), "codex", "docker", ""},
			{0, at(host, 3), "claude", "", ""},
			{0, at(other, 4), "claude", "", ""},
		},
		"another program, then the shell": {
			{0, at(docker, 2), "claude", "docker", ""},
			{0, at(other, 3), "claude", "", ""},
			{time.Second, at(shell, 1), "", "", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l life
			now := time.Unix(1e9, 0)
			for i, s := range steps {
				now = now.Add(s.after)
				l = l.next(s.front, now)
				if l.Agent != s.agent || l.Runtime != s.runtime || string(l.State) != s.state {
					t.Fatalf("after step %d: %q in %q, %q; want %q in %q, %q", i, l.Agent, l.Runtime, l.State, s.agent, s.runtime, s.state)
				}
			}
		})
	}
}

// A state must stay with its process while it is in front, and not go over to what comes to the front then.
func TestLifeKeepsItsState(t *testing.T) {
	now := time.Unix(1e9, 0)
	docker := Front{Found: Found{"claude", "docker"}, key: key{pid: 2}}
	l := life{}.next(docker, now)
	l.State = spec.ScreenWaiting
	if l = l.next(docker, now); l.State != spec.ScreenWaiting {
		t.Errorf("in front it is %q", l.State)
	}
	if l = l.next(Front{key: key{pid: 3}}, now); l.State != "" || l.Agent != "claude" {
		t.Errorf("behind another program it is %q of %q", l.State, l.Agent)
	}
	docker.key.pid = 4
	if l = l.next(docker, now); l.State != "" {
		t.Errorf("another process has the state %q", l.State)
	}
}

// Somebody must be told of a question and of an end of work, once, and only where he does not see it.
func TestCalled(t *testing.T) {
	const working, waiting, idle = spec.ScreenWorking, spec.ScreenWaiting, spec.ScreenIdle
	for _, c := range []struct {
		from, to spec.ScreenState
		want     bool
	}{
		{"", waiting, true}, {working, waiting, true}, {idle, waiting, true}, {waiting, waiting, false},
		{"", idle, false}, {working, idle, true}, {waiting, idle, true}, {idle, idle, false},
		{idle, working, false}, {waiting, working, false},
	} {
		if got := calling(c.from, c.to, false); got != c.want {
			t.Errorf("from %q to %q: %v", c.from, c.to, got)
		}
		if calling(c.from, c.to, true) {
			t.Errorf("from %q to %q: told of a pane in view", c.from, c.to)
		}
	}
}

// The next pane must be one that waits, in order and around, and never the current one.
func TestNext(t *testing.T) {
	list := func(states string) []Pane {
		var panes []Pane
		for i, s := range states {
			state := map[rune]spec.ScreenState{'w': spec.ScreenWaiting, 'r': spec.ScreenWorking, 'i': spec.ScreenIdle}[s]
			panes = append(panes, Pane{ID: "%" + string(rune('0'+i)), State: state})
		}
		return panes
	}
	for _, c := range []struct{ states, current, want string }{
		{"wrw", "%0", "%2"}, {"wrw", "%1", "%2"}, {"wrw", "%2", "%0"}, {"rwi", "%1", ""},
		{"rwi", "%2", "%1"}, {"rii", "%0", ""}, {"irw", "%9", "%2"}, {"", "%0", ""},
	} {
		if got, ok := Next(list(c.states), c.current); got.ID != c.want || ok != (c.want != "") {
			t.Errorf("%s from %s: %q, %v; want %q", c.states, c.current, got.ID, ok, c.want)
		}
	}
}
