package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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
	if err := os.Remove(g.fill(spec.FileNote)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // of a clone before
	}
	aside := filepath.Join(g.workspace, cloneDir)
	if exists(filepath.Join(g.workspace, ".git")) {
		if err := g.checkOrigin(repo, g.workspace); err != nil {
			return err
		}
		return os.RemoveAll(aside) // its .git was moved, and a kill came
	}
	if exists(filepath.Join(aside, ".git", wholeMark)) && g.checkOrigin(repo, aside) == nil {
		return g.moveIn(repo, aside)
	}
	if err := g.refuseOccupied(repo, ""); err != nil {
		return err
	}
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	if err := g.cloneAside(repo, aside); err != nil {
		return err
	}
	return g.moveIn(repo, aside)
}

// checkOrigin refuses a work tree that is another repository's.
func (g *guest) checkOrigin(repo spec.Repo, dir string) error {
	origin, err := g.git("-C", dir, "config", "--get", "remote.origin.url")
	if origin = strings.TrimSpace(origin); err != nil || origin == "" {
		return fmt.Errorf("%s holds a repository without an origin, and %s was asked for; %s", g.workspace, repo.URL, g.otherWays())
	}
	if !repo.Same(origin) {
		return fmt.Errorf("%s holds a clone of %s, and %s was asked for; %s", g.workspace, spec.WithoutUserinfo(origin), repo.URL, g.otherWays())
	}
	return nil
}

func (g *guest) otherWays() string {
	return fmt.Sprintf("keep it: agent-container redeploy %s --no-repo; or take another NAME", g.name)
}

// refuseOccupied refuses a workspace that holds anything but a clone of ours
// that was begun. name is what is in the way, or empty to look.
func (g *guest) refuseOccupied(repo spec.Repo, name string) error {
	if name == "" {
		entries, err := os.ReadDir(g.workspace)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(entries, func(e fs.DirEntry) bool { return e.Name() != cloneDir })
		if i < 0 {
			return nil
		}
		name = entries[i].Name()
	}
	look := "agent-container exec " + g.name
	if g.mode == spec.Headless { // its container ends
		look = "agent-container redeploy " + g.name + " --mode idle"
	}
	return fmt.Errorf("%s holds %s and is no clone of %s; move it away: %s; or %s", g.workspace, spec.Printable(name, 60), repo.URL, look, g.otherWays())
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
	if _, err := os.Lstat(filepath.Join(dir, cloneDir)); err == nil {
		return fmt.Errorf("the repository has an entry %s, which is where clones are made", cloneDir)
	}
	if modules, err := os.ReadFile(filepath.Join(dir, ".gitmodules")); err == nil {
		if bytes.Contains(modules, []byte("@")) || bytes.Contains(modules, []byte("ssh://")) {
			if err := g.makeSSHKey(); err != nil {
				return wrap("SSH key", err)
			}
		}
		if err := c.run("-C", dir, "submodule", "update", "--init", "--recursive", "--progress"); err != nil {
			return wrap("submodules", err)
		}
	}
	if _, err := g.git("-C", dir, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		if err := g.setNote("the repository " + repo.URL + " is empty"); err != nil {
			return err
		}
	}
	// The mark must not outlive what it speaks of: git itself does not wait for the
	// disk.
	if err := g.writeOut(dir); err != nil {
		return err
	}
	g.progressed("moving it")
	return os.WriteFile(filepath.Join(dir, ".git", wholeMark), nil, 0o600)
}

// moveIn moves a whole clone into the workspace. It goes on where a kill has
// interrupted it, and replaces nothing: what somebody has put there meanwhile is
// refused.
func (g *guest) moveIn(repo spec.Repo, aside string) error {
	entries, err := os.ReadDir(aside)
	if err != nil {
		return err
	}
	move := func(name string) error {
		err := moveNew(filepath.Join(aside, name), filepath.Join(g.workspace, name))
		if errors.Is(err, fs.ErrExist) {
			return g.refuseOccupied(repo, name)
		}
		return err
	}
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		if err := move(e.Name()); err != nil {
			return err
		}
	}
	if err := g.writeOut(g.workspace); err != nil {
		return err
	}
	if err := move(".git"); err != nil {
		return err
	}
	return errors.Join(os.Remove(filepath.Join(g.workspace, ".git", wholeMark)), os.Remove(aside))
}

// moveNew renames from to to, unless there is anything.
func moveNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) { // a file system that cannot promise it
		if _, err := os.Lstat(to); err == nil {
			return fs.ErrExist
		}
		return os.Rename(from, to)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// writeTime is how long writing it out may take before it counts as no progress.
const writeTime = 30 * time.Minute

// writeOut is syncDisk, of which it says every second that it goes on: a busy disk
// takes minutes, and the clone is whole by then.
func (g *guest) writeOut(dir string) error {
	done := make(chan error, 1)
	go func() { done <- syncDisk(dir) }()
	for began := time.Now(); ; {
		if time.Since(began) < writeTime {
			g.progressed("writing it out")
		}
		select {
		case err := <-done:
			return err
		case <-g.ctx.Done():
			return context.Cause(g.ctx)
		case <-time.After(time.Second):
		}
	}
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
