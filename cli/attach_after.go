package cli

import (
	"context"
	"errors"
	"time"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// errAnew says that the container to which somebody was attached is another one by
// now, or was started again, and runs.
var errAnew = errors.New("its container was made or started anew")

// endTime is how long a container may outlive its session where another command ends
// it.
const endTime = 5 * time.Second

// afterLoss is what became of the session in the container was, to which a connection
// has ended: errAnew, or why nothing runs. Otherwise gone says whether the container
// runs without it, for grace or, where another command is at work, for endTime. Such a
// command is waited for: in a redeploy a container is away, or not started yet. What
// cannot be told is no error.
func (a *app) afterLoss(ctx context.Context, e *engine.Engine, was *engine.Container, s spec.Spec, grace time.Duration) (gone bool, err error) {
	for began, told := time.Now(), false; ; {
		working := a.atWork(s.Name) // before the look, which then is of what it has made
		now, err := a.find(ctx, e, s.Name)
		if err != nil {
			return false, nil
		}
		waited := time.Since(began)
		switch alive := now != nil && now.State.Alive(); {
		case alive && (now.ID != was.ID || !now.State.StartedAt.Equal(was.State.StartedAt)):
			return false, errAnew
		case alive:
			var none *failure
			if err := probeByExec(ctx, e, s); !errors.As(err, &none) {
				return false, nil
			}
			if !working && waited >= grace || waited > endTime {
				return true, nil
			}
		case !working:
			return false, notThere(s, now)
		case waited > workTime:
			return false, fail(exitBusy, "attach again: agent-container attach "+s.Name, "another command is changing %s", s.Name)
		}
		if working && waited > time.Second && !told {
			a.say("waiting for another command, which changes %s", s.Name)
			told = true
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// notThere is the error for a deployment of which nothing runs, c if there is one.
func notThere(s spec.Spec, c *engine.Container) error {
	if c == nil {
		return noDeployment(s.Name)
	}
	if now, err := specOf(c); err == nil {
		s = now
	}
	return notAlive(s, c)
}
