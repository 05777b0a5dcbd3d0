package cli

import (
	"context"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

// wayBack adds to the error of a redeploy whose new container did not come up
// what was there before, and the command that brings it back.
func (a *app) wayBack(ctx context.Context, c *ucli.Context, r *redeployment, err error) error {
	if err == nil || context.Cause(ctx) != nil || !r.old.State.HasRun() {
		return err
	}
	f := *asFailure(err)
	if f.name == "exit" || f.code == exitTimeLimit || f.code == exitBusy || f.code == exitPending || f.code == exitOurs && !f.result {
		return err // it came up, or nothing was begun
	}
	old, lookErr := r.engine.Inspect(ctx, r.old.ID)
	if lookErr != nil {
		return err
	}
	if old != nil {
		if r.old.State.Alive() && !old.State.Alive() && r.was.Mode != spec.Headless {
			f.hint = withNext(f.hint, "its container of before is still there: agent-container start "+r.was.Name)
		}
		return &f
	}
	now, lookErr := r.engine.Inspect(ctx, compose.ProjectName(r.was.Name))
	if lookErr != nil || now != nil && now.State.Alive() && !f.result {
		return err
	}
	a.sayBefore(ctx, c, r)
	if command := r.restore(); command != "" {
		f.hint = withNext(f.hint, "as before: "+command)
	}
	return &f
}

func withNext(hint, next string) string {
	if hint == "" {
		return next
	}
	return hint + "; " + next
}

// sayBefore names the image of before, and what of the settings was another one.
func (a *app) sayBefore(ctx context.Context, c *ucli.Context, r *redeployment) {
	a.say("%s: its image of before: %s", r.was.Name, a.imageBefore(ctx, r))
	for _, change := range spec.Changes(r.was, r.next.spec) {
		line := change.String()
		if why := a.origin(c, change.Field); why != "" {
			line += " (" + why + ")"
		}
		a.say("%s: changed with it: %s", r.was.Name, line)
	}
}

// imageBefore is the image of the container that is gone, and whether the
// settings of before would make it again: an image is named by its content, so
// it stays until somebody removes it.
func (a *app) imageBefore(ctx context.Context, r *redeployment) string {
	image := r.old.Config.Image
	found, err := r.engine.FindImage(ctx, image)
	if err == nil && (found == nil || found.ID != r.old.Image) {
		image = r.old.Image // its name is another one's by now
		found, err = r.engine.FindImage(ctx, image)
	}
	switch {
	case err != nil:
		return image
	case found == nil:
		return image + ", no longer on the engine"
	}
	agent, err := spec.LookupAgent(r.was.Agent)
	if err != nil {
		return image
	}
	again, err := a.imageName(ctx, r.engine, imageWish{agent: agent, base: r.was.BaseImage, caBundle: r.was.CABundle})
	if err == nil && again != image {
		return image + ", still on the engine; its base image or this program's image files are other ones by now, so no redeploy takes it: run it by hand"
	}
	return image + ", still on the engine"
}

// restore is the redeploy that takes back what this one was told to change, or
// "". What a file has changed is changed back there.
func (r *redeployment) restore() string {
	argv := []string{"agent-container", "redeploy", r.was.Name}
	for _, change := range spec.Changes(r.was, r.next.spec) {
		argv = append(argv, r.undo(change)...)
	}
	argv = append(argv, undoEgress(r.was, r.next.spec)...)
	if len(argv) == 3 {
		return ""
	}
	command := process.Quote(argv)
	if r.was.Mode == spec.Headless {
		command += " --task ..."
	}
	return command
}

// undo are the flags that take back one change, none where no flag does.
func (r *redeployment) undo(change spec.Change) []string {
	if ofEgress(change.Field) {
		return nil // undoEgress takes back all of it
	}
	s := sourceOf(change.Field)
	typed := s.key == "" || slices.Contains(r.next.spec.Typed, s.flag) || slices.Contains(r.was.Typed, s.flag)
	switch change.Field {
	case "env_names": // what was typed stays
		return nil
	case "env_files":
		return eachFlag(s.flag, r.was.EnvFiles)
	case "authorized_keys":
		if len(r.was.AccessFiles) == 0 {
			return valueFlag(s.flag, "none")
		}
		return eachFlag(s.flag, r.was.AccessFiles)
	case "mounts":
		if len(r.was.Mounts) == 0 {
			return valueFlag(s.flag, "none")
		}
		var list []string
		for _, m := range r.was.Mounts {
			list = append(list, m.String())
		}
		return eachFlag(s.flag, list)
	case "depth":
		if r.was.Depth == 0 && (r.was.Repo == "" || r.was.Repo != r.next.spec.Repo) {
			return nil // --repo or --no-repo says it
		}
		if r.was.Depth == 0 {
			return valueFlag("repo", r.was.Repo) // alone it asks for all
		}
	case "ssh":
		return []string{boolFlag(s.flag, r.was.SSH)}
	case "workspace_dir":
		if r.was.WorkspaceDir == "" {
			return nil
		}
	}
	if !typed || s.flag == "" {
		return nil
	}
	switch {
	case change.From != "(none)":
	case s.key != "":
		change.From = "none"
	default:
		return []string{"--no-" + s.flag}
	}
	return valueFlag(s.flag, change.From)
}

func eachFlag(name string, values []string) []string {
	var argv []string
	for _, v := range values {
		argv = append(argv, valueFlag(name, v)...)
	}
	return argv
}
