package cli

import (
	"context"
	"strings"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// rejoin brings a running session behind its gateway again. A container joins a
// network namespace when it starts: after the gateway was started once more, what
// runs is in one that is no more, with nothing but the loopback, and the engine
// says running all the same. A job is left alone: its guest ends it. The container
// that it returns is c itself where nothing had to be started.
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
		return nil, gatewayRemoved(s.Name)
	case c.LeftBy(gateway):
		a.say("%s is cut off: its gateway was ended or started again; starting both", s.Name)
		return a.startedAgain(ctx, e, c, s)
	}
	var left []*engine.Container
	for _, other := range all {
		if other.ID != c.ID && other.Behind() && other.State.HasRun() && other.LeftBy(gateway) {
			left = append(left, other)
		}
	}
	if len(left) == 0 {
		return c, nil
	}
	return a.restartBehind(ctx, e, c, left)
}

// restartBehind starts services behind the gateway of c, which is another one than
// theirs was, once it enforces: a service sends as soon as it runs.
func (a *app) restartBehind(ctx context.Context, e *engine.Engine, c *engine.Container, left []*engine.Container) (*engine.Container, error) {
	name := c.Deployment()
	release, err := a.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer release()
	switch why, err := a.enforcesSoon(ctx, e, c); {
	case err != nil:
		return nil, err
	case why != "":
		return nil, fail(exitFailed, "make it anew: agent-container redeploy "+name, "the gateway of %s was started again and does not enforce: %s", name, why)
	}
	var ids, names []string
	for _, l := range left {
		ids, names = append(ids, l.ID), append(names, l.Name)
	}
	a.say("the gateway of %s was started again: starting %s behind it", name, strings.Join(names, ", "))
	if err := e.Restart(ctx, ids...); err != nil {
		return nil, err
	}
	c, _, err = a.current(ctx, e, name)
	return c, err
}

// enforcesSoon is unenforced once a gateway that was just started had the time to
// install its rules, which the guest gives it too.
func (a *app) enforcesSoon(ctx context.Context, e *engine.Engine, c *engine.Container) (why string, err error) {
	for began, told := time.Now(), false; ; {
		if why, err = a.unenforced(ctx, e, c); err != nil || why == "" || time.Since(began) > spec.GatewayStart {
			return why, err
		}
		gateway, err := e.Inspect(ctx, compose.GatewayContainer(c.Deployment()))
		if err != nil || gatewayLost(c, gateway) != "" {
			return why, err
		}
		if !told {
			a.say("waiting for the gateway of %s to enforce", c.Deployment())
			told = true
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return "", err
		}
		if now, err := a.find(ctx, e, c.Deployment()); err != nil || now == nil || now.ID != c.ID || !now.State.Alive() {
			return why, err
		}
	}
}

func gatewayRemoved(name string) *failure {
	return fail(exitFailed, "make it anew: agent-container redeploy "+name, "the gateway of %s, %s, was removed: nothing can leave", name, compose.GatewayContainer(name))
}

// readyGateway makes a gateway ready to be started, with nothing beside it: a
// service that still runs may be in the namespace of a start before.
func (a *app) readyGateway(ctx context.Context, e *engine.Engine, name string) error {
	if err := a.stopAll(ctx, e, name); err != nil {
		return err
	}
	gateway, err := e.Inspect(ctx, compose.GatewayContainer(name))
	if err == nil && gateway == nil {
		return gatewayRemoved(name)
	}
	if err == nil {
		err = e.Fill(ctx, gateway.ID, freshResolvers)
	}
	return attempted("start the gateway of", name, err)
}
