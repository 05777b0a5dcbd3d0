package cli

import (
	"context"
	"io"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func upCommand() command {
	return command{
		name: "up", group: groupLife, args: "NAME", usage: "deploy an agent, or start it again",
		detail: "Deploys NAME when it is absent. When it runs, or is a finished job, that is reported and nothing is run again;\n" +
			"a stopped session is started. To change a deployment, or to give it a new task, use redeploy.",
		flags: specFlags(), min: 1, max: 1, run: (*app).up,
	}
}

func (a *app) up(ctx context.Context, c *ucli.Context) (any, error) {
	name, err := deploymentName(c)
	if err != nil {
		return nil, err
	}
	if err := a.config(); err != nil {
		return nil, err
	}
	// Bad input is refused whatever the engine says. Only a typed directory may be
	// right for a deployment that exists and wrong for a new one.
	wanted, inputErr := a.newSpec(c, name)
	if inputErr != nil && !slices.Contains(specFieldsTyped(c), "workspace-dir") {
		return nil, inputErr
	}
	var found *engine.Container
	e, err := a.engine(ctx, func(ctx context.Context, e *engine.Engine) (err error) {
		found, err = a.findRepaired(ctx, e, name)
		return err
	})
	if err != nil && inputErr != nil {
		return nil, inputErr
	}
	if err != nil {
		// What is wrong with the input is worth knowing without an engine too.
		if _, inputErr := a.prepare(ctx, c, wanted, kept{}); inputErr != nil {
			return nil, inputErr
		}
		return nil, err
	}
	if found != nil && found.State.Status != "created" {
		return a.upExisting(ctx, c, e, found, wanted)
	}
	if inputErr != nil {
		return nil, inputErr
	}
	if found != nil {
		if err := refuseInterrupted(found, wanted); err != nil {
			return nil, err
		}
	}
	var from kept
	if found != nil && !c.IsSet("task") { // the command that made it was killed
		if from.task, err = a.undeliveredTask(ctx, e, name); err != nil {
			return nil, err
		}
	}
	d, err := a.prepare(ctx, c, wanted, from)
	if err != nil {
		return nil, err
	}
	if c.Bool("dry-run") {
		return a.dryRun(ctx, e, d, found)
	}
	if d.fill.keeps {
		a.say("%s: keeps its task, which no agent has got yet", name)
	}
	a.announceOrigins(c)
	return a.deployAndReport(ctx, c, e, "up", d, found)
}

// deployAndReport deploys under the deployment's lock and then, without it,
// waits or follows. old is the container that the decision was made on.
func (a *app) deployAndReport(ctx context.Context, c *ucli.Context, e *engine.Engine, verb string, d *deployment, old *engine.Container) (any, error) {
	name := d.spec.Name
	release, err := a.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := reached(ctx, "locked"); err != nil {
		return nil, err
	}
	a.announce(d)
	if err := a.deploy(ctx, e, verb, d, old); err != nil {
		a.forgetUntouched(name)
		return nil, a.whatIsLeft(ctx, e, name, err)
	}
	release()
	answer, err := a.startedAnswer(ctx, c, e, d.spec)
	if err == nil || isResult(err) || a.over {
		a.endOperation(name)
	}
	return answer, err
}

// startedAnswer follows or waits for what was started.
func (a *app) startedAnswer(ctx context.Context, c *ucli.Context, e *engine.Engine, s spec.Spec) (any, error) {
	if c.Bool("foreground") {
		if err := a.waitsForKey(ctx, e, s); err != nil {
			return nil, err
		}
		return a.followToEnd(ctx, e, s)
	}
	answer, err := a.awaitAndReport(ctx, e, s, true)
	return answer, a.whatIsLeft(ctx, e, s.Name, err)
}

// resume answers for a command that was killed or interrupted after it had
// started the container: what it started is not started, and billed, twice.
func (a *app) resume(ctx context.Context, c *ucli.Context, e *engine.Engine, found *engine.Container, s spec.Spec, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	a.say("%s was started by this command before, which was interrupted then; it is not run twice", s.Name)
	var answer any
	if found.State.Alive() {
		answer, err = a.startedAnswer(ctx, c, e, s)
	} else {
		answer, err = a.finished(ctx, c, e, found, s)
	}
	if err == nil || isResult(err) || a.over {
		a.endOperation(s.Name)
	}
	return answer, err
}

// lockUnchanged holds the deployment's lock, unless its container is another
// one than old by now. Deciding needs no lock; acting on the decision does.
func (a *app) lockUnchanged(ctx context.Context, e *engine.Engine, name string, old *engine.Container) (func(), error) {
	release, err := a.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := a.unchanged(ctx, e, name, old); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// unchanged returns a *failure with code 6 when the deployment's container is
// another one than old.
func (a *app) unchanged(ctx context.Context, e *engine.Engine, name string, old *engine.Container) error {
	now, err := a.find(ctx, e, name)
	if err == nil && ((now == nil) != (old == nil) || now != nil && old != nil && now.ID != old.ID) {
		err = fail(exitBusy, "run the command again", "another operation changed %s meanwhile", name)
	}
	return err
}

// modelAnswer is what --dry-run prints.
type modelAnswer struct {
	Name    string `json:"name"`
	Compose string `json:"compose"`
}

func (m modelAnswer) text(w io.Writer) { io.WriteString(w, m.Compose) }
