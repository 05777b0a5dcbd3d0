package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

func TestPhasesInOrder(t *testing.T) {
	// A container must open its record first, then run the phases in their order, and be ready once the agent runs.
	b := newBox(t, "claude", spec.Headless)
	b.stub("claude", `for _ in $(seq 500); do s=$(cat "$AGENT_CONTAINER_RUN_DIR/status"); [ "$s" != ready ] || break; sleep 0.01; done; echo "$s"`)
	r := b.enter()
	if code := r.wait(); code != 0 {
		t.Fatalf("exit %d\n%s", code, r.err.String())
	}
	want := []string{"phase record gateway environment git ssh config seed agent clone", "headless"}
	if got := strings.Split(strings.TrimSpace(b.read(b.call)), "\n"); !slices.Equal(got, want) {
		t.Errorf("calls:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.out.String() != "ready\n" {
		t.Errorf("the agent saw status %q", r.out.String())
	}
}

func TestHeadlessExitCodes(t *testing.T) {
	// The agent's own exit status must be the container's, and be recorded with its cause.
	for _, c := range []struct {
		script string
		code   int
		record string
	}{
		{"exit 0", 0, "finished exit 0"},
		{"exit 1", 1, "failed exit 1"},
		{"exit 2", 2, "failed exit 2"},
		{"exit 42", 42, "failed exit 42"},
		{"exit 126", 126, "failed exit 126"},
		{"exit 127", 127, "failed exit 127"},
		{"exit 255", 255, "failed exit 255"},
		{"kill -KILL $$", 137, "failed signal 137"},
		{"kill -TERM $$", 143, "failed signal 143"},
		{"kill -SEGV $$", 139, "failed signal 139"},
	} {
		t.Run(c.script, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "claude", spec.Headless)
			b.stub("claude", c.script)
			if code := b.enter().wait(); code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			if got := exitOf(b.record()); got != c.record {
				t.Errorf("record is %q, want %q", got, c.record)
			}
			if r := b.record(); r.EndedAt == nil || r.EndedAt.Before(r.StartedAt) || r.Kind != spec.Headless || r.Deployment != "demo" {
				t.Errorf("record is %+v", r)
			}
		})
	}
}

func TestHeadlessArgv(t *testing.T) {
	// Every agent must get exactly the argv of its row, in the workspace, and never the task as an argument.
	for _, a := range spec.Agents {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, a.Name, spec.Headless)
			b.fill(spec.FillTask, "--version")
			b.stub(a.Executable, `printf '%s\n' "$(basename "$0")" "$@" "$PWD"; cat`)
			r := b.enter()
			if code := r.wait(); code != 0 {
				t.Fatalf("exit %d\n%s", code, r.err.String())
			}
			want := strings.Join(append(slices.Clone(a.Headless), b.p.Workspace, "--version"), "\n")
			if got := r.out.String(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestTaskBytes(t *testing.T) {
	// The task must reach the agent's stdin byte for byte, whatever it holds but NUL.
	random := make([]byte, 1<<20)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(random)
	random = bytes.ReplaceAll(random, []byte{0}, []byte{1})
	for name, task := range map[string][]byte{
		"1 MiB random": random, "empty": {}, "shell": []byte("$HOME ${X} $$ `id` \"q\" 'q' \\ \r\n emoji 🦊"), "option": []byte("- fix it"), "at": []byte("@x"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "claude", spec.Headless)
			b.fill(spec.FillTask, string(task))
			b.stub("claude", `cat >"$HOME/got"; echo done`)
			if code := b.enter().wait(); code != 0 {
				t.Fatalf("exit %d", code)
			}
			if got := b.read(b.home("got")); got != string(task) {
				t.Errorf("got %d bytes, want %d, the same", len(got), len(task))
			}
			sum := sha256.Sum256(task)
			if r := b.record(); r.TaskSHA256 != hex.EncodeToString(sum[:]) || r.TaskBytes != int64(len(task)) {
				t.Errorf("record has %s, %d bytes", r.TaskSHA256, r.TaskBytes)
			}
		})
	}
}

func TestStopOfAJob(t *testing.T) {
	// A stop must close the record before the agent ends, and reach the agent and its children.
	b := newBox(t, "claude", spec.Headless)
	b.stub("claude", `
		bash -c 'trap "echo child >>$HOME/got; exit" TERM; : >$HOME/child-up; while :; do read -rt 0.05 <> <(:); done' &
		finish() { cp "$AGENT_CONTAINER_RUNS_DIR"/*.json "$HOME/at-term"; wait; echo agent >>"$HOME/got"; exit 7; }
		trap finish TERM
		: >"$HOME/agent-up"
		while :; do wait; done`)
	r := b.enter()
	until(t, "agent and child are up", func() bool { return exists(b.home("agent-up")) && exists(b.home("child-up")) })
	if got := exitOf(b.record()); got != "  none" {
		t.Errorf("while it runs the record is %q", got)
	}
	r.term()
	if code := r.wait(); code != 7 {
		t.Errorf("exit %d, want the agent's own 7", code)
	}
	if got := b.read(b.home("at-term")); !strings.Contains(got, `"outcome": "stopped"`) || strings.Contains(got, `"ended_at": null`) {
		t.Errorf("when the agent got TERM the record was not closed: %s", got)
	}
	if got := b.read(b.home("got")); got != "child\nagent\n" {
		t.Errorf("TERM was seen by %q", got)
	}
	if got := exitOf(b.record()); got != "stopped engine-stop 7" {
		t.Errorf("record is %q", got)
	}
}

func TestStopBeforeTheAgent(t *testing.T) {
	// A stop while the repository is still being read must close the record too.
	b := newBox(t, "claude", spec.Headless)
	b.git("init", "-q")
	b.stub("git", `
		case "$*" in *rev-parse*) : >"$HOME/reading"; for _ in {1..40}; do [ -e "$HOME/go-on" ] && break; read -rt 0.05 <> <(:); done ;; esac
		exec /usr/bin/git "$@"`)
	b.stub("claude", "trap '' HUP; exec tail -f /dev/null")
	r := b.enter()
	until(t, "git is read", func() bool { return exists(b.home("reading")) })
	r.term()
	b.write(b.home("go-on"), "", 0o600)
	if code := r.wait(); code != 143 {
		t.Errorf("exit %d, want 143", code)
	}
	if got := exitOf(b.record()); got != "stopped engine-stop 143" {
		t.Errorf("record is %q", got)
	}
}

func TestStopDuringSetup(t *testing.T) {
	// A stop during the set-up must end it at once, close the record and start no agent.
	b := newBox(t, "claude", spec.Headless)
	b.stub("git", `: >"$HOME/reading"; exec sleep 60`)
	b.stub("claude", `: >"$HOME/ran"`)
	r := b.enter()
	until(t, "the git phase runs", func() bool { return exists(b.home("reading")) })
	asked := time.Now()
	r.term()
	if code := r.wait(); code != 143 || time.Since(asked) > 10*time.Second {
		t.Errorf("exit %d after %s, want 143 at once", code, time.Since(asked))
	}
	if got := exitOf(b.record()); got != "stopped engine-stop 143" || exists(b.home("ran")) {
		t.Errorf("record is %q, agent ran: %t", got, exists(b.home("ran")))
	}
}

func TestMissingAgent(t *testing.T) {
	// An agent that the image does not have must fail its phase, naming redeploy, and be recorded as a set-up failure.
	b := newBox(t, "claude", spec.Headless)
	b.stub("codex", "exit 0")
	b.p.Agent = "pi"
	r := b.enter()
	if code := r.wait(); code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	want := "failed agent: pi is not in this image; run: agent-container redeploy demo"
	if got := b.status(); got != want {
		t.Errorf("status is %q, want %q", got, want)
	}
	if rec := b.record(); exitOf(rec) != "failed set-up 1" || len(rec.Notes) != 1 || !strings.Contains(rec.Notes[0], "redeploy demo") {
		t.Errorf("record is %q, notes %q", exitOf(rec), rec.Notes)
	}
}

func TestAgentThatCannotBeStarted(t *testing.T) {
	// A program that the kernel refuses must end as a set-up failure with its reason.
	b := newBox(t, "claude", spec.Headless)
	b.write(filepath.Join(b.bin, "claude"), "#!/no/such/interpreter\n", 0o755)
	if code := b.enter().wait(); code != 1 {
		t.Errorf("exit %d, want 1", code)
	}
	if !strings.HasPrefix(b.status(), "failed agent: claude could not be started: ") || exitOf(b.record()) != "failed set-up 1" {
		t.Errorf("status %q, record %q", b.status(), exitOf(b.record()))
	}
}

func TestFailingPhases(t *testing.T) {
	// Each phase that fails must end a job once, with 1, its name and the reason.
	for phase, break_ := range map[string]func(b *box){
		"record":      func(b *box) { b.fill(spec.FillJob, "{") },
		"environment": func(b *box) { b.environment("canary-without-equals\x00") },
		"git":         func(b *box) { b.stub("git", "echo no git today >&2; exit 3") },
		"config":      func(b *box) { b.fill(spec.FillConfig+"/a", "x"); b.write(b.home(".claude/a/b"), "", 0o600) },
		"seed":        func(b *box) { b.write(b.home(".claude/.claude.json/dir"), "", 0o600) },
	} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "claude", spec.Headless)
			break_(b)
			b.stub("claude", `: >"$HOME/ran"`)
			r := b.enter()
			if code := r.wait(); code != 1 {
				t.Errorf("exit %d, want 1", code)
			}
			if !strings.HasPrefix(b.status(), fmt.Sprintf("failed %s: ", phase)) || len(b.status()) < len("failed : ")+len(phase)+5 {
				t.Errorf("status is %q", b.status())
			}
			if exitOf(b.record()) != "failed set-up 1" || exists(b.home("ran")) {
				t.Errorf("record %q, agent ran: %t", exitOf(b.record()), exists(b.home("ran")))
			}
			if strings.Contains(r.err.String()+b.status(), "canary") {
				t.Error("the entry was shown")
			}
		})
	}
}
