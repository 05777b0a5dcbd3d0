package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// planFill compares what was filled into the container with what would be. The
// agent may have changed it meanwhile, and thereby what is told here, which is
// names; what is done hangs on none of it.
func (a *app) planFill(ctx context.Context, _ *ucli.Context, r *redeployment, p *planAnswer) error {
	was, err := filledFiles(ctx, r.engine, r.was.Name)
	if errors.Is(err, engine.ErrTooMuch) {
		p.Unknown = append(p.Unknown, "the agent's configuration, keys and git identity: "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	next := r.next.fill
	var job spec.Job
	if json.Unmarshal(was[spec.FillJob], &job) != nil {
		p.Unknown = append(p.Unknown, "the git identity: the container does not say what it was")
		job = next.job
	}
	for _, id := range []struct{ field, from, to string }{{"git name", job.GitName, next.job.GitName}, {"git email", job.GitEmail, next.job.GitEmail}} {
		if id.from != id.to {
			p.Changes = append(p.Changes, planChange{Field: id.field, From: orNone(id.from), To: orNone(id.to), Why: "your git configuration"})
		}
	}
	if !maps.Equal(job.Credentials, next.job.Credentials) {
		p.change("git.credentials", "changed", a.settings.Get("git.credentials").Origin)
	}
	if r.was.CABundle == r.next.spec.CABundle && !bytes.Equal(was[spec.FillCA], next.ca) {
		p.change("ca_bundle", "changed", r.next.spec.CABundle)
	}
	if r.was.Agent == r.next.spec.Agent {
		a.planConfig(was, r, p)
	}
	return a.planAccess(was, r, p)
}

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return text
}

func (a *app) planConfig(was map[string][]byte, r *redeployment, p *planAnswer) {
	before, now := map[string][]byte{}, map[string][]byte{}
	for name, content := range was {
		if rel, ok := strings.CutPrefix(name, spec.FillConfig+"/"); ok {
			before[rel] = content
		}
	}
	for _, c := range r.next.fill.config {
		now[c.path] = c.content
	}
	from := a.dirs.AgentConfig(r.was.Name, r.next.spec.Agent)
	if given := r.next.brought.config(r.was.Name, r.next.spec.Agent); len(given) > 0 {
		from = r.next.brought.place(r.was.Name + settings.BroughtConfig)
	}
	compareKeys(before, now, bytes.Equal, func(name, what string) {
		if what == "removed" {
			what = "given no longer; it stays on the volume"
		}
		p.change("config "+name, what, from)
	})
}

// planAccess counts the keys that would be let in, and no longer be.
func (a *app) planAccess(was map[string][]byte, r *redeployment, p *planAnswer) error {
	if !r.was.HasSSH() || !r.next.spec.HasSSH() {
		return nil
	}
	why := a.dirs.AuthorizedKeys()
	if _, err := readKeys(why); absent(err) {
		why = a.attachKeyPath()
		if _, err := settings.ReadRegular(why, maxAccessFile); absent(err) {
			p.change("authorized_keys", "changed", "a key for attach is made anew")
			return nil
		}
	}
	next, err := a.accessKeys(r.next.spec, false) // the key for attach is there: nothing is made
	if err != nil {
		return err
	}
	compareKeys(lines(was[spec.FillAccess]), lines(next), func(_, _ bool) bool { return true }, func(line, what string) {
		p.change("authorized_keys: a key", what, why)
	})
	return nil
}

// lines are the lines of text as a set.
func lines(text []byte) map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		set[strings.TrimSpace(line)] = true
	}
	return set
}

// filledFiles reads what a container was filled with, but for its task and its
// environment, by their names below the run directory.
func filledFiles(ctx context.Context, e *engine.Engine, name string) (map[string][]byte, error) {
	files := map[string][]byte{}
	base := path.Base(spec.ContainerRunDir)
	_, err := e.CopyOut(ctx, compose.ProjectName(name), spec.ContainerRunDir, maxConfigBytes+8<<20, func(t *tar.Reader) error {
		for {
			h, err := t.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			rel := strings.TrimPrefix(path.Clean(h.Name), base+"/")
			if h.Typeflag != tar.TypeReg || rel == spec.FillTask {
				continue
			}
			if files[rel], err = io.ReadAll(t); err != nil {
				return err
			}
		}
	})
	return files, err
}
