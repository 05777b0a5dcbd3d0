package panes

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-container/agent-container/recognise"
	"github.com/agent-container/agent-container/spec"
)

// AttachedOption is set by an attach on the pane that it runs in, as
// "AGENT/RUNTIME/PID": what its screen shows is in a container, where no look at this
// machine's processes finds it.
const AttachedOption = "@agent_attached"

// attached is what the option says; the zero value is nothing.
type attached struct {
	Found
	pid int // of the attach; without it in front the option is a leftover
}

// Attach says in a pane's option that the process pid shows f there, until Detach.
func (t Tmux) Attach(ctx context.Context, pane string, f Found, pid int) error {
	_, err := t.call(ctx, "set-option", "-p", "-t", pane, AttachedOption, fmt.Sprintf("%s/%s/%d", f.Agent, f.Runtime, pid))
	return err
}

// Detach takes back what Attach has said.
func (t Tmux) Detach(ctx context.Context, pane string) error {
	_, err := t.call(ctx, "set-option", "-p", "-u", "-t", pane, AttachedOption)
	return err
}

// parseAttached reads the option. What is not of our making is nothing.
func parseAttached(value string) attached {
	words := strings.Split(value, "/")
	if len(words) != 3 || !slices.Contains(spec.AgentNames(), words[0]) {
		return attached{}
	}
	if _, ok := recognise.Runtime(words[1]); !ok {
		return attached{}
	}
	pid, err := strconv.Atoi(words[2])
	if err != nil || pid <= 0 {
		return attached{}
	}
	return attached{Found{words[0], words[1]}, pid}
}

// shows is what is in front where an attach is there: the agent of its session.
func (p *Processes) shows(f Front, a attached) Front {
	if f.Runtime != "" || a.pid == 0 {
		return f // a script with an agent's name may be what attaches
	}
	one, err := p.source.process(a.pid)
	if err != nil || one.gone || one.pgrp != f.group {
		return f
	}
	return Front{Found: a.Found, PID: a.pid, key: one.key(), group: f.group, nested: true}
}

// withoutStatus leaves out the status line of the session main in the container, which
// stands below the agent's last line.
func withoutStatus(screen string) string {
	screen = strings.TrimRight(screen, " \n")
	if at := strings.LastIndexByte(screen, '\n'); at >= 0 && strings.HasPrefix(screen[at+1:], "[main] ") {
		return screen[:at]
	}
	return screen
}
