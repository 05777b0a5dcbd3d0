package cli

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// Bounds of waiting. The guest answers when a phase takes too long; an agent that
// stops it from answering must not hold up the host.
const (
	mostPhases = 10 // more than a set-up has
	probeGap   = 100 * time.Millisecond
	probeMax   = 100 // tries in a row that the container refuses
)

// await waits until a started container is ready, has failed in its set-up, or
// has ended.
func (a *app) await(ctx context.Context, e *engine.Engine, s spec.Spec) (spec.Status, error) {
	name, probeTime := s.Name, mostPhases*s.Limits.StartLimit()
	container := compose.ProjectName(name)
	var last spec.Status
	over := time.Now().Add(probeTime)
	for attempt := 0; ; attempt++ {
		probe, cancel := context.WithTimeout(ctx, probeTime)
		line, err := e.Probe(probe, container, spec.ContainerGuest, "status", "wait")
		late := probe.Err() != nil
		cancel()
		if err == nil {
			status, err := spec.ParseStatus(line)
			if err != nil || status.State != spec.Starting {
				return status, err
			}
			// The guest says itself when there is no progress for too long. A clone may
			// take as long as it goes on.
			if attempt = 0; status != last {
				a.say("%s: %s", name, status.Phase)
				if s.Repo != "" {
					over = time.Now().Add(probeTime)
				}
			}
			if last = status; time.Now().Before(over) {
				continue
			}
			return spec.Status{State: spec.Failed, Phase: status.Phase, Reason: fmt.Sprintf("not over after %s", probeTime)}, nil
		}
		var gone *engine.UnreachableError
		if late || errors.As(err, &gone) {
			return spec.Status{}, err
		}
		c, inspectErr := e.Inspect(ctx, container)
		if inspectErr != nil {
			return spec.Status{}, inspectErr
		}
		if c == nil || !c.State.Alive() {
			// A job can be over before anybody has asked; its last word stays.
			return lastStatus(ctx, e, container)
		}
		if attempt == probeMax {
			return spec.Status{}, err
		}
		if err := pause(ctx, probeGap); err != nil { // it is restarting, or has only just begun
			return spec.Status{}, err
		}
	}
}

// lastStatus reads the status file of a container that has ended.
func lastStatus(ctx context.Context, e *engine.Engine, container string) (spec.Status, error) {
	var status spec.Status
	found, err := e.CopyOut(ctx, container, spec.ContainerRunDir+"/"+spec.FileStatus, 64<<10, func(t *tar.Reader) error {
		if _, err := t.Next(); err != nil {
			return err
		}
		line, err := io.ReadAll(io.LimitReader(t, 4096))
		if err != nil {
			return err
		}
		status, err = spec.ParseStatus(string(line))
		return err
	})
	if err == nil && !found {
		err = errors.New("the container ended before its set-up began; see: agent-container logs " + compose.DeploymentOf(container))
	}
	return status, err
}

// setupFailure is the error for a set-up that failed.
func setupFailure(name string, s spec.Status, data any) *failure {
	f := fail(exitFailed, "read: agent-container logs "+name+"; retry: agent-container redeploy "+name,
		"the set-up of %s failed in phase %s: %s", name, s.Phase, s.Reason)
	f.data, f.result = data, true
	return f
}
