package panes

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/process"
)

var claudeInDocker = []string{"docker", "run", "-it", "img", "claude"}

// The program in front must be the leader of the foreground group, or what it has started in that group, and the shell where nothing is.
func TestFront(t *testing.T) {
	for name, c := range map[string]struct {
		make func(fakeProc)
		want string
	}{
		"the shell": {func(f fakeProc) { f.put(10, "zsh", "S", 10, 10, 1, "", "-zsh") }, "shell"},
		"a job in the background": {func(f fakeProc) {
			f.put(10, "zsh", "S", 10, 10, 1, "20", "-zsh")
			f.put(20, "docker", "S", 20, 10, 2, "", claudeInDocker...)
		}, "shell"},
		"a runtime": {func(f fakeProc) {
			f.put(10, "zsh", "S", 10, 20, 1, "20", "-zsh")
			f.put(20, "docker", "S", 20, 20, 2, "", claudeInDocker...)
		}, "claude docker 20"},
		"a program with a hard name": {func(f fakeProc) {
			f.put(10, "zsh", "S", 10, 20, 1, "20", "-zsh")
			f.put(20, "a) S (b 1 2", "S", 20, 20, 2, "", "a", "claude")
		}, "other"},
		"a script that starts one": {func(f fakeProc) {
			f.put(10, "zsh", "S", 10, 20, 1, "20", "-zsh")
			f.put(20, "start.sh", "S", 20, 20, 2, "21", "/bin/sh", "./start.sh")
			f.put(21, "podman", "S", 20, 20, 3, "", "podman", "run", "img", "codex")
		}, "codex podman 21"},
		"a child in a group of its own": {func(f fakeProc) {
			f.put(10, "zsh", "S", 10, 20, 1, "20", "-zsh")
			f.put(20, "make", "S", 20, 20, 2, "21", "make")
			f.put(21, "docker", "S", 21, 20, 3, "", claudeInDocker...)
		}, "other"},
		"the end of a pipe": {func(f fakeProc) {
			f.put(10, "zsh", "S", 10, 20, 1, "21", "-zsh")
			f.put(21, "docker", "S", 20, 20, 3, "", claudeInDocker...)
		}, "claude docker 21"},
		"a leader that nobody has waited for": {func(f fakeProc) {
			f.put(10, "zsh", "S", 10, 20, 1, "20 21", "-zsh")
			f.put(20, "true", "Z", 20, 20, 2, "")
			f.put(21, "docker", "S", 20, 20, 3, "", claudeInDocker...)
		}, "claude docker 21"},
		"the pane's own first process": {func(f fakeProc) { f.put(10, "docker", "S", 10, 10, 1, "", claudeInDocker...) }, "claude docker 10"},
		"an agent of the host": {func(f fakeProc) {
			f.put(10, "bash", "S", 10, 20, 1, "20", "bash")
			f.put(20, "node", "S", 20, 20, 2, "", "node", "/usr/bin/codex")
		}, "codex  20"},
		"a script with the name of an agent, which starts a container": {func(f fakeProc) {
			f.put(10, "bash", "S", 10, 20, 1, "20", "bash")
			f.put(20, "claude", "S", 20, 20, 2, "21", "/bin/sh", "/home/me/bin/claude", "--resume")
			f.put(21, "docker", "S", 20, 20, 3, "", "docker", "run", "-it", "img", "claude", "--resume")
		}, "claude docker 21"},
		"a script with the name of an agent": {func(f fakeProc) {
			f.put(10, "bash", "S", 10, 20, 1, "20", "bash")
			f.put(20, "claude", "S", 20, 20, 2, "21", "/bin/sh", "/home/me/bin/claude")
			f.put(21, "node", "S", 20, 20, 3, "", "node", "cli.js")
		}, "claude  20"},
		"an agent that runs another": {func(f fakeProc) {
			f.put(10, "bash", "S", 10, 20, 1, "20", "bash")
			f.put(20, "claude", "S", 20, 20, 2, "21", "claude")
			f.put(21, "docker", "S", 20, 20, 3, "", "docker", "run", "img", "codex")
		}, "claude  20"},
		"a script of a shell that goes on": {func(f fakeProc) {
			f.put(10, "bash", "S", 10, 20, 1, "20", "bash")
			f.put(20, "sh", "S", 20, 20, 2, "21", "sh", "-ec", "docker run img claude; sleep 100")
			f.put(21, "sleep", "S", 20, 20, 3, "", "sleep", "100")
		}, "other"},
		"a shell at its prompt, with a helper of its own": {func(f fakeProc) {
			f.put(10, "zsh", "S", 10, 10, 1, "11", "-zsh")
			f.put(11, "gitstatusd", "S", 10, 10, 2, "", "gitstatusd")
		}, "shell"},
		"a pane's first process that is no shell": {func(f fakeProc) {
			f.put(10, "docker", "S", 10, 10, 1, "", "docker", "exec", "-it", "box", "bash")
		}, "other"},
		"the end of a pipe in a shell in a shell": {func(f fakeProc) {
			f.put(10, "zsh", "S", 10, 30, 1, "20", "-zsh")
			f.put(20, "bash", "S", 20, 30, 2, "31", "bash")
			f.put(31, "docker", "S", 30, 30, 3, "", claudeInDocker...)
		}, "claude docker 31"},
		"what another thread has started": {func(f fakeProc) {
			f.put(10, "zsh", "S", 10, 20, 1, "20", "-zsh")
			f.put(20, "launch", "S", 20, 20, 2, "", "launch")
			f.thread(20, 22, "21")
			f.put(21, "docker", "S", 20, 20, 3, "", claudeInDocker...)
		}, "claude docker 21"},
		"nothing":      {func(f fakeProc) { f.put(10, "bash", "S", 10, 20, 1, "", "bash") }, "none"},
		"no terminal":  {func(f fakeProc) { f.put(10, "bash", "S", 10, -1, 1, "", "bash") }, "none"},
		"no such pane": {func(fakeProc) {}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fakeProc{t, t.TempDir()}
			c.make(f)
			got := "none"
			switch front, ok := f.processes().front(10); {
			case ok && front.Agent != "":
				got = fmt.Sprintf("%s %s %d", front.Agent, front.Runtime, front.PID)
			case ok && front.Shell:
				got = "shell"
			case ok:
				got = "other"
			}
			if got != c.want {
				t.Errorf("in front is %q, want %q", got, c.want)
			}
		})
	}
}

// countingSource counts what is read.
type countingSource struct {
	source
	processes, reads int
}

func (c *countingSource) process(pid int) (proc, error) {
	c.processes++
	return c.source.process(pid)
}

func (c *countingSource) read(p proc) (said, error) {
	c.reads++
	return c.source.read(p)
}

// Of a program that has started hundreds of others, as make does, a look must read a few.
func TestBoundedLook(t *testing.T) {
	f := fakeProc{t, t.TempDir()}
	f.put(10, "bash", "S", 10, 20, 1, "20", "bash")
	next := 21
	var grow func(pid, depth int)
	grow = func(pid, depth int) {
		var children []string
		for range 8 {
			if child := next; depth < 3 {
				next++
				grow(child, depth+1)
				children = append(children, fmt.Sprint(child))
			}
		}
		f.put(pid, "make", "S", 20, 20, pid, strings.Join(children, " "), "make")
	}
	grow(20, 0)
	p := f.processes()
	counted := &countingSource{source: p.source}
	p.source = counted
	if front, ok := p.front(10); !ok || front.Agent != "" || front.Shell {
		t.Errorf("in front is %+v, %v", front, ok)
	}
	if most := maxRelatives + 2; counted.processes > most || counted.reads > most {
		t.Errorf("of %d processes %d and the arguments of %d were read, want at most %d", next-20, counted.processes, counted.reads, most)
	}
}

// What a script with an agent's name attaches to must be in front, and not that agent.
func TestAttachInAScript(t *testing.T) {
	f := fakeProc{t, t.TempDir()}
	f.put(10, "bash", "S", 10, 20, 1, "20", "bash")
	f.put(20, "claude", "S", 20, 20, 2, "21", "/bin/sh", "/home/me/bin/claude")
	f.put(21, "agent-container", "S", 20, 20, 3, "", "agent-container", "attach", "web")
	got, ok := f.processes().inPane(Pane{PID: 10, attached: attached{Found{"codex", "docker"}, 21}})
	if !ok || got.Found != (Found{"codex", "docker"}) || !got.nested {
		t.Errorf("in front is %+v, %v", got, ok)
	}
}

// The arguments of an agent's process must be read once, again after an exec and for a new process of the same number, and not for ever where there is no agent.
func TestReadOnce(t *testing.T) {
	f := fakeProc{t, t.TempDir()}
	p := f.processes()
	counted := &countingSource{source: p.source}
	p.source = counted
	look := func(agent string, reads int) {
		t.Helper()
		for range 10 {
			if err := p.begin(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got, _ := p.front(10); got.Agent != agent {
				t.Fatalf("in front is %q, want %q", got.Agent, agent)
			}
		}
		if counted.reads != reads {
			t.Errorf("arguments were read %d times, want %d", counted.reads, reads)
		}
	}
	f.put(10, "docker", "S", 10, 10, 1, "", claudeInDocker...)
	look("claude", 1)
	f.put(10, "docker", "S", 10, 10, 2, "", "docker", "run", "img", "codex")
	look("codex", 2)
	f.put(10, "podman", "S", 10, 10, 2, "", "podman", "run", "img", "pi")
	look("pi", 3)
	f.put(10, "docker", "S", 10, 10, 9, "", "docker", "run", "img", "bash")
	look("", 3+maxReads)
	f.stack(10, "7ffc0")
	look("", 3+maxReads+1)
	f.put(10, "docker", "S", 10, 10, 9, "", claudeInDocker...)
	f.stack(10, "7ffd0")
	look("claude", 3+maxReads+2)
	if len(p.known) != 1 {
		t.Errorf("%d processes are remembered, want the one that is there", len(p.known))
	}
}

// A line of ps must give the same answer, as far as the joined arguments do.
func TestParsePS(t *testing.T) {
	const start = "Ss+  Mon Nov 30 15:00:01 2026 "
	for line, want := range map[string]string{
		"  20   10    20    20 " + start + "docker run -it img claude --model opus":     "20 10 20 20 docker claude docker",
		"20 10 20 20 " + start + "/usr/bin/podman run img bash -lc mise install; codex": "20 10 20 20 podman codex podman",
		"20 10 20 20 " + start + "docker run -e MOTD=hello big world img claude":        "20 10 20 20 docker  ",
		"20 10 20 20 " + start + "node /usr/bin/pi -p":                                  "20 10 20 20 node pi ",
		"20 10 20 -1 " + start + "-zsh":                                                 "20 10 20 -1 -zsh  ",
		"20 10 20 20 " + start:                                                          "not understood",
		"PID PPID PGID TPGID " + start + "x":                                            "not understood",
		"":                                                                              "not understood",
	} {
		p, parent, f, ok := parsePS(line)
		got := fmt.Sprint(p.pid, " ", parent, " ", p.pgrp, " ", p.foreground, " ", p.comm, " ", f.Agent, " ", f.Runtime)
		if !ok {
			got = "not understood"
		}
		if got != want {
			t.Errorf("%q:\n%q, want\n%q", line, got, want)
		}
	}
}

// The ps that is installed must print what is read.
func TestInstalledPS(t *testing.T) {
	s := &psSource{runner: &process.Runner{}, arguments: exactArguments}
	if err := s.refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	me, err := s.process(os.Getpid())
	exact, err2 := slashProc{"/proc"}.process(os.Getpid())
	if err != nil || err2 == nil && (me.pgrp != exact.pgrp || me.foreground != exact.foreground) {
		t.Errorf("this process is %+v, %v; /proc has %+v, %v", me, err, exact, err2)
	}
}
