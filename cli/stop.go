package cli

import (
	"context"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func stopCommand() command {
	return command{
		name: "stop", group: groupLife, args: "NAME", usage: "stop a deployment; its volumes and container stay",
		min: 1, max: 1, run: (*app).stop,
	}
}

func (a *app) stop(ctx context.Context, c *ucli.Context) (any, error) {
	a.ends = true
	e, found, err := a.beginFound(ctx, c, a.findRepaired)
	if err != nil {
		return nil, err
	}
	s, err := specOf(found)
	if err != nil { // what is billed can be stopped, whatever made it
		i := compose.InheritBare(found.Deployed())
		if s = i.Spec; len(i.Unreadable) > 0 {
			s.Agent, s.Mode = "", "" // a default would be a claim
		}
	}
	release, err := a.lock(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	a.endOperation(s.Name)
	changed := found.State.Alive()
	// First the mark: a stop that is interrupted goes on in the engine.
	if err := a.stay(ctx, e, s, true); err != nil {
		return nil, err
	}
	if err := a.stopAll(ctx, e, s.Name); err != nil {
		return nil, err
	}
	now, err := e.Inspect(ctx, found.ID)
	if err != nil {
		return nil, err
	}
	if now == nil {
		return nil, fail(exitNotFound, "see: agent-container list", "%s was removed meanwhile", s.Name)
	}
	record, err := a.bringRecords(ctx, e, now)
	if err != nil {
		return nil, err
	}
	answer := a.describe(now, s, record)
	answer.Changed = changed
	return answer, nil
}

// stopAll stops what runs of a deployment: the agent first, then its services,
// which it may need while it ends.
func (a *app) stopAll(ctx context.Context, e *engine.Engine, name string) error {
	all, err := e.Containers(ctx, name)
	if err != nil {
		return err
	}
	var agents, services []string
	for _, c := range all {
		switch {
		case !c.State.Alive():
		case c.IsAgent():
			agents = append(agents, c.ID)
		default:
			services = append(services, c.ID)
		}
	}
	if err := e.Stop(ctx, agents...); err != nil {
		return err
	}
	return e.Stop(ctx, services...)
}

// stay notes on the containers of a session or of an idle deployment, and on its
// services, whether they are to stay stopped. A job's never start by themselves.
func (a *app) stay(ctx context.Context, e *engine.Engine, s spec.Spec, stopped bool) error {
	if s.Mode == spec.Headless {
		return nil
	}
	all, err := e.Containers(ctx, s.Name)
	if err != nil {
		return err
	}
	var ids []string
	for _, c := range all {
		if c.IsAgent() || !c.IsGateway() && !c.Behind() { // these never start by themselves
			ids = append(ids, c.ID)
		}
	}
	return e.Stay(ctx, stopped, ids...)
}
