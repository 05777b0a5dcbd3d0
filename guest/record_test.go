package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

// git runs the real git in the workspace and returns its output.
func (b *box) git(args ...string) string {
	b.t.Helper()
	cmd := exec.Command("/usr/bin/git", append([]string{"-c", "init.defaultBranch=main", "-C", b.p.Workspace}, args...)...)
	cmd.Env = b.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit makes a repository with one commit.
func (b *box) commit() string {
	b.t.Helper()
	b.git("init", "-q")
	b.write(filepath.Join(b.p.Workspace, "kept"), "1", 0o600)
	b.git("add", ".")
	b.git("commit", "-qm", "first")
	return b.git("rev-parse", "HEAD")
}

// work runs a job that does script in the workspace and returns its record.
func (b *box) work(script string) spec.Record {
	b.t.Helper()
	b.stub("claude", "set -e\n"+script)
	if code := b.enter().wait(); code != 0 {
		b.t.Fatalf("exit %d", code)
	}
	return b.record()
}

func TestRecordOfCommits(t *testing.T) {
	// A record must hold start and end commit, what was committed, and every path that changed, tracked or not.
	b := newBox(t, "claude", spec.Headless)
	first := b.commit()
	r := b.work(`
		echo 2 >kept
		echo x >'with space é'; git add .; git commit -qm second
		echo y >untracked
		echo ignored >.gitignore; echo z >ignored`)
	repo := r.Repository
	if repo == nil || repo.State != "ok" || repo.StartCommit != first || repo.EndCommit != b.git("rev-parse", "HEAD") || repo.EndCommit == first {
		t.Fatalf("repository is %+v", repo)
	}
	if !slices.Equal(repo.Commits, []string{repo.EndCommit}) || repo.Branch != "main" || repo.Truncated {
		t.Errorf("repository is %+v", repo)
	}
	if want := []string{".gitignore", "kept", "untracked", "with space é"}; !slices.Equal(repo.Paths, want) {
		t.Errorf("paths are %q, want %q", repo.Paths, want)
	}
}

func TestRecordOfOtherRepositories(t *testing.T) {
	// Every state that a workspace can be in must be told apart, and none may fail a run.
	for name, c := range map[string]struct {
		before func(b *box)
		script string
		state  string
		paths  []string
	}{
		"no repository": {func(*box) {}, "echo x >file", "none", nil},
		"nothing done":  {func(b *box) { b.commit() }, "true", "ok", nil},
		"no commit yet": {func(b *box) { b.git("init", "-q") }, "echo x >new; git add .; git commit -qm one", "ok", []string{"new"}},
		"made by it":    {func(*box) {}, "git init -q; echo x >new; git add .; git commit -qm one", "ok", []string{"new"}},
		"detached":      {func(b *box) { b.commit(); b.git("checkout", "-q", "--detach") }, "echo 2 >kept", "detached", []string{"kept"}},
		"deleted":       {func(b *box) { b.commit() }, "rm kept", "ok", []string{"kept"}},
		"destroyed":     {func(b *box) { b.commit() }, "rm .git/HEAD", "unreadable", nil},
		"staged":        {func(b *box) { b.commit() }, "echo x >new; git add new", "ok", []string{"new"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "claude", spec.Headless)
			c.before(b)
			r := b.work(c.script)
			if r.Repository == nil || r.Repository.State != c.state || !slices.Equal(r.Repository.Paths, c.paths) {
				t.Errorf("repository is %+v, want %s with %q", r.Repository, c.state, c.paths)
			}
			if exitOf(r) != "finished exit 0" {
				t.Errorf("record is %q", exitOf(r))
			}
		})
	}
}

func TestRecordIsBounded(t *testing.T) {
	// A run that changes more paths than a record may hold must say that its list is cut.
	b := newBox(t, "claude", spec.Headless)
	b.commit()
	r := b.work(`for i in {1..250}; do : >"new-$i"; done`)
	if len(r.Repository.Paths) != spec.MaxPaths || !r.Repository.Truncated {
		t.Errorf("%d paths, truncated: %t", len(r.Repository.Paths), r.Repository.Truncated)
	}
}

func TestRecordTask(t *testing.T) {
	// The task's text must be in the record only where record_task says so; its digest and length always.
	for _, keep := range []bool{true, false} {
		b := newBox(t, "claude", spec.Headless)
		b.fill(spec.FillTask, "a canary task")
		if !keep {
			b.fill(spec.FillJob, `{"record_task":false}`)
		}
		r := b.work("true")
		if (r.Task != nil) != keep || keep && *r.Task != "a canary task" || r.TaskBytes != 13 || len(r.TaskSHA256) != 64 {
			t.Errorf("record_task %t: task %v, %d bytes, digest %q", keep, r.Task, r.TaskBytes, r.TaskSHA256)
		}
	}
}

func TestRecordOfTheVersion(t *testing.T) {
	// The record must hold the agent's installed version.
	b := newBox(t, "claude", spec.Headless)
	b.write(filepath.Join(b.p.AgentDir, "node_modules/@anthropic-ai/claude-code-linux-arm64/package.json"), `{"version":"9.8.7"}`, 0o600)
	if r := b.work("true"); r.Agent != "claude" || r.AgentVersion != "9.8.7" || r.Schema != spec.RecordSchema || !spec.ValidRecordID(r.ID) {
		t.Errorf("record is %+v", r)
	}
}

func TestStaleRecord(t *testing.T) {
	// A record that a killed container left open must be closed as lost when the next opens, and only that one.
	b := newBox(t, "claude", spec.Headless)
	if code, _, out := b.guest("phase", "record"); code != 0 {
		t.Fatal(out)
	}
	b.stub("claude", "exit 3")
	if code := b.enter().wait(); code != 3 {
		t.Fatalf("exit %d", code)
	}
	list := b.records()
	if len(list) != 2 || exitOf(list[0]) != "lost lost none" || exitOf(list[1]) != "failed exit 3" || len(list[0].Notes) != 1 {
		t.Fatalf("records are %+v", list)
	}
}

func TestTaskIsRunOnce(t *testing.T) {
	// A job's container that is started once more, by whatever, must not run its task again nor open a record.
	b := newBox(t, "claude", spec.Headless)
	b.stub("claude", `echo run >>"$HOME/runs"; exit 3`)
	if code := b.enter().wait(); code != 3 {
		t.Fatalf("exit %d", code)
	}
	if code := b.enter().wait(); code != 1 || !strings.HasPrefix(b.status(), "failed record: this job has run already") {
		t.Errorf("started again: exit %d, status %q", code, b.status())
	}
	if got := b.read(b.home("runs")); got != "run\n" {
		t.Errorf("the agent ran %q", got)
	}
	if list := b.records(); len(list) != 1 || exitOf(list[0]) != "failed exit 3" || len(list[0].Notes) != 0 {
		t.Errorf("records are %+v", list)
	}
}

func TestKilledJobIsNotASetUpFailure(t *testing.T) {
	// A job that was killed and whose container is started once more was lost; that it is refused then is not its end.
	b := newBox(t, "claude", spec.Headless)
	b.stub("claude", `echo $$ >"$HOME/pid"; exec sleep 60`)
	r := b.enter()
	until(t, "the agent runs", func() bool { return exists(b.home("pid")) })
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.wait()
	if code := b.enter().wait(); code != 1 || exitOf(b.record()) != "lost lost none" {
		t.Errorf("exit %d, record %q", code, exitOf(b.record()))
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(b.read(b.home("pid")))); err == nil {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // the test's own agent, which lost its container
	}
}

func TestTaskOfASessionThatBeginsAgain(t *testing.T) {
	// A session that begins again does not get its task again, and its new record must not say so.
	b := newBox(t, "claude", spec.Interactive)
	b.fill(spec.FillTask, "once")
	for i, want := range []int64{4, 0} {
		if code, _, out := b.guest("phase", "record"); code != 0 {
			t.Fatal(out)
		}
		list := b.records()
		if last := list[len(list)-1]; len(list) != i+1 || last.TaskBytes != want || (last.Task != nil) != (want > 0) {
			t.Errorf("record %d of %d: %d bytes of task", i+1, len(list), last.TaskBytes)
		}
		b.fill(spec.FileConsumed, "")
	}
}

func TestSpoiledRecord(t *testing.T) {
	// What an agent does to its record must not keep the container from starting again.
	for name, spoil := range map[string]func(b *box){
		"id":     func(b *box) { b.fill(spec.FileRunID, "../../etc/passwd") },
		"record": func(b *box) { b.write(filepath.Join(b.p.RunsDir, b.record().ID+".json"), "{", 0o600) },
		"gone":   func(b *box) { _ = os.Remove(filepath.Join(b.p.RunsDir, b.record().ID+".json")) },
	} {
		b := newBox(t, "claude", spec.Headless)
		if code, _, out := b.guest("phase", "record"); code != 0 {
			t.Fatal(out)
		}
		spoil(b)
		if code := b.enter().wait(); code != 0 {
			t.Errorf("%s: exit %d, status %q", name, code, b.status())
		}
	}
}

func TestVerbs(t *testing.T) {
	// The first word about an end must stay; idle containers have no run; bad words are refused.
	b := newBox(t, "claude", spec.Headless)
	if code, _, out := b.guest("phase", "record"); code != 0 {
		t.Fatal(out)
	}
	for range 2 {
		if code, _, out := b.guest("stopped"); code != 143 {
			t.Errorf("exit %d, %s", code, out)
		}
	}
	if r := b.record(); exitOf(r) != "stopped engine-stop 143" {
		t.Errorf("record is %q", exitOf(r))
	}
	for _, args := range [][]string{{"phase"}, {"phase", "x"}, {"phase", "git", "x"}, {"nothing"}, {}} {
		if code, _, _ := b.guest(args...); code != 1 {
			t.Errorf("guest %q: exit %d, want 1", args, code)
		}
	}
	idle := newBox(t, "claude", spec.Idle)
	if code, _, out := idle.guest("phase", "record"); code != 0 || len(idle.records()) != 0 {
		t.Errorf("idle: exit %d, %d records, %s", code, len(idle.records()), out)
	}
}
