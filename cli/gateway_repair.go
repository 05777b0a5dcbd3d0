package cli

import (
	"context"
	"strings"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// rejoin brings a running session behind its gateway again. A container joins a
// network namespace when it starts: after the gateway was started once more, what
// runs is in one that is no more, with nothing but the loopback, and the engine
// says running all the same. A job is left alone: its guest ends it.
func (a *app) rejoin(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec) (*engine.Container, error) {
	if s.Mode == spec.Headless || !c.State.Alive() || !c.Beside().Gateway {
		return c, nil
	}
	all, err := e.Containers(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	gateway := gatewayOf(all, s.Name)
	switch {
	case gateway == nil:
		return nil, fail(exitFailed, "make it anew: agent-container redeploy "+s.Name, "the gateway of %s, %s, was removed: nothing can leave", s.Name, compose.GatewayContainer(s.Name))
	case c.LeftBy(gateway):
		return a.startBehind(ctx, e, c, s)
	}
	var left, names []string
	for _, other := range all {
		if other.ID != c.ID && other.Behind() && other.State.HasRun() && other.LeftBy(gateway) {
			left, names = append(left, other.ID), append(names, other.Name)
		}
	}
	if len(left) == 0 {
		return c, nil
	}
	release, err := a.lock(s.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	a.say("the gateway of %s was started again: starting %s behind it", s.Name, strings.Join(names, ", "))
	return c, e.Restart(ctx, left...)
}

// startBehind starts a session anew whose gateway is not there or another one.
func (a *app) startBehind(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec) (*engine.Container, error) {
	a.say("%s is cut off: its gateway was ended or started again; starting both", s.Name)
	if err := a.startAgain(ctx, e, c, s); err != nil {
		return nil, err
	}
	if _, err := a.await(ctx, e, s); err != nil {
		return nil, err
	}
	c, _, err := a.current(ctx, e, s.Name)
	return c, err
}
