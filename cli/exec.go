package cli

import (
	"context"
	"errors"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

func execCommand() command {
	return command{
		name: "exec", group: groupWork, args: "NAME CMD...", usage: "run a command in a deployment, with the agent's environment",
		detail: "Exits with the command's own code. After NAME nothing is ours: agent-container exec --json NAME CMD...",
		min:    2, max: -1, child: true, run: (*app).exec,
	}
}

// execAnswer is the end of a command that ran.
type execAnswer struct {
	Name     string   `json:"name"`
	Command  []string `json:"command"`
	ExitCode int      `json:"exit_code"`
}

func (a *app) exec(ctx context.Context, c *ucli.Context) (any, error) {
	e, found, s, err := a.named(ctx, c)
	if err != nil {
		return nil, err
	}
	if found, err = a.revive(ctx, e, found, s); err != nil {
		return nil, err
	}
	if found.State.Status != "running" {
		next := "run: agent-container up " + s.Name
		if s.Mode == spec.Headless {
			next = "look into it: agent-container redeploy " + s.Name + " --mode idle"
		}
		return nil, fail(exitNotFound, next, "nothing is running in %s: it is %s", s.Name, found.State.Status)
	}
	argv := c.Args().Tail()
	answer := execAnswer{Name: s.Name, Command: argv}
	err = e.Exec(ctx, compose.ProjectName(s.Name), append([]string{spec.ContainerGuest, "env"}, argv...), a.streams())
	var exit *process.ExitError
	if errors.As(err, &exit) {
		if exit.Code == 1 {
			// Also what the engine's command line says of its own trouble.
			if now, lost := e.Inspect(ctx, found.ID); lost != nil || now == nil {
				return nil, fail(exitOurs, "see: agent-container list", "the container of %s was lost during %s", s.Name, argv[0])
			}
		}
		answer.ExitCode = exit.Code
		return nil, childExit(exit.Code, argv[0], answer)
	}
	return answer, afterStart(err)
}
