package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

// look is what the verb prints.
func (b *box) look() spec.Look {
	b.t.Helper()
	code, out, said := b.guest("look")
	if code != 0 {
		b.t.Fatalf("exit %d: %s", code, said)
	}
	l, err := spec.ParseLook([]byte(out))
	if err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
	return l
}

// tmux asks the box's own server, in its environment.
func (b *box) tmux(args ...string) {
	b.t.Helper()
	cmd := exec.Command("tmux", args...)
	cmd.Env = b.environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
}

func TestLookAtSession(t *testing.T) {
	// A session must be told alive with its windows and what runs in them, ended when it was begun and is gone, and none where none is to be.
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	b := newBox(t, "claude", spec.Interactive)
	b.stub("claude", "exec sleep 60")
	if s := b.look().Session; s.State != spec.SessionNone {
		t.Errorf("before the set-up the session is %+v", s)
	}
	b.fill(spec.FileStatus, "starting session\n")
	if s := b.look().Session; s.State != spec.SessionNone {
		t.Errorf("during the set-up the session is %+v", s)
	}
	if code, _, said := b.guest("phase", "record", "session"); code != 0 {
		t.Fatal(said)
	}
	t.Cleanup(func() { b.tmux("kill-server") })
	b.fill(spec.FileStatus, "ready\n")
	b.tmux("new-window", "-d", "-t", "=main:", "-n", "a b\x1b[2Jc", "cat")
	until(t, "the windows' programs run", func() bool {
		s := b.look().Session
		return len(s.Windows) == 3 && s.Windows[0].Command == "claude" && s.Windows[2].Command == "cat"
	})
	b.tmux("new-window", "-d", "-t", "=main:", "-n", "a\nb\tc") // it may be missing, and must not spoil the others
	s := b.look().Session
	if len(s.Windows) < 3 {
		t.Fatalf("the session is %+v", s)
	}
	s.Windows = s.Windows[:3]
	want := spec.Session{State: spec.SessionAlive, Windows: []spec.Window{
		{Index: 0, Name: "agent", Command: "claude", Active: true}, {Index: 1, Name: "shell", Command: s.Windows[1].Command}, {Index: 2, Name: "a b [2Jc", Command: "cat"},
	}}
	if d := cmp.Diff(want, s); d != "" || s.Windows[1].Command == "" {
		t.Errorf("%s\n%+v", d, s)
	}
	// Another session is not it, however near its name is.
	b.tmux("new-session", "-d", "-s", "maintenance")
	b.tmux("kill-session", "-t", "=main")
	if s := b.look().Session; s.State != spec.SessionEnded || len(s.Windows) > 0 {
		t.Errorf("after its end the session is %+v", s)
	}
	idle := newBox(t, "claude", spec.Idle)
	idle.fill(spec.FileStatus, "ready\n")
	if s := idle.look().Session; s.State != spec.SessionNone {
		t.Errorf("an idle one's session is %+v", s)
	}
}

func TestLookIsBounded(t *testing.T) {
	// A tmux that never answers and a repository that cannot be read must cost a bounded time and not one another's answer.
	b := newBox(t, "claude", spec.Interactive)
	b.stub("tmux", "exec sleep 60")
	b.commit()
	started := time.Now()
	if l := b.look(); l.Session.State != spec.SessionUnreadable || l.Repository.State != "ok" {
		t.Errorf("it is %+v", l)
	}
	if took := time.Since(started); took > 2*tmuxTime {
		t.Errorf("a stopped tmux took %s", took)
	}
	b.stub("tmux", "exit 1")
	index := filepath.Join(b.p.Workspace, ".git", "index")
	if err := exec.Command("rm", index).Run(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(index, 0o600); err != nil {
		t.Fatal(err)
	}
	started = time.Now()
	if l := b.look(); l.Session.State != spec.SessionNone || l.Repository.State != "ok" || l.Repository.Uncommitted != nil {
		t.Errorf("it is %+v", l)
	}
	if took := time.Since(started); took > 3*gitTime {
		t.Errorf("a FIFO in the index's place took %s", took)
	}
}

func TestLookAtRepository(t *testing.T) {
	// The repository's branch, commit, remote, changes and unpushed commits must be told, and what is not known be left out.
	b := newBox(t, "claude", spec.Idle)
	number := func(n int) *int { return &n }
	check := func(about string, want spec.WorkTree) {
		t.Helper()
		if d := cmp.Diff(want, b.look().Repository); d != "" {
			t.Errorf("%s: %s", about, d)
		}
	}
	check("no repository", spec.WorkTree{State: "none"})
	head := b.commit()
	check("no remote", spec.WorkTree{State: "ok", Branch: "main", Head: head, Uncommitted: number(0)})

	remote := filepath.Join(t.TempDir(), "remote.git")
	b.git("clone", "-q", "--bare", b.p.Workspace, remote)
	b.git("remote", "add", "backup", "https://user:secret@backup.example/x.git?token=secret")
	check("a remote that is not origin", spec.WorkTree{State: "ok", Branch: "main", Head: head, Remote: "https://backup.example/x.git", Uncommitted: number(0), Unpushed: number(1)})
	b.git("remote", "add", "origin", remote)
	b.git("fetch", "-q", "origin")
	check("pushed", spec.WorkTree{State: "ok", Branch: "main", Head: head, Remote: remote, Uncommitted: number(0), Unpushed: number(0)})

	b.git("commit", "-q", "--allow-empty", "-m", "second")
	b.write(filepath.Join(b.p.Workspace, "kept"), "2", 0o600)
	b.git("mv", "kept", "moved")
	b.write(filepath.Join(b.p.Workspace, "new\nname"), "", 0o600)
	b.write(filepath.Join(b.p.Workspace, "dir/one"), "", 0o600)
	b.git("checkout", "-q", "--detach")
	check("worked on", spec.WorkTree{State: "detached", Head: b.git("rev-parse", "HEAD"), Remote: remote, Uncommitted: number(4), Unpushed: number(1)})

	if err := exec.Command("rm", filepath.Join(b.p.Workspace, ".git", "HEAD")).Run(); err != nil {
		t.Fatal(err)
	}
	check("broken", spec.WorkTree{State: "unreadable"})
}

func TestLookAtARepositoryWithoutCommits(t *testing.T) {
	// A repository that nothing was committed to has no head, and nothing to push.
	b := newBox(t, "claude", spec.Idle)
	b.git("init", "-q")
	b.git("remote", "add", "origin", "git@git.example:x.git")
	zero := 0
	if d := cmp.Diff(spec.WorkTree{State: "ok", Branch: "main", Remote: "git@git.example:x.git", Uncommitted: &zero, Unpushed: &zero}, b.look().Repository); d != "" {
		t.Error(d)
	}
}

func TestLookChangesNothing(t *testing.T) {
	// Looking must leave the repository's files as they are, the index too.
	b := newBox(t, "claude", spec.Idle)
	b.commit()
	b.write(filepath.Join(b.p.Workspace, "kept"), "2", 0o600)
	before := b.read(filepath.Join(b.p.Workspace, ".git", "index"))
	b.look()
	if b.read(filepath.Join(b.p.Workspace, ".git", "index")) != before {
		t.Error("the index was written")
	}
}

func TestWithoutLogin(t *testing.T) {
	// An address must be shown without what logs in there.
	for place, want := range map[string]string{
		"https://token@host.example/a.git":                "https://host.example/a.git",
		"HTTPS://user:pass@host.example:8443/a.git?t=x#y": "https://host.example:8443/a.git",
		"ssh://git:pass@host.example:22/a.git":            "ssh://git@host.example:22/a.git",
		"git@host.example:a.git":                          "git@host.example:a.git",
		"/srv/a.git":                                      "/srv/a.git",
		"../a b":                                          "../a b",
		"file:///srv/a.git":                               "file:///srv/a.git",
		"x::https://token@host.example/a":                 "(unreadable)",
		"https://user:pa%ss@host.example/a":               "(unreadable)",
		"https://host.example/\x00":                       "(unreadable)",
		"":                                                "",
	} {
		if got := withoutLogin(place); got != want {
			t.Errorf("%q is shown as %q, want %q", place, got, want)
		}
	}
}

func TestLookIsOneDocument(t *testing.T) {
	// The verb must print one JSON document and take no argument.
	b := newBox(t, "claude", spec.Idle)
	_, out, _ := b.guest("look")
	if !json.Valid([]byte(out)) || strings.Count(out, "\n") != 1 {
		t.Errorf("it prints %q", out)
	}
	if code, _, said := b.guest("look", "x"); code != 1 || !strings.Contains(said, "usage: look") {
		t.Errorf("exit %d, %q", code, said)
	}
}
