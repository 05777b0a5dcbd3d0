package cli

import (
	"context"
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func startCommand() command {
	return command{
		name: "start", group: groupLife, args: "NAME", usage: "start a stopped deployment",
		min: 1, max: 1, run: (*app).start,
	}
}

func (a *app) start(ctx context.Context, c *ucli.Context) (any, error) {
	e, found, s, err := a.beginChange(ctx, c)
	if err != nil {
		return nil, err
	}
	switch {
	case found.State.Alive():
		return a.runningAlready(ctx, e, found, s)
	case found.State.Status == "created":
		return nil, refuse("run again: agent-container up "+s.Name+" with its flags", "%s was created and perhaps never filled", s.Name)
	case s.Mode == spec.Headless:
		if _, err := a.settle(ctx, e, found, s); err != nil {
			return nil, err
		}
		if task, err := a.undeliveredTask(ctx, e, s.Name); err == nil && task != nil {
			return nil, refuse("try again: agent-container redeploy "+s.Name, "the job %s has ended before its agent got the task", s.Name)
		}
		return nil, refuse("run: agent-container redeploy "+s.Name+" --task ...", "%s is a finished job: a task is a one-shot instruction", s.Name)
	}
	if err := a.startAgain(ctx, e, found, s); err != nil {
		return nil, err
	}
	return a.awaitAndReport(ctx, e, s, true)
}

// runningAlready answers for a deployment that runs, once it is behind its gateway.
func (a *app) runningAlready(ctx context.Context, e *engine.Engine, found *engine.Container, s spec.Spec) (any, error) {
	now, err := a.rejoin(ctx, e, found, s)
	if err != nil {
		return nil, err
	}
	if now == found {
		a.say("%s is running already", s.Name)
	}
	return a.awaitAndReport(ctx, e, s, now != found)
}

// startAgain starts a stopped deployment with the fill it has, in a new container
// where the old one cannot start.
func (a *app) startAgain(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec) error {
	if err := a.checkShown(ctx, s); err != nil { // the engine follows a link that was not one
		return err
	}
	release, err := a.lockUnchanged(ctx, e, s.Name, c)
	if err != nil {
		return err
	}
	defer release()
	a.endOperation(s.Name)
	if c.Beside().Gateway {
		if err := a.readyGateway(ctx, e, s.Name); err != nil {
			return err
		}
	}
	// The last start's status is still there; nobody may take it for this one's.
	if err := e.Fill(ctx, c.ID, freshStatus); err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	if !c.ShouldRun() { // it was stopped by us
		if err := a.stay(ctx, e, s, false); err != nil {
			return err
		}
	}
	err = e.Start(ctx, s.Name, c.Beside())
	if engine.PortTaken(err) || engine.NetworkGone(err) {
		return a.startAnew(ctx, e, c, s, err)
	}
	return attempted("start", s.Name, err)
}

// revive starts a deployment that the engine has ended, and nobody has stopped, or
// whose gateway is another one.
func (a *app) revive(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec) (*engine.Container, error) {
	if s.Mode == spec.Headless || !c.ShouldRun() {
		return a.rejoin(ctx, e, c, s)
	}
	release, err := a.lock(ctx, s.Name) // who holds it may have ended it, to make it anew
	if err != nil {
		return nil, err
	}
	release()
	by := "the engine"
	if c.Beside().Gateway {
		by = "the engine, or with its gateway"
	}
	a.say("%s was ended by %s, not by stop: starting it", s.Name, by)
	return a.startedAgain(ctx, e, c, s)
}

// startedAgain is startAgain, and the container once its set-up is over.
func (a *app) startedAgain(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec) (*engine.Container, error) {
	if err := a.startAgain(ctx, e, c, s); err != nil {
		return nil, err
	}
	if _, err := a.await(ctx, e, s); err != nil {
		return nil, err
	}
	c, _, err := a.current(ctx, e, s.Name)
	return c, err
}
