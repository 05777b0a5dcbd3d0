package cli

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/runs"
	"github.com/agent-container/agent-container/spec"
)

// bringRecords brings a container's run records to the host and returns the
// one of its last run, nil when it has none. Every verb that names one
// deployment does so, but exec, which must cost no more than the engine's; and
// always before a removal.
func (a *app) bringRecords(ctx context.Context, e *engine.Engine, c *engine.Container) (*spec.Record, error) {
	var brought runs.Brought
	_, err := e.CopyOut(ctx, c.ID, spec.ContainerRunsDir, runs.MaxBytes, func(t *tar.Reader) error {
		var err error
		brought, err = a.runs().Bring(t, runs.Container{
			Host: engine.LocalHost, Deployment: c.Deployment(), Image: c.Image,
			Created: c.Created, Alive: c.State.Alive(), Engine: c.State.Report(),
		})
		return err
	})
	for _, reason := range brought.LeftOut {
		a.say("warning: a run record of %s was left out: %s", c.Deployment(), reason)
	}
	if errors.Is(err, engine.ErrTooMuch) {
		// A container that fills its volume must not keep itself from removal.
		a.say("warning: the run records of %s hold more than %d MiB: the rest was left out", c.Deployment(), runs.MaxBytes>>20)
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("bring in the run records of %s: %w", c.Deployment(), err)
	}
	a.keepRefusals(ctx, e, c, brought.Records)
	a.alarm(brought.Current)
	return brought.Current, nil
}

// alarm says when a run that is over has left commits that exist nowhere else,
// once a command: who removes the deployment loses them.
func (a *app) alarm(r *spec.Record) {
	if r == nil || r.EndedAt == nil || r.Repository == nil || r.Repository.Unpushed == 0 || a.alarmed[r.ID] {
		return
	}
	if a.alarmed == nil {
		a.alarmed = map[string]bool{}
	}
	a.alarmed[r.ID] = true
	a.say("ALARM: %d commits of %s were not pushed when run %s ended (branch %s): they are only in its workspace",
		r.Repository.Unpushed, r.Deployment, r.ID, spec.Printable(r.Repository.Branch, 100))
}

// settle brings in the records and, when a job is over, stops the services
// that were only there for it: first, because what its gateway has refused is
// whole once the gateway has ended.
func (a *app) settle(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec) (*spec.Record, error) {
	over := s.Mode == spec.Headless && !c.State.Alive()
	var stopping error
	if over && c.Beside().Any() {
		stopping = a.stopBeside(ctx, e, c)
	}
	record, err := a.bringRecords(ctx, e, c)
	if err == nil && over {
		// Whoever asks learns how it ended: from then on the same command means
		// another run.
		if a.over = true; a.operating == nil && !a.isReplaced(c) {
			a.endOperation(s.Name)
		}
	}
	if err == nil {
		err = stopping
	}
	return record, err
}

// stopBeside stops what runs beside the agent's container c, which has ended, unless
// another one is in its place by now.
func (a *app) stopBeside(ctx context.Context, e *engine.Engine, c *engine.Container) error {
	all, err := e.Containers(ctx, c.Deployment())
	if err != nil {
		return err
	}
	var services []string
	still := false
	for _, other := range all {
		switch {
		case other.ID == c.ID:
			still = !other.State.Alive()
		case !other.IsAgent() && other.State.Alive():
			services = append(services, other.ID)
		}
	}
	if !still {
		return nil
	}
	return e.Stop(ctx, services...)
}
