package cli

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
)

// twinPattern is what Compose calls a container while it replaces another one:
// the first twelve digits of that one's id and its name.
var twinPattern = regexp.MustCompile(`^[0-9a-f]{12}_(.+)$`)

// twinOf returns the name that c was to have, or "" when c is no twin.
func twinOf(c *engine.Container) string {
	m := twinPattern.FindStringSubmatch(c.Name)
	if m != nil && (strings.HasPrefix(m[1], compose.ProjectName(c.Deployment())) || m[1] == compose.GatewayContainer(c.Deployment())) {
		return m[1]
	}
	return ""
}

// findRepaired is find after the repair of what an interrupted recreate has left:
// of a container and its twins one stays, under the name.
func (a *app) findRepaired(ctx context.Context, e *engine.Engine, name string) (*engine.Container, error) {
	if err := a.awaitOrphans(ctx, name); err != nil {
		return nil, err
	}
	var all []*engine.Container
	var named *engine.Container
	err := together(ctx,
		func(ctx context.Context) (err error) { all, err = e.Containers(ctx, name); return err },
		func(ctx context.Context) (err error) { named, err = a.find(ctx, e, name); return err }, // something else may have the name
	)
	isTwin := func(c *engine.Container) bool { return twinOf(c) != "" }
	if err != nil || !slices.ContainsFunc(all, isTwin) && !slices.ContainsFunc(all, (*engine.Container).Going) {
		return named, err
	}
	release, err := a.lock(ctx, name) // nobody is in the middle of a recreate
	if err != nil {
		return nil, err
	}
	defer release()
	if all, err = e.Settled(ctx, name); err != nil {
		return nil, err
	}
	if err := a.repairTwins(ctx, e, all); err != nil {
		return nil, err
	}
	return a.find(ctx, e, name)
}

// repairTwins leaves one container of each name.
func (a *app) repairTwins(ctx context.Context, e *engine.Engine, all []*engine.Container) error {
	groups := map[string][]*engine.Container{}
	for _, c := range all {
		if name := twinOf(c); name != "" {
			groups[name] = append(groups[name], c)
		}
	}
	for name, twins := range groups {
		if i := slices.IndexFunc(all, func(c *engine.Container) bool { return c.Name == name }); i >= 0 {
			twins = append(twins, all[i])
		}
		if err := a.keepOne(ctx, e, name, twins); err != nil {
			return err
		}
	}
	return nil
}

// freeName deals with the container that has the name which one of the deployment
// was to be created with. What the engine makes for a command that was killed has
// its name before it is listed: it comes to light after everybody has looked. Once
// it is whole it is a twin, or what Compose replaces. Otherwise it is conflict, the
// error of the create.
func (a *app) freeName(ctx context.Context, e *engine.Engine, name, holder string, conflict error) error {
	c, err := settledHolder(ctx, e, holder)
	switch {
	case err != nil || c == nil:
		return err
	case !compose.Owned(c.Config.Labels, name):
		return &engine.ForeignError{Kind: "container", Name: c.Name}
	case c.State.HasRun(): // somebody's who does not share our locks
		return fail(exitFailed, "run the command again", "%w", conflict)
	}
	all, err := e.Containers(ctx, name)
	if err != nil {
		return err
	}
	return a.repairTwins(ctx, e, slices.DeleteFunc(all, func(c *engine.Container) bool {
		return c.ID != holder && !c.ByCompose() // put aside by retire
	}))
}

// settledHolder is the container with an id once it is neither on its way in nor out,
// or nil: then its name may be free.
func settledHolder(ctx context.Context, e *engine.Engine, id string) (*engine.Container, error) {
	for began := time.Now(); ; {
		c, err := e.Inspect(ctx, id)
		limit := time.Second // it is not listed yet, or gone
		if c != nil {
			limit = workTime
		}
		if err != nil || c != nil && !c.Going() || time.Since(began) > limit {
			return c, err
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// keepOne keeps the container that has run, which holds what was filled and the
// records, else the newest, and gives it the name.
func (a *app) keepOne(ctx context.Context, e *engine.Engine, name string, list []*engine.Container) error {
	slices.SortFunc(list, func(a, b *engine.Container) int {
		if a.State.HasRun() != b.State.HasRun() {
			if a.State.HasRun() {
				return -1
			}
			return 1
		}
		return b.Created.Compare(a.Created)
	})
	for _, c := range list[1:] {
		a.say("removing %s, which an interrupted recreate has left", c.Name)
		if err := e.Remove(ctx, c.ID); err != nil {
			return err
		}
	}
	if list[0].Name == name {
		return nil
	}
	a.say("renaming %s to %s: a recreate was interrupted", list[0].Name, name)
	return e.Rename(ctx, list[0].ID, name)
}
