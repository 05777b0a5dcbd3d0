package cli

import (
	"context"
	"os"
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
	if why := compose.NeverShown(abs); why != "" {
		return "", refuse("name the directory of a project", "%s: %s %s", flag, abs, why)
	}
	if within(abs, "/run") || within(abs, "/var/run") { // of engines, of agents that hold keys, of buses
		return "", refuse("name the directory of a project", "%s: %s is where the host's sockets are", flag, abs)
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

// checkShown refuses directories of this host that are not there any more, have
// become links to others, hold the engine's own socket or our own files, or are
// not on the engine's host. What is made another directory after this is not
// noticed: see docs/workspaces.md.
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
		if dir != d.dir {
			return refuse("if it may be shown, name it anew: agent-container redeploy "+s.Name+" "+d.flag+" ...", "%s: %s is a link by now, to %s", d.flag, d.dir, dir)
		}
		for _, own := range []string{a.dirs.Config, a.dirs.Data, a.dirs.State} {
			if within(real(own), dir) || within(dir, real(own)) {
				return refuse("name the directory of a project", "%s: %s is, or holds, %s, where agent-container keeps keys and trust", d.flag, dir, own)
			}
		}
		if within(socket, dir) || within(real(filepath.Dir(socket)), dir) {
			return refuse("name the directory of a project", "%s: %s holds the engine's socket %s, which is root on the host, read-only too", d.flag, dir, socket)
		}
	}
	return nil
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// real is path with its links resolved, as far as it exists.
func real(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return resolved
	}
	return filepath.Join(real(filepath.Dir(path)), filepath.Base(path))
}

// keyDirectories hold what lets in elsewhere.
var keyDirectories = []string{".ssh", ".gnupg", ".aws", ".azure", ".docker", ".kube", ".netrc", ".git-credentials"}

// shownKeys lists the directories of s in which the agent will find keys of the
// user's: as uid 1000 it may well be the same user.
func shownKeys(s spec.Spec) []string {
	var list []string
	for _, d := range shownDirectories(s) {
		for _, name := range keyDirectories {
			if _, err := os.Lstat(filepath.Join(d.dir, name)); err == nil || filepath.Base(d.dir) == name {
				list = append(list, d.dir)
				break
			}
		}
	}
	return list
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
