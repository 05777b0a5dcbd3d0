package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// typedMounts reads the --mount flags. "none" alone means to have none.
func typedMounts(typed []string) ([]spec.Mount, error) {
	if slices.Contains(typed, "none") {
		if len(typed) > 1 {
			return nil, refuse("drop --mount none; the directory of that name is ./none", "--mount none excludes every other --mount")
		}
		return nil, nil
	}
	var list []spec.Mount
	for _, text := range typed {
		m, err := spec.ParseMount(text)
		if err != nil {
			return nil, err
		}
		abs, err := filepath.Abs(m.Source)
		if err != nil {
			return nil, err
		}
		if m.Path == "" {
			m.Path = spec.MountDir + "/" + filepath.Base(abs) // as it is called here, also when that is a link
		}
		if m.Source, err = hostDirectory("--mount", m.Source); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	slices.SortStableFunc(list, func(a, b spec.Mount) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// hostDirectory returns the absolute path of a directory that may be shown to an
// agent, links resolved, or refuses.
func hostDirectory(flag, dir string) (string, error) {
	abs, err := existingDirectory(flag, dir)
	if err != nil {
		return "", err
	}
	if compose.HoldsSocket(abs) {
		return "", refuse("name the directory of a project", "%s: %s may hold an engine's socket, which is root on the host, read-only too", flag, abs)
	}
	return abs, nil
}

// shown is a directory of the host that a deployment sees, and its flag.
type shown struct{ flag, dir string }

func shownDirectories(s spec.Spec) []shown {
	var list []shown
	if s.Workspace == spec.Bind {
		list = append(list, shown{"--workspace-dir", s.WorkspaceDir})
	}
	for _, m := range s.Mounts {
		list = append(list, shown{"--mount", m.Source})
	}
	return list
}

// checkShown refuses directories of this host that are not there any more, hold
// the engine's own socket, or are not on the engine's host.
func (a *app) checkShown(ctx context.Context, s spec.Spec) error {
	list := shownDirectories(s)
	if len(list) == 0 {
		return nil
	}
	at, err := engine.New(a.runner).Host(ctx)
	if err != nil {
		return err
	}
	socket, isSocket := strings.CutPrefix(at, "unix://")
	for _, d := range list {
		if !isSocket {
			return refuse("run agent-container on the engine's host, or keep the files on a volume: --workspace persistent",
				"%s: %s is a directory of this host, and the engine is reached at %s", d.flag, d.dir, at)
		}
		dir, err := hostDirectory(d.flag, d.dir)
		if err != nil {
			return err
		}
		if strings.HasPrefix(socket, strings.TrimSuffix(dir, "/")+"/") {
			return refuse("name the directory of a project", "%s: %s holds the engine's socket %s, which is root on the host, read-only too", d.flag, dir, socket)
		}
	}
	return nil
}

// checkSeen refuses directories that the engine does not see, although it is on
// this host by its address: it may run in a virtual machine, or have mounts of
// its own. Compose would find out when volumes are made and the old container is
// stopped.
func checkSeen(ctx context.Context, e *engine.Engine, s spec.Spec, image string) error {
	var dirs []string
	for _, d := range shownDirectories(s) {
		dirs = append(dirs, d.dir)
	}
	if len(dirs) == 0 {
		return nil
	}
	unseen, err := e.Unseen(ctx, s.Name, image, dirs)
	if err == nil && unseen != "" {
		err = refuse("share the directory with the engine's virtual machine, or keep the files on a volume: --workspace persistent",
			"the engine does not see %s, which is a directory here: it runs in a virtual machine, or has mounts of its own", unseen)
	}
	return err
}
