package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/agent-container/agent-container/spec"
)

// cloneDir, in the workspace, is where a clone grows until it is whole. It is
// on the workspace's own volume, so that its entries can be moved.
const cloneDir = ".agent-container-clone"

// wholeMark, in a clone's .git, says that nothing is missing in it but the move.
const wholeMark = "agent-container-whole"

// errPending says that the set-up waits for the container's key to be registered.
var errPending = errors.New("the SSH key is not registered")

// setupClone puts the repository into the workspace, once: a work tree of it
// that is there is left alone, and anything else there is refused. Half a
// repository is never taken for a whole one: the clone is made aside, and its
// .git is moved last.
func (g *guest) setupClone() error {
	if g.cloneURL == "" {
		return nil
	}
	repo, _, err := spec.ParseRepo(g.cloneURL)
	if err != nil {
		return err
	}
	aside := filepath.Join(g.workspace, cloneDir)
	if !exists(filepath.Join(aside, ".git", wholeMark)) {
		if exists(filepath.Join(g.workspace, ".git")) {
			return errors.Join(g.checkOrigin(repo), os.RemoveAll(aside))
		}
		if err := g.refuseOccupied(repo); err != nil {
			return err
		}
		if err := os.RemoveAll(aside); err != nil {
			return err
		}
		if err := g.cloneAside(repo, aside); err != nil {
			return err
		}
	}
	return g.moveIn(aside)
}

// checkOrigin refuses a work tree that is another repository's.
func (g *guest) checkOrigin(repo spec.Repo) error {
	origin, err := g.git("config", "--get", "remote.origin.url")
	if origin = strings.TrimSpace(origin); err != nil || origin == "" {
		return fmt.Errorf("%s holds a repository without an origin, and %s was asked for; %s", g.workspace, repo.URL, g.otherWays())
	}
	if !repo.Same(origin) {
		return fmt.Errorf("%s holds a clone of %s, and %s was asked for; %s", g.workspace, withoutUserinfo(origin), repo.URL, g.otherWays())
	}
	return nil
}

func (g *guest) otherWays() string {
	return fmt.Sprintf("keep it: agent-container redeploy %s --no-repo; or take another NAME", g.name)
}

// withoutUserinfo drops what stands before the host of a URL: somebody may have
// put a token there.
func withoutUserinfo(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	host, path, _ := strings.Cut(rest, "/")
	return scheme + "://" + host[strings.LastIndex(host, "@")+1:] + "/" + path
}

// refuseOccupied refuses a workspace that holds anything but a clone of ours
// that was begun.
func (g *guest) refuseOccupied(repo spec.Repo) error {
	entries, err := os.ReadDir(g.workspace)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != cloneDir {
			return fmt.Errorf("%s holds %s and is no clone of %s; move it away: agent-container exec %s; or %s",
				g.workspace, spec.Printable(e.Name(), 60), repo.URL, g.name, g.otherWays())
		}
	}
	return nil
}

// cloneAside makes a whole clone in dir: history, the work tree of the ref, what
// LFS keeps elsewhere, and submodules.
func (g *guest) cloneAside(repo spec.Repo, dir string) error {
	job, err := g.job()
	if err != nil {
		return err
	}
	if repo.SSH {
		if err := g.makeSSHKey(); err != nil {
			return wrap("SSH key", err)
		}
	}
	c := &cloning{guest: g, repo: repo, job: job}
	if err := c.clone(dir); err != nil {
		return err
	}
	if exists(filepath.Join(dir, ".gitmodules")) {
		if err := c.git("-C", dir, "submodule", "update", "--init", "--recursive", "--progress"); err != nil {
			return wrap("submodules", err)
		}
	}
	if _, err := g.git("-C", dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		if err := g.setNote("the repository " + repo.URL + " is empty"); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, ".git", wholeMark), nil, 0o600)
}

// moveIn moves a whole clone into the workspace. It goes on where a kill has
// interrupted it.
func (g *guest) moveIn(aside string) error {
	entries, err := os.ReadDir(aside)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		if err := os.Rename(filepath.Join(aside, e.Name()), filepath.Join(g.workspace, e.Name())); err != nil {
			return err
		}
	}
	if err := syncDisk(g.workspace); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(aside, ".git"), filepath.Join(g.workspace, ".git")); err != nil {
		return err
	}
	return errors.Join(os.Remove(filepath.Join(g.workspace, ".git", wholeMark)), os.Remove(aside))
}

// syncDisk writes out the file system that holds dir, so that a power cut after
// the last move leaves what was moved.
func syncDisk(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return &fs.PathError{Op: "sync", Path: dir, Err: err}
	}
	return nil
}
