package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/panes"
	"github.com/agent-container/agent-container/recognise"
)

func detectCommand() command {
	return command{
		name: "detect", group: groupLook, args: "[-- CMD...]",
		usage: "say which agents run in containers, ours and others'",
		detail: "Reads the command lines of docker, podman, nerdctl, container and sbx: of one process, of all that may be read, of what is in front of a tmux pane,\n" +
			"or the one after --, which is not run. --all also asks docker for its running containers; if it does not answer, the processes are printed\n" +
			"and the exit code is 5. A pane's agent may also run on the host itself.\n" +
			"Arguments can hold credentials: of them only the agent's and the runtime's name are printed.",
		flags: []ucli.Flag{
			&ucli.IntFlag{Name: "pid", Usage: "read the process `PID`"},
			&ucli.StringFlag{Name: "pane", Usage: "read what is in front of the tmux pane `%N`"},
			&ucli.BoolFlag{Name: "all", Usage: "read every process, and ask docker for its containers"},
		},
		max: -1, child: true, run: (*app).detect,
	}
}

// detectAnswer is every agent that was recognised.
type detectAnswer struct {
	Agents []detected `json:"agents"`
}

// detected is an agent, in a container or in a pane: by the command line of a
// runtime's program, or by what the engine says of a container. Nothing else of their
// arguments may be kept.
type detected struct {
	PID     int    `json:"pid,omitempty"` // of the runtime's program; none for a command line that was given, and a container
	Agent   string `json:"agent"`         // "" where a deployment's label is not understood
	Runtime string `json:"runtime"`       // "" for an agent of the host, in a pane

	// Of what the engine says only.
	Container  string `json:"container,omitempty"`
	Deployment string `json:"deployment,omitempty"` // of ours: the agent is what was deployed
}

func (d detectAnswer) text(w io.Writer) {
	if len(d.Agents) == 0 {
		return
	}
	rows := make([][]string, len(d.Agents))
	for i, f := range d.Agents {
		rows[i] = []string{"", f.Agent, f.Runtime, f.Container, f.Deployment}
		if f.PID != 0 {
			rows[i][0] = strconv.Itoa(f.PID)
		}
	}
	table(w, []string{"PID", "AGENT", "RUNTIME", "CONTAINER", "DEPLOYMENT"}, rows)
}

func (a *app) detect(ctx context.Context, c *ucli.Context) (any, error) {
	argv := c.Args().Slice()
	asked := 0
	for _, given := range []bool{c.IsSet("pid"), c.IsSet("pane"), c.Bool("all"), len(argv) > 0} {
		if given {
			asked++
		}
	}
	dashes := slices.Index(a.typed, "--")
	switch {
	case len(argv) > 0 && (dashes < 0 || len(a.typed)-dashes-1 != len(argv)):
		// Without the dashes "detect 4711", for --pid, would be a command without an agent.
		return nil, refuse("use --pid PID, --pane %N, --all, or put -- before a command: agent-container detect -- CMD...", "detect takes no argument without a flag or --")
	case asked != 1:
		return nil, refuse("run: agent-container detect --all", "detect needs exactly one of --pid PID, --pane %%N, --all and -- CMD...")
	case c.IsSet("pid") && c.Int("pid") <= 0:
		return nil, refuse("see: ps -A", "--pid takes the number of a process")
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
	case c.Bool("all"):
		if missing := a.detectAll(ctx, &answer); missing != nil {
			return a.negative(answer, missing)
		}
	default:
		err = a.detectProcess(ctx, c.Int("pid"), &answer)
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
		d.Agents = append(d.Agents, detected{PID: pid, Agent: f.Agent, Runtime: f.Runtime})
	}
}

// detectProcess reads one process. Errors name it and the cause, and nothing that was
// read.
func (a *app) detectProcess(ctx context.Context, pid int, answer *detectAnswer) error {
	f, err := panes.NewProcesses(a.runner).Process(ctx, pid)
	if err != nil {
		code := exitFailed
		if errors.Is(err, panes.ErrNoProcess) {
			code = exitNotFound
		}
		return fail(code, "run: agent-container detect --all", "%w", err)
	}
	answer.add(pid, f)
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
		answer.Agents = append(answer.Agents, detected{PID: front.PID, Agent: front.Agent, Runtime: front.Runtime})
	}
	return nil
}

// tmux is the user's own tmux.
func (a *app) tmux() panes.Tmux { return panes.Tmux{Runner: a.runner} }

// tmuxFailure maps what tmux refuses to exit codes.
func tmuxFailure(err error) error {
	var none *panes.NoServerError
	var noTmux *panes.NoTmuxError
	var old *panes.OldServerError
	var noPane *panes.NoPaneError
	var noClient *panes.NoClientError
	switch {
	case errors.As(err, &noTmux):
		return fail(exitUnreachable, "install tmux, 3.2 or later", "%w", err)
	case errors.As(err, &old):
		return fail(exitUnreachable, "install tmux, 3.2 or later, and start its server anew", "%w", err)
	case errors.As(err, &none):
		return fail(exitUnreachable, "run it in tmux, or start one: tmux new-session", "%w", err)
	case errors.As(err, &noPane):
		return fail(exitNotFound, "see: tmux list-panes -a", "%w", err)
	case errors.As(err, &noClient) && noClient.Name == "":
		return fail(exitNotFound, "attach one: tmux attach", "%w", err)
	case errors.As(err, &noClient):
		return fail(exitNotFound, "see: tmux list-clients", "%w", err)
	}
	return err
}
