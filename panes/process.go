// Package panes says which agent is where in tmux: it reads the program in front of
// each pane, keeps marks on panes, and reads the state of agents from their screens.
// Arguments can hold credentials: of them only the agent's and the runtime's name
// leave this package.
package panes

import (
	"context"
	"errors"
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
	pid, pgrp, foreground int // foreground: the process group in front of its terminal
	comm, start           string
	stack                 string // where the kernel tells: another after each exec
	threads               int
	gone                  bool // it has ended and nobody has waited for it
}

// key tells a process from a later one of the same number, and from what it was
// before an exec.
type key struct {
	pid                int
	start, comm, stack string
}

func (p proc) key() key { return key{p.pid, p.start, p.comm, p.stack} }

// source is where processes are read.
type source interface {
	// refresh is called before each round of looks.
	refresh(ctx context.Context) error
	process(pid int) (proc, error)
	children(p proc) []int
	// read reads the arguments of a process.
	read(p proc) (said, error)
	pids() ([]int, error)
}

// Processes reads processes of this machine: in /proc, exactly, and where that is not
// there by ps, which joins arguments with blanks.
type Processes struct {
	source source
	known  map[key]*reading
	left   int // of maxRelatives, for the pane that is looked at
}

// said is all that is kept of a process's arguments.
type said struct {
	Found
	script bool // it is a shell, and has been given a script
}

type reading struct {
	said
	reads int
	seen  bool // in this round
}

// maxReads is how often arguments without an agent are read where no exec is told: a
// script called docker that is replaced by the real docker looks the same there.
const maxReads = 3

// NewProcesses finds out how processes are read here.
func NewProcesses(r *process.Runner) *Processes {
	p := &Processes{source: slashProc{"/proc"}, known: map[key]*reading{}}
	if _, err := p.source.process(os.Getpid()); err != nil {
		p.source = &psSource{runner: r, arguments: exactArguments}
	}
	return p
}

// ErrNoProcess is that of a process that is not there, or not any more.
var ErrNoProcess = errors.New("there is no such process")

// Process reads one process; errors.Is tells ErrNoProcess.
func (p *Processes) Process(ctx context.Context, pid int) (Found, error) {
	if err := p.source.refresh(ctx); err != nil {
		return Found{}, err
	}
	one, err := p.source.process(pid)
	if err != nil {
		return Found{}, fmt.Errorf("cannot read the arguments of process %d: %w", pid, err)
	}
	says, err := p.source.read(one)
	if err != nil {
		return Found{}, fmt.Errorf("cannot read the arguments of process %d: %w", pid, err)
	}
	return says.Found, nil
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
		if says, err := p.source.read(one); err == nil && says.Agent != "" {
			visit(pid, says.Found)
		}
	}
	return err
}

// Front is the program in front of a terminal.
type Front struct {
	Found
	PID   int
	Shell bool // a shell at its prompt

	key    key
	group  int  // the process group in front
	nested bool // its screen is that of a tmux in the container
	named  bool // the agent is the one that the user has named
}

// front is the program in front of the terminal whose first process is pid: the
// leader of the foreground process group, or what it has started in that group.
// Arguments are read once a process.
func (p *Processes) front(pid int) (Front, bool) {
	p.left = maxRelatives
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
		var ok bool
		if leader, ok = p.member(first, first.foreground, 0); !ok {
			return Front{}, false
		}
	}
	if found, in, ok := p.below(leader, 0); ok {
		return Front{Found: found, PID: in.pid, key: in.key(), group: first.foreground}, true
	}
	return Front{PID: leader.pid, Shell: p.prompt(leader), key: leader.key(), group: first.foreground}, true
}

// prompt reports whether q is a shell that waits for a command: not one with a script
// whose command, in the shell's own group, is running.
func (p *Processes) prompt(q proc) bool {
	if !slices.Contains(shells, strings.TrimPrefix(q.comm, "-")) {
		return false
	}
	return !p.read(q).script || len(p.group(q)) == 0
}

// orNamed is f with the agent that the user has named for its pane, where arguments
// tell of none. Behind the prompt of a shell there is none all the same.
func (f Front) orNamed(named string) Front {
	if f.Agent != "" || f.Shell || named == "" {
		return f
	}
	f.Agent, f.named = named, true
	f.Runtime, _ = recognise.Runtime(f.key.comm)
	return f
}

// Scripts that start a container have it as a child, in their own process group. What
// make starts is many, and none of them.
const (
	maxDepth     = 4
	maxChildren  = 8
	maxRelatives = 32
)

// below looks for an agent in q and in what it has started in its process group. A
// script called claude that starts a container with claude is that container's.
func (p *Processes) below(q proc, depth int) (Found, proc, bool) {
	says := p.read(q)
	if says.Agent != "" && !(says.script && says.Runtime == "") {
		return says.Found, q, true
	}
	if depth < maxDepth {
		for _, c := range p.group(q) {
			if f, in, ok := p.below(c, depth+1); ok {
				return f, in, true
			}
		}
	}
	return says.Found, q, says.Agent != ""
}

// group are the children of q in its own process group.
func (p *Processes) group(q proc) []proc {
	var list []proc
	for _, c := range p.living(q) {
		if c.pgrp == q.pgrp {
			list = append(list, c)
		}
	}
	return list
}

// member is a process of a group, which q or a shell below it has started.
func (p *Processes) member(q proc, group, depth int) (proc, bool) {
	children := p.living(q)
	for _, c := range children {
		if c.pgrp == group {
			return c, true
		}
	}
	if depth < maxDepth {
		for _, c := range children {
			if in, ok := p.member(c, group, depth+1); ok {
				return in, true
			}
		}
	}
	return proc{}, false
}

// living are some children of q that have not ended.
func (p *Processes) living(q proc) []proc {
	var list []proc
	for _, pid := range p.source.children(q) {
		if p.left--; p.left < 0 || len(list) == maxChildren {
			break
		}
		if c, err := p.source.process(pid); err == nil && !c.gone {
			list = append(list, c)
		}
	}
	return list
}

// read returns what the arguments of q say, from memory where they were read.
func (p *Processes) read(q proc) said {
	r := p.known[q.key()]
	if r == nil {
		r = &reading{}
		p.known[q.key()] = r
	}
	r.seen = true
	if r.reads == 0 || r.Agent == "" && q.stack == "" && r.reads < maxReads {
		r.reads++
		if says, err := p.source.read(q); err == nil {
			r.said = says
		}
	}
	return r.said
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
	if pane.dead {
		return Front{Shell: true}, true
	}
	f, ok := p.front(pane.PID)
	if !ok {
		return Front{}, false
	}
	return p.shows(f, pane.attached).orNamed(pane.named), true
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
