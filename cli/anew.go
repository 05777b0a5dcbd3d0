package cli

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// startAnew starts a stopped deployment whose container cannot start any more,
// because it keeps the port and the network that it was created with. It takes
// the deploy path with the spec, the image and the fill that the container has:
// but for the services, nothing is read again, and no task is sent again. The
// caller holds the lock.
func (a *app) startAnew(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec, cause error) error {
	lost := "its port was taken meanwhile"
	if engine.NetworkGone(cause) {
		lost = "its network was removed"
	}
	if s.Workspace == spec.Ephemeral {
		return fail(exitFailed, "make its place free and start it; or lose the workspace: agent-container redeploy "+s.Name,
			"start %s: %s, and a new container would begin with an empty ephemeral workspace: %w", s.Name, lost, cause)
	}
	if err := a.config(); err != nil {
		return err
	}
	d, err := a.prepareAgain(ctx, s)
	if err != nil {
		return err
	}
	if c.Beside().Services != (d.services != nil) {
		return fail(exitFailed, "run: agent-container redeploy "+s.Name, "start %s: %s, and its services file is not what it was: %w", s.Name, lost, cause)
	}
	if d.kept, err = keepFill(ctx, e, c); err != nil {
		return fail(exitFailed, "run: agent-container redeploy "+s.Name, "start %s: %s, and what it was given cannot be kept: %w", s.Name, lost, err)
	}
	found, err := e.FindImage(ctx, c.Config.Image)
	if err != nil {
		return err
	}
	if found != nil {
		d.image = c.Config.Image
	}
	a.say("%s is made anew: %s; its volumes and what it was given stay, the rest of the container is lost", s.Name, lost)
	if err := a.deploy(ctx, e, "start", d, c); err != nil {
		return a.whatIsLeft(ctx, e, s.Name, err)
	}
	a.endOperation(s.Name)
	return nil
}

// keptFill is what a container was filled with, and what its guest noted beside
// it: that the task was handed to the agent, for one.
type keptFill struct{ files []configFile }

// maxKept bounds what is kept in memory of a container's run directory.
const maxKept = 256 << 20

// keepFill reads the run directory of a stopped container. It holds what the
// agent left there: only its regular files are taken, and only for their old
// place in a container of the same deployment.
func keepFill(ctx context.Context, e *engine.Engine, c *engine.Container) (*keptFill, error) {
	k := &keptFill{}
	found, err := e.CopyOut(ctx, c.ID, spec.ContainerRunDir, maxKept, k.read)
	if err == nil && !found {
		err = errors.New("it is not there")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.ContainerRunDir, err)
	}
	return k, nil
}

func (k *keptFill) read(t *tar.Reader) error {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, inside := strings.CutPrefix(path.Clean(h.Name), path.Base(spec.ContainerRunDir)+"/")
		if h.Typeflag != tar.TypeReg || !inside || !filepath.IsLocal(name) || name == spec.FileStatus || name == spec.FillKey {
			continue // the last start's status must not be taken for the next one's, nor its gateway for the next one
		}
		content, err := io.ReadAll(t)
		if err != nil {
			return err
		}
		k.files = append(k.files, configFile{name, h.Mode&0o700 | 0o600, content})
	}
}

// write writes what was kept to its old place.
func (k *keptFill) write(t *tar.Writer) error {
	w := fillWriter{tar: t, dirs: map[string]bool{}}
	for _, f := range k.files {
		w.file(f.path, f.mode, f.content)
	}
	return w.err
}
