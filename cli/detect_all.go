package cli

import (
	"context"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/panes"
	"github.com/agent-container/agent-container/recognise"
	"github.com/agent-container/agent-container/spec"
)

// detectAll reads every process and asks the engine for its containers. A half that
// cannot be had does not take the other with it: the failure says which is missing,
// and the answer has the rest.
func (a *app) detectAll(ctx context.Context, answer *detectAnswer) *failure {
	unread := panes.NewProcesses(a.runner).All(ctx, answer.add)
	unasked := a.detectContainers(ctx, answer)
	switch {
	case ctx.Err() != nil:
		return asFailure(context.Cause(ctx))
	case unread != nil && unasked != nil:
		f := asFailure(unasked)
		return fail(f.code, f.hint, "neither processes nor containers could be listed: %w; %s", unread, f.message)
	case unread != nil:
		return fail(exitFailed, "give the command line itself: agent-container detect -- CMD...", "only containers were listed, processes could not be: %w", unread)
	case unasked != nil:
		f := asFailure(unasked)
		return fail(f.code, f.hint, "only processes were listed, containers could not be: %s", f.message)
	}
	return nil
}

// detectContainers adds the containers that the engine runs. A container's name is
// whatever its maker liked.
func (a *app) detectContainers(ctx context.Context, answer *detectAnswer) error {
	_, err := a.engine(ctx, func(ctx context.Context, e *engine.Engine) error {
		found, err := e.Running(ctx, func(argv []string) string {
			agent, _ := recognise.Program(argv)
			return agent
		})
		for _, c := range found {
			answer.Agents = append(answer.Agents, detected{
				Agent: spec.Printable(c.Agent, maxContainerName), Runtime: e.Runtime,
				Container: spec.Printable(c.Name, maxContainerName), Deployment: spec.Printable(c.Deployment, maxContainerName),
			})
		}
		return err
	})
	return err
}

// maxContainerName bounds what is printed of a container's name.
const maxContainerName = 200
