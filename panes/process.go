// Package panes says which agent is where in tmux: it reads the program in front of
// each pane, keeps marks on panes, and reads the state of agents from their screens.
// Arguments can hold credentials: of them only the agent's and the runtime's name
// leave this package.
package panes

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/recognise"
)

// Found is an agent in front of a pane or in a process; the zero value is none.
type Found struct {
	Agent   string
	Runtime string // docker, podman, nerdctl, container or sbx; "" on the host itself
}

// proc is what is read of a process at every look. Of its arguments nothing is kept.
type proc struct {
	pid, pgrp, foreground int    // foreground: the process group in front of its terminal
	comm, start           string // a program that is replaced by exec keeps pid and start
	gone                  bool   // it has ended and nobody has waited for it
}

// key tells a process from a later one of the same number, and from what it was
// before an exec.
type key struct {
	pid         int
	start, comm string
}

func (p proc) key() key { return key{p.pid, p.start, p.comm} }

// source is where processes are read.
type source interface {
	// refresh is called before each round of looks.
	refresh(ctx context.Context) error
	process(pid int) (proc, error)
	children(pid int) []int
	// agent reads the arguments of a process, on the host or in a container.
	agent(p proc) (Found, error)
	pids() ([]int, error)
}

// Processes reads processes of this machine: in /proc, exactly, and where that is not
// there by ps, which joins arguments with blanks.
type Processes struct {
	source source
	known  map[key]*reading
	Reads  int // of arguments
}

// reading is what the arguments of a process said.
type reading struct {
	found Found
	reads int
	seen  bool // in this round
}

// maxReads is how often arguments without an agent are read: a script called docker
// that is replaced by the real docker keeps its name.
const maxReads = 3

// NewProcesses finds out how processes are read here.
func NewProcesses(r *process.Runner) *Processes {
	p := &Processes{source: slashProc{"/proc"}, known: map[key]*reading{}}
	if _, err := p.source.process(os.Getpid()); err != nil {
		p.source = &psSource{runner: r, arguments: exactArguments}
	}
	return p
}

// Process reads one process.
func (p *Processes) Process(ctx context.Context, pid int) (Found, error) {
	if err := p.source.refresh(ctx); err != nil {
		return Found{}, err
	}
	one, err := p.source.process(pid)
	if err != nil {
		return Found{}, fmt.Errorf("cannot read the arguments of process %d: %w", pid, err)
	}
	found, err := p.source.agent(one)
	if err != nil {
		return Found{}, fmt.Errorf("cannot read the arguments of process %d: %w", pid, err)
	}
	return found, nil
}

// All calls visit for every process that runs an agent, but those that end meanwhile
// and those that the system hides.
func (p *Processes) All(ctx context.Context, visit func(pid int, f Found)) error {
	if err := p.source.refresh(ctx); err != nil {
		return err
	}
	pids, err := p.source.pids()
	for _, pid := range pids {
		one, err := p.source.process(pid)
		if err != nil {
			continue
		}
		if f, err := p.source.agent(one); err == nil && f.Agent != "" {
			visit(pid, f)
		}
	}
	return err
}

// Front is the program in front of a terminal.
type Front struct {
	Found
	PID   int
	Shell bool // the terminal's first process itself, or another shell

	key    key
	group  int  // the process group in front
	nested bool // its screen is that of a tmux in the container
}

// shells are the programs behind whose prompt no agent is.
var shells = []string{"sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "tcsh", "csh", "nu", "xonsh", "elvish", "pwsh"}

// front is the program in front of the terminal whose first process is pid: the
// leader of the foreground process group, or what it has started in that group.
// Arguments are read once a process.
func (p *Processes) front(pid int) (Front, bool) {
	first, err := p.source.process(pid)
	if err != nil || first.foreground <= 0 {
		return Front{}, false
	}
	leader := first
	if first.foreground != pid {
		leader, err = p.source.process(first.foreground)
	}
	if err != nil || leader.gone {
		// Of "echo | docker run" the leader is over first.
		leader, err = proc{}, nil
		for _, child := range p.source.children(pid) {
			if c, err := p.source.process(child); err == nil && c.pgrp == first.foreground && !c.gone {
				leader = c
				break
			}
		}
	}
	if leader.pid == 0 {
		return Front{}, false
	}
	if found, in, ok := p.below(leader, 0); ok {
		return Front{Found: found, PID: in.pid, key: in.key(), group: first.foreground}, true
	}
	shell := leader.pid == pid || slices.Contains(shells, strings.TrimPrefix(leader.comm, "-"))
	return Front{PID: leader.pid, Shell: shell, key: leader.key(), group: first.foreground}, true
}

// called is f with the agent that the user has named for its pane, where arguments tell
// of none. Behind the prompt of a shell there is none all the same.
func (f Front) called(named string) Front {
	if f.Agent != "" || f.Shell || named == "" {
		return f
	}
	f.Agent = named
	f.Runtime, _ = recognise.Runtime(f.key.comm)
	return f
}

// Scripts that start a container have it as a child, in their own process group.
const (
	maxDepth    = 4
	maxChildren = 8
)

// below looks for an agent in q and in what it has started in its process group.
func (p *Processes) below(q proc, depth int) (Found, proc, bool) {
	if f := p.read(q); f.Agent != "" {
		return f, q, true
	}
	if depth == maxDepth {
		return Found{}, proc{}, false
	}
	children := p.source.children(q.pid)
	for _, pid := range children[:min(len(children), maxChildren)] {
		c, err := p.source.process(pid)
		if err != nil || c.pgrp != q.pgrp || c.gone {
			continue
		}
		if f, in, ok := p.below(c, depth+1); ok {
			return f, in, true
		}
	}
	return Found{}, proc{}, false
}

// read returns what the arguments of q say, from memory where they were read.
func (p *Processes) read(q proc) Found {
	r := p.known[q.key()]
	if r == nil {
		r = &reading{}
		p.known[q.key()] = r
	}
	r.seen = true
	if r.found.Agent == "" && r.reads < maxReads {
		p.Reads++
		if f, err := p.source.agent(q); err == nil {
			r.found, r.reads = f, r.reads+1
		}
	}
	return r.found
}

// Front is what is in front of a pane.
func (p *Processes) Front(ctx context.Context, pane Pane) (Front, error) {
	if err := p.begin(ctx); err != nil {
		return Front{}, err
	}
	f, ok := p.inPane(pane)
	if !ok {
		return Front{}, fmt.Errorf("cannot see what is in front of the terminal of process %d", pane.PID)
	}
	return f, nil
}

// inPane is what processes say of a pane, and where they say nothing an attach or the user.
func (p *Processes) inPane(pane Pane) (Front, bool) {
	f, ok := p.front(pane.PID)
	return p.shows(f, pane.attached).called(pane.named), ok
}

// begin starts a round of looks; what the last one has not met is forgotten.
func (p *Processes) begin(ctx context.Context) error {
	for k, r := range p.known {
		if !r.seen {
			delete(p.known, k)
		}
		r.seen = false
	}
	return p.source.refresh(ctx)
}
