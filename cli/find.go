package cli

import (
	"context"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// begin is the beginning of every command on one deployment: its name checked,
// the directories and the engine found, and what else is asked meanwhile.
func (a *app) begin(ctx context.Context, c *ucli.Context, meanwhile ...func(context.Context, *engine.Engine) error) (string, *engine.Engine, error) {
	name, err := deploymentName(c)
	if err != nil {
		return "", nil, err
	}
	if err := a.places(); err != nil {
		return "", nil, err
	}
	e, err := a.engine(ctx, meanwhile...)
	return name, e, err
}

// beginChange is begin for a command that changes a deployment, which has to
// exist: what an interrupted recreate has left is repaired first.
func (a *app) beginChange(ctx context.Context, c *ucli.Context) (*engine.Engine, *engine.Container, spec.Spec, error) {
	return a.beginWith(ctx, c, a.findRepaired)
}

// named is begin for a command that looks at a deployment, which has to exist.
func (a *app) named(ctx context.Context, c *ucli.Context) (*engine.Engine, *engine.Container, spec.Spec, error) {
	return a.beginWith(ctx, c, a.find)
}

// finder looks for the agent container of a deployment, nil when there is none.
type finder func(context.Context, *engine.Engine, string) (*engine.Container, error)

func (a *app) beginWith(ctx context.Context, c *ucli.Context, find finder) (*engine.Engine, *engine.Container, spec.Spec, error) {
	e, found, err := a.beginFound(ctx, c, find)
	if err != nil {
		return nil, nil, spec.Spec{}, err
	}
	s, err := specOf(found)
	return e, found, s, err
}

// beginFound is begin for a command on a deployment that has to exist, whatever
// can be read of it.
func (a *app) beginFound(ctx context.Context, c *ucli.Context, find finder) (*engine.Engine, *engine.Container, error) {
	var found *engine.Container
	name, e, err := a.begin(ctx, c, func(ctx context.Context, e *engine.Engine) (err error) {
		found, err = find(ctx, e, c.Args().First())
		return err
	})
	if err == nil && found == nil {
		err = noDeployment(name)
	}
	return e, found, err
}

// current finds the agent container of a deployment and its spec. It returns a
// *failure with code 4 when there is none, and a *engine.ForeignError when its
// name belongs to something else.
func (a *app) current(ctx context.Context, e *engine.Engine, name string) (*engine.Container, spec.Spec, error) {
	c, err := a.find(ctx, e, name)
	return existing(c, err, name)
}

func existing(c *engine.Container, err error, name string) (*engine.Container, spec.Spec, error) {
	if err != nil {
		return nil, spec.Spec{}, err
	}
	if c == nil {
		return nil, spec.Spec{}, noDeployment(name)
	}
	s, err := specOf(c)
	return c, s, err
}

func noDeployment(name string) *failure {
	return fail(exitNotFound, "see: agent-container list; make it: agent-container up "+name, "no deployment %s", name)
}

// find returns the agent container of a deployment, nil when there is none,
// or a *engine.ForeignError.
func (a *app) find(ctx context.Context, e *engine.Engine, name string) (*engine.Container, error) {
	c, err := e.Inspect(ctx, compose.ProjectName(name))
	if err != nil || c == nil {
		return nil, err
	}
	if !compose.Owned(c.Config.Labels, name) {
		return nil, &engine.ForeignError{Kind: "container", Name: c.Name}
	}
	return c, nil
}

// specOf reads a deployment's spec from its container.
func specOf(c *engine.Container) (spec.Spec, error) {
	i, err := compose.Inherit(c.Deployed())
	switch {
	case err != nil:
		return i.Spec, fail(exitFailed, "it was made by another version ("+c.Config.Labels[compose.LabelVersion]+"); use that one, or: agent-container down "+c.Deployment(),
			"the container %s: %w", c.Name, err)
	case i.Bare:
		return i.Spec, fail(exitFailed, "make it anew from what can be read: agent-container redeploy "+c.Deployment()+"; or remove it: agent-container down "+c.Deployment(),
			"the container %s has no readable spec label", c.Name)
	}
	return i.Spec, nil
}
