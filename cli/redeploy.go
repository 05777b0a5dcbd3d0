package cli

import (
	"context"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/spec"
)

func redeployCommand() command {
	return command{
		name: "redeploy", group: groupLife, args: "NAME", usage: "recreate a deployment, with what is typed changed",
		detail: "Keeps the deployment's agent, mode, workspace and typed environment; files and settings are read again.\n" +
			"A task is never repeated: a headless job needs a new --task.",
		flags: specFlags(), min: 1, max: 1, run: (*app).redeploy,
	}
}

func (a *app) redeploy(ctx context.Context, c *ucli.Context) (any, error) {
	if err := a.config(); err != nil {
		return nil, err
	}
	e, old, s, err := a.beginChange(ctx, c)
	if err != nil {
		return nil, err
	}
	next, err := a.nextSpec(c, s)
	if err != nil {
		return nil, err
	}
	typed, err := a.typedEnvironment(c)
	if err != nil {
		return nil, err
	}
	inherited, err := a.inheritedEnvironment(ctx, e, next, typed)
	if err != nil {
		return nil, err
	}
	from := kept{env: inherited, begun: a.hasOperation(s.Name)}
	if !c.IsSet("task") {
		if from.task, err = undeliveredTask(ctx, e, s.Name); err != nil {
			return nil, err
		}
	}
	d, err := a.prepare(ctx, c, next, from)
	if err != nil {
		return nil, err
	}
	if c.Bool("dry-run") {
		return a.dryRun(ctx, e, d, old)
	}
	if begun, err := a.wasBegun("redeploy", d, old); err != nil || begun {
		return a.resume(ctx, c, e, old, s, err)
	}
	if next.Mode == spec.Headless && d.fill.task == nil {
		return nil, needsTask()
	}
	if d.fill.carried {
		a.say("%s: keeps its task, which no agent has got yet", s.Name)
	}
	for _, change := range spec.Changes(s, next) {
		a.say("%s: %s", s.Name, change)
	}
	return a.deployAndReport(ctx, c, e, "redeploy", d, old)
}

// nextSpec is the deployment's spec, with files read again and the typed flags
// over it.
func (a *app) nextSpec(c *ucli.Context, s spec.Spec) (spec.Spec, error) {
	next := s
	next.Timezone = a.timezone()
	next.EnvNames = slices.Clone(s.EnvNames)
	if err := a.applySettings(&next); err != nil {
		return next, err
	}
	if err := a.applyFlags(&next, c); err != nil {
		return next, err
	}
	return next, next.Validate()
}

// prepareAgain reads a deployment that exists as redeploy would, without its
// task.
func (a *app) prepareAgain(ctx context.Context, s spec.Spec) (*deployment, error) {
	d := &deployment{spec: s}
	var err error
	if d.agent, err = spec.LookupAgent(s.Agent); err != nil {
		return nil, err
	}
	d.services, err = a.readServices(ctx, s.Name)
	return d, err
}
