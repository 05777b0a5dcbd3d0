package cli

import (
	"context"
	"errors"
	"io"
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/panes"
	"github.com/agent-container/agent-container/recognise"
)

func detectCommand() command {
	return command{
		name: "detect", group: groupLook, args: "[-- CMD...]",
		usage: "say which agents run in containers, by the command lines of docker, podman, nerdctl, container and sbx",
		detail: "Reads one process, all processes that may be read, what is in front of a tmux pane, or the command line after --, which is not run.\n" +
			"A pane's agent may also run on the host itself.\n" +
			"Arguments can hold credentials: of them only the agent's and the runtime's name are printed.",
		flags: []ucli.Flag{
			&ucli.IntFlag{Name: "pid", Usage: "read the process `PID`"},
			&ucli.StringFlag{Name: "pane", Usage: "read what is in front of the tmux pane `%N`"},
			&ucli.BoolFlag{Name: "all", Usage: "read every process"},
		},
		max: -1, child: true, run: (*app).detect,
	}
}

// detectAnswer is every agent that was recognised.
type detectAnswer struct {
	Agents []detected `json:"agents"`
}

// detected is an agent, in a container or in a pane. Nothing else of a command line may be kept.
type detected struct {
	PID     int    `json:"pid,omitempty"` // of the runtime's program; none for a command line that was given
	Agent   string `json:"agent"`
	Runtime string `json:"runtime"` // "" for an agent of the host, in a pane
}

func (d detectAnswer) text(w io.Writer) {
	if len(d.Agents) == 0 {
		return
	}
	rows := make([][]string, len(d.Agents))
	for i, f := range d.Agents {
		rows[i] = []string{"", f.Agent, f.Runtime}
		if f.PID != 0 {
			rows[i][0] = strconv.Itoa(f.PID)
		}
	}
	table(w, []string{"PID", "AGENT", "RUNTIME"}, rows)
}

func (a *app) detect(ctx context.Context, c *ucli.Context) (any, error) {
	argv := c.Args().Slice()
	asked := 0
	for _, given := range []bool{c.IsSet("pid"), c.IsSet("pane"), c.Bool("all"), len(argv) > 0} {
		if given {
			asked++
		}
	}
	if asked != 1 {
		return nil, refuse("run: agent-container detect --all", "detect needs one of --pid PID, --pane %%N, --all and -- CMD...")
	}
	answer := detectAnswer{Agents: []detected{}}
	var err error
	switch {
	case len(argv) > 0:
		if agent, runtime, ok := recognise.Recognise(argv); ok {
			answer.Agents = append(answer.Agents, detected{Agent: agent, Runtime: runtime})
		}
	case c.IsSet("pane"):
		err = a.detectPane(ctx, c.String("pane"), &answer)
	default:
		err = a.detectProcesses(ctx, c, &answer)
	}
	if err != nil {
		return nil, err
	}
	if len(answer.Agents) == 0 {
		a.say("no agent in a container was recognised")
	}
	return answer, nil
}

// add takes what runs in a container.
func (d *detectAnswer) add(pid int, f panes.Found) {
	if f.Runtime != "" {
		d.Agents = append(d.Agents, detected{pid, f.Agent, f.Runtime})
	}
}

// detectProcesses reads one process or all of them. Errors name the process and the
// cause, and nothing that was read.
func (a *app) detectProcesses(ctx context.Context, c *ucli.Context, answer *detectAnswer) error {
	processes := panes.NewProcesses(a.runner)
	if c.Bool("all") {
		if err := processes.All(ctx, answer.add); err != nil {
			return fail(exitFailed, "give the command line itself: agent-container detect -- CMD...", "%w", err)
		}
		return nil
	}
	f, err := processes.Process(ctx, c.Int("pid"))
	if err != nil {
		return fail(exitFailed, "run: agent-container detect --all", "%w", err)
	}
	answer.add(c.Int("pid"), f)
	return nil
}

// detectPane reads what is in front of a pane.
func (a *app) detectPane(ctx context.Context, id string, answer *detectAnswer) error {
	if !panes.ValidID(id) {
		return refuse("see: tmux list-panes -a", "--pane takes the id of a tmux pane, such as %%3")
	}
	pane, err := a.tmux().Pane(ctx, id)
	if err != nil {
		return tmuxFailure(err)
	}
	front, err := panes.NewProcesses(a.runner).Front(ctx, pane)
	if err != nil {
		return fail(exitFailed, "run: agent-container detect --all", "%w", err)
	}
	if front.Agent != "" {
		answer.Agents = append(answer.Agents, detected{front.PID, front.Agent, front.Runtime})
	}
	return nil
}

// tmux is the user's own tmux.
func (a *app) tmux() panes.Tmux { return panes.Tmux{Runner: a.runner} }

// tmuxFailure maps what tmux refuses to exit codes.
func tmuxFailure(err error) error {
	var none *panes.NoServerError
	var noPane *panes.NoPaneError
	switch {
	case errors.As(err, &none):
		return fail(exitUnreachable, "run it in tmux, or start one: tmux new-session", "%w", err)
	case errors.As(err, &noPane):
		return fail(exitNotFound, "see: tmux list-panes -a", "%w", err)
	}
	return err
}
