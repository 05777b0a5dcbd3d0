package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func sshKeyCommand() command {
	return command{
		name: "ssh-key", group: groupKeys, usage: "see and change the key that a container shows to git servers",
		sub: []command{
			{name: "show", args: "NAME", usage: "print its public half, to be registered; it is made when first asked for", min: 1, max: 1, run: (*app).sshKeyShow},
			{name: "rotate", args: "NAME", usage: "make a new one; what the old one was registered for is lost", flags: []ucli.Flag{yesFlag()}, min: 1, max: 1, run: (*app).sshKeyRotate},
		},
	}
}

// sshKeyAnswer is a container's own key.
type sshKeyAnswer struct {
	Name      string `json:"name"`
	PublicKey string `json:"public_key"`
}

func (k sshKeyAnswer) text(w io.Writer) { fmt.Fprintln(w, k.PublicKey) }

// sshKeyShow asks a running container, which makes its key if need be; reads it
// from one that does not run; and where neither can be reached tells what it has
// seen last.
func (a *app) sshKeyShow(ctx context.Context, c *ucli.Context) (any, error) {
	name := c.Args().First()
	e, found, s, err := a.named(ctx, c)
	var unreachable *engine.UnreachableError
	if errors.As(err, &unreachable) {
		key, keptErr := a.keptKey(name)
		if keptErr != nil || key == "" {
			return nil, errors.Join(err, keptErr)
		}
		a.say("the engine does not answer; this is the key of %s as it was seen last", name)
		return sshKeyAnswer{name, key}, nil
	}
	if err != nil {
		return nil, err
	}
	if found.State.Status == "running" {
		return a.askForKey(ctx, e, s.Name, "show")
	}
	key, err := a.containerKey(ctx, e, s.Name)
	if err == nil && key == "" {
		err = fail(exitNotFound, "it is made in a running container; run: agent-container start "+s.Name, "%s has no SSH key yet, and is %s", s.Name, found.State.Status)
	}
	return sshKeyAnswer{s.Name, key}, err
}

func (a *app) sshKeyRotate(ctx context.Context, c *ucli.Context) (any, error) {
	e, found, s, err := a.named(ctx, c)
	if err != nil {
		return nil, err
	}
	if found.State.Status != "running" {
		next := "start"
		if s.Mode == spec.Headless {
			next = "redeploy"
		}
		return nil, fail(exitNotFound, "run: agent-container "+next+" "+s.Name, "the key of %s is made in its container, which is %s", s.Name, found.State.Status)
	}
	if err := a.confirm(c, "make a new SSH key for "+s.Name+"; what the old one was registered for is lost"); err != nil {
		return nil, err
	}
	release, err := a.lock(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	answer, err := a.askForKey(ctx, e, s.Name, "rotate")
	if err == nil {
		a.say("the old key of %s is gone: register the new one in its place", s.Name)
	}
	return answer, err
}

// askForKey has the guest of a running container show or make its key.
func (a *app) askForKey(ctx context.Context, e *engine.Engine, name, verb string) (any, error) {
	out, err := e.Probe(ctx, compose.ProjectName(name), spec.ContainerGuest, "ssh-key", verb)
	if err != nil {
		return nil, fail(exitFailed, "read: agent-container logs "+name, "ssh-key %s in the container of %s: %w", verb, name, err)
	}
	key, err := publicKey(name, []byte(out))
	if err != nil {
		return nil, err
	}
	return sshKeyAnswer{name, key}, a.keepKey(name, key)
}
