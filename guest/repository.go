package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/spec"
)

// gitTime bounds one look at the repository: a record must not wait for a
// work tree of a million files.
const gitTime = 5 * time.Second

// diffTime bounds each of the two steps that read the whole work tree. The
// record is closed by then; the engine's grace may be over before.
const diffTime = 20 * time.Second

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
	_ = g.countUnpushed(end) // what is not known is no alarm
	if err := g.writeDiff(r.ID, start); err != nil {
		r.Notes = append(r.Notes, "the changes could not be kept: "+spec.Printable(err.Error(), 300))
	}
}

// countUnpushed counts the commits that exist nowhere but here. Without a
// remote there is nowhere to push to, and nothing is counted.
func (g *guest) countUnpushed(r *spec.Repository) error {
	remotes, err := g.git("remote")
	if r.Remote = err == nil && strings.TrimSpace(remotes) != ""; !r.Remote || r.StartCommit+r.EndCommit == "" {
		return err
	}
	out, err := g.git("rev-list", "--count", "HEAD", "--branches", "--not", "--remotes")
	if err == nil {
		r.Unpushed, err = strconv.Atoi(strings.TrimSpace(out))
	}
	return err
}

// emptyTree is git's name for a tree without files.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// writeDiff keeps what the work tree differs from the start commit in, with
// what git does not track yet, beside the record. It uses an index and an
// object store of its own: the agent's stay as the agent left them.
func (g *guest) writeDiff(id, start string) error {
	scratch, err := os.MkdirTemp("", "diff-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	dir, err := g.git("rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	objects, err := g.git("rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return err
	}
	index := filepath.Join(scratch, "index")
	// The agent's index knows which files are unchanged; without it all are read.
	if b, err := os.ReadFile(filepath.Join(strings.TrimSpace(dir), "index")); err == nil {
		if err := os.WriteFile(index, b, 0o600); err != nil {
			return err
		}
	}
	own := []string{"GIT_INDEX_FILE=" + index, "GIT_OBJECT_DIRECTORY=" + scratch, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + strings.TrimSpace(objects)}
	if _, err := g.gitWith(diffTime, own, "add", "--all", "--ignore-errors"); err != nil {
		return err
	}
	if start == "" {
		start = emptyTree
	}
	out, err := g.gitWith(diffTime, own, "diff", "--cached", "--no-color", "--no-ext-diff", "--no-textconv", start)
	if err != nil && len(out) < maxGitOutput {
		return err
	}
	if out == "" {
		return nil
	}
	diff := mask([]byte(out), g.secrets())
	if len(diff) > spec.MaxDiffBytes {
		diff = append(diff[:spec.MaxDiffBytes], "\n[agent-container: the rest of the changes is left out]\n"...)
	}
	return renameio.WriteFile(g.runFile(id, spec.DiffSuffix), diff, 0o600)
}

// changedPaths lists what differs from the start commit, committed or not, and
// what git does not track yet.
func (g *guest) changedPaths(r *spec.Repository) {
	base := r.StartCommit
	if base == "" {
		base = emptyTree
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
// maxGitOutput.
func (g *guest) git(args ...string) (string, error) { return g.gitWith(gitTime, nil, args...) }

// gitWith is git with a time and variables. It runs in the container, so what a repository's configuration makes
// it do stays there; it is still told to start no monitor and ask nobody.
func (g *guest) gitWith(limit time.Duration, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", g.workspace, "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+g.home, "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		"GIT_NO_LAZY_FETCH=1") // a partial clone must not go to its remote
	cmd.Env = append(cmd.Env, env...)
	// A child of git's may hold its output open: neither it nor git is waited for
	// beyond the time.
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout = &limitedWriter{to: &out, left: maxGitOutput}
	err := cmd.Run()
	return out.String(), err
}

// limitedWriter takes what fits and refuses the rest, which ends who writes.
type limitedWriter struct {
	to   io.Writer
	left int
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.to.Write(p[:n]); err != nil {
		return 0, err
	}
	if n < len(p) {
		return n, errors.New("more than is kept")
	}
	return n, nil
}
