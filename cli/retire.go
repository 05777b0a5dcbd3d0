package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// retire stops what is about to be replaced and brings in its records, which
// go with the container. A task that is carried over must be nobody's still.
func (a *app) retire(ctx context.Context, e *engine.Engine, d *deployment, old *engine.Container) error {
	if old == nil {
		return nil
	}
	name := d.spec.Name
	// Before it is stopped: a job that has begun meanwhile goes on.
	if err := a.stillUndelivered(ctx, e, d); err != nil {
		return err
	}
	if err := a.stopAll(ctx, e, name); err != nil {
		return err
	}
	stopped, err := e.Inspect(ctx, old.ID)
	if err != nil || stopped == nil || stopped.State.Status == "created" && stopped.ByCompose() {
		return err
	}
	if _, err = a.bringRecords(ctx, e, stopped); err != nil {
		return err
	}
	if err := a.stillUndelivered(ctx, e, d); err != nil {
		return err
	}
	if stopped.ByCompose() {
		return nil
	}
	// Compose would not replace it, nor give its name away: it is put aside as
	// Compose puts aside what it replaces, and removed once the new one is there.
	return e.Rename(ctx, stopped.ID, fmt.Sprintf("%.12s_%s", stopped.ID, compose.ProjectName(name)))
}

// stillUndelivered looks once more whether a task that is carried over is still
// nobody's. A job cannot go on without it; a session can, and its agent has it.
func (a *app) stillUndelivered(ctx context.Context, e *engine.Engine, d *deployment) error {
	if !d.fill.carried {
		return nil
	}
	task, err := a.undeliveredTask(ctx, e, d.spec.Name)
	switch {
	case err != nil || task != nil:
		return err
	case d.spec.Mode == spec.Headless:
		return fail(exitFailed, "follow it: agent-container logs -f "+d.spec.Name, "the agent of %s has got its task meanwhile; it is not run twice", d.spec.Name)
	}
	d.fill.task, d.fill.carried, d.fill.keeps = nil, false, false
	return nil
}

// removeStale removes containers of the deployment that its new model does not
// have: services that left the file. Compose would remove whatever carries the
// project's name, ours or not.
func (a *app) removeStale(ctx context.Context, e *engine.Engine, m compose.Model, old *engine.Container) error {
	if old == nil {
		return nil
	}
	expected := m.ContainerNames()
	all, err := e.Containers(ctx, m.Spec.Name)
	if err != nil {
		return err
	}
	var stale []string
	for _, c := range all {
		if !slices.Contains(expected, c.Name) {
			stale = append(stale, c.ID)
		}
	}
	if err := e.Remove(ctx, stale...); err != nil || m.OwnNetwork() {
		return err
	}
	return e.RemoveNetworks(ctx, m.Spec.Name)
}
