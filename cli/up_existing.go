package cli

import (
	"context"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// refuseInterrupted refuses an up that would make something else of a deployment
// whose redeploy was killed between create and start.
func refuseInterrupted(found *engine.Container, wanted spec.Spec) error {
	s, err := specOf(found)
	if err != nil {
		return nil // of another version; it was never started and is made anew
	}
	for _, change := range spec.Changes(s, wanted) {
		if slices.Contains([]string{"agent", "mode", "workspace", "workspace_dir", "mounts", "repo", "depth", "env_names", "env_files"}, change.Field) || ofEgress(change.Field) {
			return refuse("run the interrupted command again, or: agent-container redeploy "+s.Name+", or first: agent-container down "+s.Name,
				"%s was created by a command that was interrupted, and differs: %s", s.Name, change)
		}
	}
	return nil
}

// upExisting answers up for a deployment that exists: nothing that was typed
// is ever dropped silently, and no task is run twice. wanted is what the typed
// flags would make of a new one.
func (a *app) upExisting(ctx context.Context, c *ucli.Context, e *engine.Engine, found *engine.Container, wanted spec.Spec) (any, error) {
	s, err := specOf(found)
	if err != nil {
		return nil, err
	}
	if a.hasOperation(s.Name) && !c.Bool("dry-run") {
		if d, err := a.prepare(ctx, c, wanted, kept{}); err == nil {
			if begun, err := a.wasBegun("up", d, found); err != nil || begun {
				return a.resume(ctx, c, e, found, s, err)
			}
		}
	}
	if err := a.refuseChanges(ctx, c, e, s); err != nil {
		return nil, err
	}
	if c.Bool("foreground") && s.Mode != spec.Headless {
		return nil, refuse("drop --foreground", "--foreground follows a headless run; %s is %s", s.Name, s.Mode)
	}
	if c.Bool("dry-run") {
		d, err := a.prepareAgain(ctx, s)
		if err != nil {
			return nil, err
		}
		return a.dryRun(ctx, e, d, found)
	}
	switch {
	case found.State.Alive() && c.Bool("foreground"):
		return a.startedAnswer(ctx, c, e, s)
	case found.State.Alive():
		return a.runningAlready(ctx, e, found, s)
	case s.Mode == spec.Headless:
		return a.reportFinished(ctx, c, e, found, s)
	}
	if err := a.startAgain(ctx, e, found, s); err != nil {
		return nil, err
	}
	return a.awaitAndReport(ctx, e, s, true)
}

// reportFinished tells how a finished job ended. It is never run again.
func (a *app) reportFinished(ctx context.Context, c *ucli.Context, e *engine.Engine, found *engine.Container, s spec.Spec) (any, error) {
	answer, err := a.finished(ctx, c, e, found, s)
	if task, taskErr := a.undeliveredTask(ctx, e, s.Name); taskErr == nil && task != nil {
		a.say("%s has ended before its agent got the task", s.Name)
		a.say("hint: try again: agent-container redeploy %s", s.Name)
		return answer, err
	}
	a.say("%s is finished; a task is never run again unasked", s.Name)
	a.say("hint: run a new one: agent-container redeploy %s --task ...", s.Name)
	return answer, err
}

// finished describes a job that is over; in the foreground its end is ours.
func (a *app) finished(ctx context.Context, c *ucli.Context, e *engine.Engine, found *engine.Container, s spec.Spec) (any, error) {
	record, err := a.settle(ctx, e, found, s)
	if err != nil {
		return nil, err
	}
	answer := a.describe(found, s, record)
	if c.Bool("foreground") {
		return a.jobEnd(ctx, e, found, s, answer)
	}
	return answer, nil
}

// refuseChanges refuses typed flags that differ from the deployment, naming
// redeploy.
func (a *app) refuseChanges(ctx context.Context, c *ucli.Context, e *engine.Engine, s spec.Spec) error {
	hint := "run: " + typedAs(c, "redeploy")
	if c.IsSet("task") {
		return refuse("run: agent-container redeploy "+s.Name+" --task ...", "%s exists, and a new task needs a new container", s.Name)
	}
	if !typedSpec(c) {
		return nil
	}
	typed := s
	typed.EnvNames = slices.Clone(s.EnvNames) // --env adds, here as on a redeploy
	if err := a.applyFlags(&typed, c); err != nil {
		return err
	}
	if c.IsSet("egress") || c.IsSet("egress-allow") {
		if _, err := declareTyped(&typed, c, &s, spec.EgressWish{}); err != nil { // what settings say now is for a redeploy
			return err
		}
	}
	if err := typed.Validate(); err != nil {
		return err
	}
	if changes := spec.Changes(s, typed); len(changes) > 0 {
		return refuse(hint, "%s exists and differs: %s", s.Name, changes[0])
	}
	return a.refuseNewValues(ctx, c, e, s, hint)
}

// refuseNewValues refuses a variable, typed or from a typed file, whose value
// is another one now.
func (a *app) refuseNewValues(ctx context.Context, c *ucli.Context, e *engine.Engine, s spec.Spec, hint string) error {
	if !c.IsSet("env-file") {
		s.EnvFiles = nil
	}
	typed, err := a.readEnvironment(s, brought{}, nil, c)
	if err != nil || len(typed) == 0 {
		return err
	}
	filled, err := filledEnvironment(ctx, e, s.Name)
	if err != nil {
		return err
	}
	now, err := a.typedEnvironment(c)
	if err != nil {
		return err
	}
	for name, value := range typed {
		if _, again := now[name]; !again && slices.Contains(s.EnvNames, name) {
			continue // typed before, over what the file says
		}
		if filled[name] != value {
			return refuse(hint, "%s exists and differs: another value of %s", s.Name, name)
		}
	}
	return nil
}
