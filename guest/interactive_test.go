package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

// argv runs the interactive verb with an agent that prints its arguments.
func (b *box) argv() []string {
	b.t.Helper()
	row, _ := spec.LookupAgent(b.p.Agent)
	b.stub(row.Executable, `printf '%s\0' "$(basename "$0")" "$@"; [ -e "$AGENT_CONTAINER_RUN_DIR/task-consumed" ] && : >"$HOME/marked-before"`)
	code, out, said := b.guest("interactive")
	if code != 0 {
		b.t.Fatalf("exit %d: %s", code, said)
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

func TestInteractiveTask(t *testing.T) {
	// An interactive agent must get its task once; what it would misread becomes a sentence that names the file.
	const pointer = "POINTER"
	for _, c := range []struct{ name, task, want string }{
		{"plain", "fix the bug", "fix the bug"},
		{"lines and quotes", "a\n\"b\" $HOME `c` é", "a\n\"b\" $HOME `c` é"},
		{"option", "-x", pointer},
		{"long option", "--version", pointer},
		{"file", "@x", pointer},
		{"as long as may be", strings.Repeat("a", 100<<10), strings.Repeat("a", 100<<10)},
		{"longer", strings.Repeat("a", 100<<10+1), pointer},
		{"blank", " \n", ""},
	} {
		for _, a := range spec.Agents {
			t.Run(a.Name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				b := newBox(t, a.Name, spec.Interactive)
				b.fill(spec.FillTask, c.task)
				want := slices.Clone(a.Interactive)
				if c.want != "" && a.TakesTask {
					want = append(want, a.TaskArgs...)
					want = append(want, strings.ReplaceAll(c.want, pointer, "Do the task in "+filepath.Join(b.p.RunDir, "task")))
				}
				if got := b.argv(); !slices.Equal(got, want) {
					t.Errorf("argv is %.200q, want %.200q", got, want)
				}
				if a.TakesTask != exists(b.home("marked-before")) {
					t.Errorf("marked consumed before the agent ran: %t", !a.TakesTask)
				}
				if got := b.argv(); !slices.Equal(got, a.Interactive) {
					t.Errorf("the second run got %.200q", got)
				}
			})
		}
	}
}

func TestInteractiveWithoutTask(t *testing.T) {
	// Without a task nothing must be added, and nothing be marked.
	b := newBox(t, "claude", spec.Interactive)
	if got := b.argv(); !slices.Equal(got, []string{"claude"}) || exists(b.home("marked-before")) {
		t.Errorf("argv is %q", got)
	}
}

func TestTaskIsConsumedByACrash(t *testing.T) {
	// An agent that crashes must not get its task again.
	b := newBox(t, "claude", spec.Interactive)
	b.fill(spec.FillTask, "once")
	b.stub("claude", `printf '%s\n' "$@" >>"$HOME/got"; kill -KILL $$`)
	for range 3 {
		if code, _, said := b.guest("interactive"); code != 0 || !strings.Contains(said, "this window is now a shell") {
			t.Fatalf("exit %d: %s", code, said)
		}
	}
	if got := strings.Count(b.read(b.home("got")), "once"); got != 1 {
		t.Errorf("the task was sent %d times", got)
	}
}

func TestNoTaskAgentSaysSo(t *testing.T) {
	// An agent that takes no task must be left alone, with a note that names the file.
	b := newBox(t, "opencode", spec.Interactive)
	b.fill(spec.FillTask, "look")
	if _, _, said := b.guest("interactive"); !strings.Contains(said, "NOTE: opencode takes no task") || !strings.Contains(said, "/task") {
		t.Errorf("it said %q", said)
	}
}

func TestFailedSetupIsAState(t *testing.T) {
	// A set-up that fails must leave an interactive or idle container up, its status failed, until it is told to stop.
	for _, mode := range []spec.Mode{spec.Interactive, spec.Idle} {
		b := newBox(t, "claude", mode)
		b.write(b.home(".claude/.claude.json/dir"), "", 0o600) // the seed cannot read it
		b.stub("tmux", `echo "$@" >>"$HOME/tmux"`)
		r := b.enter()
		until(t, "status failed", func() bool { return strings.HasPrefix(b.status(), "failed seed: ") })
		if code, out, _ := b.guest("status", "check"); code != 1 || !strings.HasPrefix(out, "failed seed: ") {
			t.Errorf("status check: exit %d, %q", code, out)
		}
		if r.ended() {
			t.Fatalf("%s: it ended", mode)
		}
		until(t, "the guest holds", r.holds)
		if mode == spec.Interactive {
			if got := exitOf(b.record()); got != "failed set-up 1" {
				t.Errorf("record is %q", got)
			}
		}
		r.term()
		if code := r.wait(); code != 0 {
			t.Errorf("%s: exit %d after TERM", mode, code)
		}
		if mode == spec.Interactive && exitOf(b.record()) != "failed set-up 1" {
			t.Errorf("after TERM the record is %q", exitOf(b.record()))
		}
		if exists(b.home("tmux")) && strings.Contains(b.read(b.home("tmux")), "new-session") {
			t.Errorf("%s: a session was started", mode)
		}
	}
}

func TestIdleIsReady(t *testing.T) {
	// An idle container must become ready, run no agent, keep no record, and end when told.
	b := newBox(t, "claude", spec.Idle)
	b.stub("claude", `: >"$HOME/ran"`)
	r := b.enter()
	until(t, "ready and held", func() bool { return b.status() == "ready" && r.holds() })
	if code, out, _ := b.guest("status", "wait"); code != 0 || out != "ready\n" {
		t.Errorf("status wait: exit %d, %q", code, out)
	}
	if r.ended() || exists(b.home("ran")) || len(b.records()) != 0 {
		t.Errorf("ended: %t, agent ran: %t, records: %d", r.ended(), exists(b.home("ran")), len(b.records()))
	}
	r.term()
	if code := r.wait(); code != 0 {
		t.Errorf("exit %d after TERM", code)
	}
}

func TestUnknownMode(t *testing.T) {
	// A mode that nobody knows must be a failed set-up, not a guess.
	b := newBox(t, "claude", "hedless")
	r := b.enter()
	until(t, "status failed", func() bool { return b.status() == "failed mode: unknown mode hedless" })
	r.term()
	r.wait()
}

func TestTmuxSession(t *testing.T) {
	// An interactive container must run the agent once in tmux session main, with its task, and close its record in order.
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed: the session is not tested")
	}
	b := newBox(t, "claude", spec.Interactive)
	b.p.TmuxShell = "/bin/bash"
	b.fill(spec.FillTask, "the task")
	b.environment("MINE=yes\x00")
	b.stub("claude", `printf '%s\n' "$@" "$MINE" "$PWD" >>"$HOME/got"; trap 'exit 0' HUP TERM; : >"$HOME/up"; tail -f /dev/null`)
	tmux := func(args ...string) (string, error) {
		cmd := exec.Command("tmux", args...)
		cmd.Env = b.environ()
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() { _, _ = tmux("kill-server") })
	for start := range 2 {
		r := b.enter()
		until(t, "ready, agent up", func() bool { return b.status() == "ready" && exists(b.home("up")) })
		if out, err := tmux("list-windows", "-t", "=main", "-F", "#{window_name}"); err != nil || out != "agent\nshell\n" {
			t.Fatalf("start %d: windows are %q, %v", start, out, err)
		}
		until(t, "the guest holds", r.holds)
		r.term()
		r.wait()
		if list := b.records(); len(list) != start+1 || exitOf(list[start]) != "ended engine-stop none" || list[start].Repository == nil {
			t.Errorf("start %d: records are %+v", start, list)
		}
		until(t, "the server ended", func() bool { _, err := tmux("has-session"); return err != nil })
		_ = os.Remove(b.home("up"))
	}
	want := "--\nthe task\nyes\n" + b.p.Workspace + "\nyes\n" + b.p.Workspace + "\n"
	if got := b.read(b.home("got")); got != want {
		t.Errorf("the agent got %q, want %q", got, want)
	}
}

func TestStopWhileTheWindowBegins(t *testing.T) {
	// A session that is stopped while its window still writes the repository into the record must have a closed record all the same, with the repository.
	for name, c := range map[string]struct{ git, tmux, stopAt string }{
		// git answers the window once the session is being ended, which goes on once the window has written.
		"it looks at the repository": {
			`[ -e "$HOME/hung-up" ] || { : >"$HOME/asked"; until [ -e "$HOME/hung-up" ]; do sleep 0.02; done; }`,
			`: >"$HOME/hung-up"; until [ -e "$HOME/up" ]; do sleep 0.02; done`,
			"asked",
		},
		// What it had read before the end is written after it.
		"it has read the record": {
			"",
			`cp "$HOME"/*.json "$AGENT_CONTAINER_RUNS_DIR"`,
			"up",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "claude", spec.Interactive)
			head := b.commit()
			b.stub("git", c.git+"\n"+`exec /usr/bin/git "$@"`)
			b.stub("tmux", c.tmux)
			b.stub("claude", `cp "$AGENT_CONTAINER_RUNS_DIR"/*.json "$HOME"; : >"$HOME/up"`)
			if code, _, said := b.guest("phase", "record"); code != 0 {
				t.Fatal(said)
			}
			b.fill(spec.FileStatus, "ready\n")
			hold := b.start(program, "hold")
			until(t, "the guest holds", hold.holds)
			b.start(program, "interactive")
			until(t, "the window is there", func() bool { return exists(b.home(c.stopAt)) })
			hold.term()
			if code := hold.wait(); code != 0 {
				t.Errorf("exit %d\n%s", code, hold.err.String())
			}
			if r := b.record(); exitOf(r) != "ended engine-stop none" || r.EndedAt == nil || r.Repository == nil || r.Repository.EndCommit != head {
				t.Errorf("record %+v", r)
			}
		})
	}
}
