package cli

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// errLeft says that a followed run goes on without us.
var errLeft = errors.New("left running")

// follow copies a headless run's output until it is over and returns its
// container. The engine's log ends with the container, and may end before: then
// it is followed again. The first INT or TERM stops the run, the second kills it;
// HUP leaves it.
func (a *app) follow(ctx context.Context, e *engine.Engine, name string) (*engine.Container, error) {
	before := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stops := newStopper(a, e, name, cancel)
	defer stops.close()
	stops.catchUp(before)
	since := ""
	for {
		logErr := e.Logs(ctx, compose.ProjectName(name), true, since, "", a.streams())
		read, limit := time.Now(), settleTime
		if logErr != nil {
			limit = time.Second // nothing says that the run is over
		}
		c, err := a.untilEnded(ctx, e, name, limit)
		switch {
		case errors.Is(context.Cause(ctx), errLeft):
			return nil, errLeft
		case err != nil:
			return nil, err
		case !c.State.Alive() && logErr != nil && stops.cause() == nil:
			return c, fail(exitOurs, "read it again: agent-container logs "+name, "the output of %s could not be passed on: %w", name, logErr)
		case !c.State.Alive():
			return c, stops.cause()
		case logErr != nil:
			// Our output is closed, or the log cannot be read; the run goes on.
			return nil, errLeft
		}
		since = read.Format(time.RFC3339Nano)
	}
}

// settleTime bounds how long the engine may still call a container running
// after its log has ended.
const settleTime = 10 * time.Second

// untilEnded inspects until the container has ended, or limit is over.
func (a *app) untilEnded(ctx context.Context, e *engine.Engine, name string, limit time.Duration) (*engine.Container, error) {
	deadline := time.Now().Add(limit)
	for {
		c, err := e.Inspect(ctx, compose.ProjectName(name))
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, fail(exitOurs, "see: agent-container runs list "+name, "the container of %s was removed while it was followed", name)
		}
		if !c.State.Alive() || time.Now().After(deadline) {
			return c, nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// stopper answers signals while a run is followed.
type stopper struct {
	app    *app
	former func(os.Signal)
	first  chan struct{} // closed at the first stop
	handle func(os.Signal)
	err    error

	mu    sync.Mutex
	calls int
}

// catchUp answers a signal that came after the start and before anybody could
// answer it: the run must not go on as if nobody had pressed Ctrl-C.
func (s *stopper) catchUp(before context.Context) {
	switch context.Cause(before) {
	case errInterrupted:
		s.handle(syscall.SIGINT)
	case errTerminated:
		s.handle(syscall.SIGTERM)
	case errHungUp:
		s.handle(syscall.SIGHUP)
	}
}

func newStopper(a *app, e *engine.Engine, name string, cancel context.CancelCauseFunc) *stopper {
	s := &stopper{app: a, first: make(chan struct{})}
	s.handle = func(sig os.Signal) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if sig == syscall.SIGHUP {
			cancel(errLeft)
			return
		}
		s.calls++
		switch s.calls {
		case 1:
			s.err = errInterrupted
			if sig == syscall.SIGTERM {
				s.err = errTerminated
			}
			a.say("stopping %s; again to kill it", name)
			close(s.first)
			go func() {
				if err := e.Stop(context.Background(), compose.ProjectName(name)); err != nil {
					a.say("error: stop %s: %s", name, oneLine(err.Error()))
				}
			}()
		case 2:
			go func() {
				if err := e.Kill(context.Background(), compose.ProjectName(name)); err != nil {
					a.say("error: kill %s: %s", name, oneLine(err.Error()))
				}
			}()
		}
	}
	s.former = a.signals.set(s.handle)
	return s
}

func (s *stopper) close() { s.app.signals.set(s.former) }

// cause is why the run was stopped by us, nil when it was not.
func (s *stopper) cause() error {
	select {
	case <-s.first:
		return s.err
	default:
		return nil
	}
}

// followToEnd follows a run, settles it and turns its end into an answer: nil
// for the agent's 0, else a failure with its code.
func (a *app) followToEnd(ctx context.Context, e *engine.Engine, s spec.Spec) (any, error) {
	c, err := a.follow(ctx, e, s.Name)
	switch {
	case errors.Is(err, errLeft):
		f := fail(exitOurs, "follow it: agent-container logs -f "+s.Name+"; its end: agent-container runs list "+s.Name, "%s goes on without us", s.Name)
		return nil, f
	case err != nil && c == nil:
		return nil, afterStart(err)
	}
	record, settleErr := a.settle(context.WithoutCancel(ctx), e, c, s)
	answer := a.describe(c, s, record)
	if err != nil {
		f := asFailure(err)
		f.data = answer
		return nil, f
	}
	if settleErr != nil {
		return nil, afterStart(settleErr)
	}
	answer.silent = true // the agent has spoken
	return a.jobEnd(ctx, e, c, s, answer)
}

// jobEnd turns the end of a job into an answer: nil for the agent's 0, a
// failure with its code, 124 when a limit of ours ended it, or 125 when the
// set-up failed and it never ran.
func (a *app) jobEnd(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec, answer *deploymentAnswer) (any, error) {
	run := answer.Run
	if run != nil && run.Cause == spec.CauseTimeout && c.State.ExitCode == spec.ExitTimeLimit {
		f := fail(exitTimeLimit, "allow more time: agent-container redeploy "+s.Name+" --timeout ... --task ...",
			"%s was ended: %s", s.Name, spec.Printable(strings.Join(run.Notes, "; "), 300))
		f.data = answer
		return nil, f
	}
	code := c.State.ExitCode
	if run != nil && run.EndedAt != nil && run.ExitCode != nil && !c.State.Alive() && c.State.StartedAt.After(*run.EndedAt) {
		code = *run.ExitCode // somebody has started the container once more, which ran nothing
	}
	if code != 0 && (run == nil || run.AgentAt == nil && run.Cause != spec.CauseStop) {
		// The agent never ran, unless the status, which then is all there is, says so.
		status, err := lastStatus(ctx, e, c.ID)
		switch {
		case err == nil && status.State == spec.Failed:
			return nil, afterStart(setupFailure(s.Name, status, answer))
		case err == nil && status.State == spec.Starting:
			f := fail(exitOurs, "read: agent-container logs "+s.Name, "%s ended in phase %s of its set-up, with status %d", s.Name, status.Phase, code)
			f.data, f.result = answer, true
			return nil, f
		}
	}
	if run != nil && run.Cause == spec.CauseEgress {
		a.say("%s was ended because its gateway was lost: exit code %d is that of the forced stop, not the agent's own", s.Name, code)
	}
	if code != 0 {
		return nil, childExit(code, s.Agent, answer)
	}
	return answer, nil
}
