package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

func (p *planAnswer) change(field, what, why string) {
	p.Changes = append(p.Changes, planChange{Field: field, What: what, Why: why})
}

// compareKeys tells of every key of two maps whether it was added, removed or
// changed, in order.
func compareKeys[V any](was, next map[string]V, same func(a, b V) bool, tell func(key, what string)) {
	keys := maps.Clone(was)
	if keys == nil {
		keys = map[string]V{}
	}
	maps.Copy(keys, next)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		before, had := was[k]
		now, has := next[k]
		switch {
		case !had:
			tell(k, "added")
		case !has:
			tell(k, "removed")
		case !same(before, now):
			tell(k, "changed")
		}
	}
}

// planPort tells of the port of ssh, which a redeploy keeps.
func (a *app) planPort(_ context.Context, _ *ucli.Context, r *redeployment, p *planAnswer) error {
	_, port, had := r.old.SSH()
	switch has := r.next.spec.HasSSH(); {
	case had && has:
		p.Keeps = append(p.Keeps, "ssh port "+strconv.Itoa(port))
	case had:
		p.Changes = append(p.Changes, planChange{Field: "ssh port", From: strconv.Itoa(port), To: "(none)"})
	case has:
		p.Changes = append(p.Changes, planChange{Field: "ssh port", From: "(none)", To: "a free one of " + a.settings.Get("ssh_ports").Text})
	}
	return nil
}

// planImage compares the image of the container with the one that would be
// taken, by name and, since build may have renewed that one, by id.
func (a *app) planImage(ctx context.Context, _ *ucli.Context, r *redeployment, p *planAnswer) error {
	if was := r.old.Config.Labels[compose.LabelVersion]; was != version() {
		p.Changes = append(p.Changes, planChange{Field: "version", From: spec.Printable(was, 100), To: version(), Why: "this program"})
	}
	image, err := a.imageName(ctx, r.engine, r.next.imageWish())
	var f *failure
	if errors.As(err, &f) && f.code == exitFailed { // the base is not here
		p.Unknown = append(p.Unknown, "the image: "+f.message)
		return nil
	}
	if err != nil {
		return err
	}
	p.Image = image
	found, err := r.engine.FindImage(ctx, image)
	if err != nil {
		return err
	}
	if found != nil {
		built := found.Built()
		p.Built = &built
	}
	old := r.old.Config.Image
	switch {
	case old != image:
		why := "its base image, this program's image files, or both are other ones"
		if r.was.Agent != r.next.spec.Agent {
			why = "the agent is another one"
		}
		if found == nil {
			why += "; it would be built"
		}
		p.Changes = append(p.Changes, planChange{Field: "image", From: old, To: image, Why: why})
	case found == nil:
		p.change("image", "built again", "it is no longer on the engine")
	case found.ID != r.old.Image:
		p.change("image", "changed", "it was built again since, see agent-container build")
	}
	return nil
}

// planEnvironment tells which variables would have another value, by name only.
func (a *app) planEnvironment(ctx context.Context, c *ucli.Context, r *redeployment, p *planAnswer) error {
	was, err := filledEnvironment(ctx, r.engine, r.was.Name)
	if err != nil {
		return err
	}
	typed, err := a.typedEnvironment(c)
	if err != nil {
		return err
	}
	compareKeys(was, r.next.fill.env, func(a, b string) bool { return a == b }, func(name, what string) {
		p.change("environment "+name, what, a.variableOrigin(r.next, typed, name))
	})
	return nil
}

// variableOrigin says where a variable of the next environment comes from: what
// was typed, else the last file that has it, else the project's.
func (a *app) variableOrigin(d *deployment, typed environment, name string) string {
	if _, ok := typed[name]; ok {
		return "--env"
	}
	for _, file := range slices.Backward(d.spec.EnvFiles) {
		env := environment{}
		if a.readEnvFile(env, file) == nil && hasKey(env, name) {
			return file
		}
	}
	if env := (environment{}); d.brought.environment(env, d.spec.Name) == nil && hasKey(env, name) {
		return d.brought.place(d.spec.Name + settings.BroughtEnv)
	}
	return "in none of its files"
}

func hasKey(env environment, name string) bool { _, ok := env[name]; return ok }
