package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// whatIsLeft says, when a deploy was interrupted, what runs all the same: a job
// that goes on is billed.
func (a *app) whatIsLeft(ctx context.Context, e *engine.Engine, name string, err error) error {
	if err == nil || context.Cause(ctx) == nil {
		return err
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	c, lookErr := e.Inspect(look, compose.ProjectName(name))
	f := *asFailure(context.Cause(ctx))
	switch {
	case lookErr != nil:
		f.message, f.hint = f.message+"; what is left of "+name+" is not known", "see: agent-container list"
	case c == nil:
		f.message, f.hint = f.message+"; nothing of "+name+" runs", "run the command again"
	case c.State.Alive():
		f.message, f.hint = f.message+"; "+name+" runs all the same", "stop it: agent-container stop "+name+"; or follow it: agent-container logs -f "+name
	case c.State.HasRun():
		f.message, f.hint = f.message+"; "+name+" has ended", "how: agent-container up "+name
	default:
		f.message, f.hint = f.message+"; "+name+" was not started", "run the command again, or: agent-container down "+name
	}
	return &f
}

// announce says what is worth knowing before a deploy.
func (a *app) announce(d *deployment) {
	if d.brought.project != "" {
		a.say("%s takes %s of the project %s", d.spec.Name, d.brought.names(d.spec.Name), d.brought.project)
	}
	for _, dir := range shownKeys(d.spec) {
		a.say("NOTE: %s holds keys, and the agent may read them", dir)
	}
	if d.spec.Workspace == spec.Ephemeral {
		a.say("NOTE: an ephemeral workspace is lost with its container: what is not pushed is gone")
	}
	if d.spec.Mode == spec.Interactive && d.fill.task != nil && !d.agent.TakesTask {
		a.say("NOTE: %s takes no task at its start; it is in %s/%s, paste it in", d.agent.Name, spec.ContainerRunDir, spec.FillTask)
	}
	if d.spec.Mode != spec.Idle && !slices.ContainsFunc(d.agent.Keys, func(k string) bool { return d.fill.env[k] != "" }) && len(d.fill.config) == 0 {
		a.say("NOTE: no key for %s is given (--env %s); it must be logged in on its volume already", d.agent.Name, d.agent.Keys[0])
	}
}

// announceOrigins says which choices of a new deployment were made by a file or
// a variable: a repository may have made them.
func (a *app) announceOrigins(c *ucli.Context) {
	for _, key := range []string{"agent", "mode", "workspace"} {
		if v := a.settings.Get(key); v.Origin != "default" && !c.IsSet(key) {
			a.say("%s: %s (%s)", key, v.Text, v.Origin)
		}
	}
}

// awaitAndReport waits for a started deployment and says what now exists.
func (a *app) awaitAndReport(ctx context.Context, e *engine.Engine, s spec.Spec, changed bool) (any, error) {
	status, err := a.await(ctx, e, s)
	if err != nil {
		return nil, fmt.Errorf("wait for %s: %w", s.Name, err)
	}
	if err := reached(ctx, "awaited"); err != nil {
		return nil, err
	}
	c, _, err := a.current(ctx, e, s.Name)
	if err != nil {
		return nil, err
	}
	record, err := a.settle(ctx, e, c, s)
	if err != nil {
		return nil, err
	}
	if err := reached(ctx, "settled"); err != nil {
		return nil, err
	}
	answer := a.describe(c, s, record)
	answer.Changed = changed
	switch {
	case status.State == spec.Failed:
		return nil, setupFailure(s.Name, status, answer)
	case status.State == spec.Pending:
		return nil, a.pendingFailure(ctx, e, s, answer)
	case status.Reason != "":
		a.say("NOTE: %s", status.Reason)
	}
	return answer, nil
}
