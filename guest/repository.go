package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// gitTime bounds one look at the repository: a record must not wait for a
// work tree of a million files.
const gitTime = 5 * time.Second

// startRepository is the repository's state before the agent runs.
func (g *guest) startRepository() *spec.Repository {
	if !exists(filepath.Join(g.workspace, ".git")) {
		return &spec.Repository{State: "none"}
	}
	head, err := g.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	if err != nil {
		// A repository without any commit is fine; anything else is unreadable.
		if _, err := g.git("rev-parse", "--git-dir"); err != nil {
			return &spec.Repository{State: "unreadable"}
		}
	}
	branch, err := g.git("symbolic-ref", "--quiet", "--short", "HEAD")
	state := "ok"
	if err != nil {
		state = "detached"
	}
	return &spec.Repository{State: state, StartCommit: strings.TrimSpace(head), Branch: strings.TrimSpace(branch)}
}

// completeRepository adds to r what the run did to the repository.
func (g *guest) completeRepository(r *spec.Record) {
	if r.Repository == nil {
		return
	}
	end := g.startRepository()
	start := r.Repository.StartCommit
	end.StartCommit, end.EndCommit = start, end.StartCommit
	r.Repository = end
	if end.State != "ok" && end.State != "detached" {
		return
	}
	if end.EndCommit != "" && end.EndCommit != start {
		span := end.EndCommit
		if start != "" {
			span = start + ".." + end.EndCommit
		}
		out, err := g.git("rev-list", "--max-count="+strconv.Itoa(spec.MaxCommits+1), span)
		end.Commits, end.Truncated = cut(strings.Fields(out), spec.MaxCommits)
		end.Truncated = end.Truncated || err != nil
	}
	g.changedPaths(end)
}

// changedPaths lists what differs from the start commit, committed or not, and
// what git does not track yet.
func (g *guest) changedPaths(r *spec.Repository) {
	base := r.StartCommit
	if base == "" {
		base = "4b825dc642cb6eb9a060e54bf8d69288fbee4904" // git's empty tree
	}
	changed, err := g.git("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", base)
	untracked, err2 := g.git("ls-files", "--others", "--exclude-standard", "-z")
	paths := strings.FieldsFunc(changed+untracked, func(r rune) bool { return r == 0 })
	for i, p := range paths {
		paths[i] = spec.Printable(p, 1000)
	}
	slices.Sort(paths)
	var truncated bool
	r.Paths, truncated = cut(slices.Compact(paths), spec.MaxPaths)
	r.Truncated = r.Truncated || truncated || err != nil || err2 != nil
}

func cut(list []string, limit int) ([]string, bool) {
	if len(list) > limit {
		return list[:limit], true
	}
	return list, false
}

// maxGitOutput bounds what is kept of git's answer.
const maxGitOutput = 4 << 20

// git runs git on the workspace and returns its stdout, at most gitTime and
// maxGitOutput. It runs in the container, so what a repository's configuration makes
// it do stays there; it is still told to start no monitor and ask nobody.
func (g *guest) git(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", g.workspace, "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+g.home, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0")
	cmd.WaitDelay = time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	out, readErr := io.ReadAll(io.LimitReader(pipe, maxGitOutput))
	pipe.Close() // git ends when it has more to say
	return string(out), errors.Join(cmd.Wait(), readErr)
}
