package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// phases are the steps of the set-up; entrypoint.sh calls them in order.
var phases = map[string]func(*guest) error{
	"record":      (*guest).startRun,
	"gateway":     (*guest).awaitGateway,
	"environment": (*guest).setupEnvironment,
	"git":         (*guest).setupGit,
	"ssh":         (*guest).setupSSH,
	"config":      (*guest).setupConfig,
	"seed":        (*guest).seed,
	"agent":       (*guest).setupAgent,
	"clone":       (*guest).setupClone,
	"session":     (*guest).startSession,
	"mode":        (*guest).unknownMode,
}

// phase NAME... runs steps of the set-up, each at most as long as a phase may
// take and the job's time lasts. When one fails, status and record say why.
func (g *guest) phase(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: phase NAME [NAME]")
	}
	for _, name := range args {
		if phases[name] == nil {
			return fmt.Errorf("no phase %q", name)
		}
	}
	for _, name := range args {
		if err := g.runPhase(name); err != nil {
			return err
		}
	}
	return nil
}

func (g *guest) runPhase(name string) error {
	if err := g.setStatus(spec.Status{State: spec.Starting, Phase: name}); err != nil {
		return err
	}
	limit := g.startLimit()
	over := time.NewTimer(limit)
	told, at := spec.Status{State: spec.Starting, Phase: name}, time.Now()
	g.progressed = func(what string) {
		over.Reset(limit)
		if what != "" {
			told.Phase = name + ": " + what
		}
		if time.Since(at) > time.Second { // also unchanged: whoever waits looks at its age
			at = time.Now()
			_ = g.setStatus(told) // for people; the phase goes on
		}
	}
	var cancel context.CancelFunc
	g.ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- phases[name](g) }()
	// What the phase has started is ended with it, within reason.
	end := func() {
		cancel()
		select {
		case <-done:
		case <-time.After(3 * time.Second):
		}
	}
	// The record phase fixes the deadline that it is itself not under.
	deadline, _ := g.readDeadline(0)
	select {
	case err := <-done:
		if errors.Is(err, errPending) {
			return g.phasePending()
		}
		if err != nil {
			return g.phaseFailed(name, spec.CauseSetup, 1, err)
		}
		return nil
	case <-timer(deadline):
		end()
		return g.phaseFailed(name, spec.CauseTimeout, spec.ExitTimeLimit, errors.New("the job's time limit was reached"))
	case <-over.C:
		end()
		return g.phaseFailed(name, spec.CauseSetup, 1, fmt.Errorf("no progress for %s", limit))
	}
}

// startLimit is how long a phase may take. A fill that cannot be read fails in
// its own phase; until then the default counts.
func (g *guest) startLimit() time.Duration {
	j, err := g.job()
	if err != nil {
		return spec.DefaultStartLimit
	}
	return j.Limits.StartLimit()
}

// phaseFailed says in status, log and record why the set-up ended.
func (g *guest) phaseFailed(name string, cause spec.Cause, code int, reason error) error {
	text := spec.Printable(strings.Join(strings.Fields(reason.Error()), " "), 1000)
	say("error: %s failed: %s", name, text)
	err := g.setStatus(spec.Status{State: spec.Failed, Phase: name, Reason: text})
	// There may be no record: opening it may be what failed.
	return errors.Join(exitStatus(code), err, g.closeRecord(spec.OutcomeFailed, cause, &code, name+" failed: "+text))
}

// phasePending says in status and log that the set-up waits for the container's
// key, and how it goes on. The record stays open: the wait is part of the run.
func (g *guest) phasePending() error {
	public, err := os.ReadFile(g.sshKeyPath() + ".pub")
	say("this container's SSH key is not registered for %s; register it there, then run: agent-container redeploy %s", g.cloneURL, g.name)
	say("%s", spec.Printable(strings.TrimSpace(string(public)), 1000))
	return errors.Join(exitStatus(spec.ExitPending), err, g.setStatus(spec.Status{State: spec.Pending, Phase: spec.PhaseSSHKey}))
}

// startRun opens the record of the container's run. A job whose task an agent
// has had already is refused: nothing may run it, and bill it, twice.
func (g *guest) startRun() error {
	if g.mode == spec.Headless && exists(g.fill(spec.FileConsumed)) {
		// The last record is not this start's: it is closed if need be, and then
		// left alone.
		if err := errors.Join(g.closeStale(), os.Remove(g.fill(spec.FileRunID))); err != nil {
			say("warning: %v", err)
		}
		return fmt.Errorf("this job has run already, and a task is never run again unasked; run: agent-container redeploy %s with a new --task", g.name)
	}
	if err := g.openRecord(1); err != nil || g.mode != spec.Headless {
		return err
	}
	j, err := g.job()
	if err != nil {
		return err
	}
	return g.startDeadline(j.Limits.Run)
}

// unknownMode fails the set-up for a mode that entrypoint.sh has no branch for.
func (g *guest) unknownMode() error { return fmt.Errorf("unknown mode %s", g.mode) }

// stopped closes the record of a set-up that was told to end.
func (g *guest) stopped([]string) error {
	code := 128 + int(syscall.SIGTERM)
	return errors.Join(g.closeRecord(spec.OutcomeStopped, spec.CauseStop, &code), exitStatus(code))
}
