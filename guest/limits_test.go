package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// limited fills a job with a restart policy and limits.
func (b *box) limited(restart string, limits string) {
	b.fill(spec.FillJob, fmt.Sprintf(`{"record_task":true,"restart":%q,"limits":{"pids":1%s}}`, restart, limits))
}

// ends are the ends of all records, oldest first.
func (b *box) ends() []string {
	var list []string
	for _, r := range b.records() {
		list = append(list, fmt.Sprintf("%d %s", r.Attempt, exitOf(r)))
	}
	return list
}

func TestAttempts(t *testing.T) {
	// A failed job must be tried exactly as often as its policy says, with one record and one output an attempt, and never after a success.
	for name, c := range map[string]struct {
		restart, script string
		code            int
		ends            []string
	}{
		"no":                  {"no", "exit 3", 3, []string{"1 failed exit 3"}},
		"on-failure:3":        {"on-failure:3", "exit 3", 3, []string{"1 failed exit 3", "2 failed exit 3", "3 failed exit 3", "4 failed exit 3"}},
		"until it succeeds":   {"on-failure:3", `[ -e "$HOME/once" ] || { : >"$HOME/once"; exit 5; }`, 0, []string{"1 failed exit 5", "2 finished exit 0"}},
		"without end":         {"on-failure", `echo >>"$HOME/n"; [ "$(wc -l <"$HOME/n")" = 3 ]`, 0, []string{"1 failed exit 1", "2 failed exit 1", "3 finished exit 0"}},
		"killed":              {"on-failure:1", "kill -KILL $$", 137, []string{"1 failed signal 137", "2 failed signal 137"}},
		"succeeds at once":    {"on-failure:3", "exit 0", 0, []string{"1 finished exit 0"}},
		"its own exit of 124": {"on-failure:1", "exit 124", 124, []string{"1 failed exit 124", "2 failed exit 124"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "claude", spec.Headless)
			b.limited(c.restart, "")
			b.stub("claude", `cat; echo "says $RANDOM"; `+c.script)
			b.fill(spec.FillTask, "the task")
			r := b.enter()
			if code := r.wait(); code != c.code {
				t.Errorf("exit %d, want %d\n%s", code, c.code, r.err.String())
			}
			if got := b.ends(); strings.Join(got, "; ") != strings.Join(c.ends, "; ") {
				t.Errorf("records %q, want %q", got, c.ends)
			}
			var all string
			for _, rec := range b.records() {
				out := b.read(filepath.Join(b.p.RunsDir, rec.ID+spec.OutputSuffix))
				if !strings.HasPrefix(out, "the tasksays ") || rec.OutputBytes != int64(len(out)) || rec.AgentAt == nil {
					t.Errorf("attempt %d: output %q, record %+v", rec.Attempt, out, rec)
				}
				all += out
			}
			if r.out.String() != all {
				t.Errorf("written %q, kept %q", r.out.String(), all)
			}
		})
	}
}

func TestTimeLimits(t *testing.T) {
	// A job that reaches a limit must end with 124 and the cause timeout, whatever it does with TERM, leave no process, and not be tried again.
	// The time limit counts from the record phase: what is before the agent takes its part.
	for name, c := range map[string]struct{ limits, script, note string }{
		"timeout":                {`,"timeout":"5s"`, "sleep 60 & wait", "the time limit of 5s was reached"},
		"in order after TERM":    {`,"timeout":"5s"`, `trap 'exit 0' TERM; sleep 60 & wait`, "the time limit of 5s was reached"},
		"busy, but for too long": {`,"timeout":"5s","idle_timeout":"4500ms"`, "while :; do echo .; sleep 0.1; done", "the time limit of 5s was reached"},
		"idle":                   {`,"idle_timeout":"3s"`, "echo begin; sleep 60 & wait", "no output for 3s"},
		"idle, a child's output": {`,"idle_timeout":"3s"`, "(sleep 2; echo late) & sleep 60 & wait", "no output for 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "claude", spec.Headless)
			b.limited("on-failure:3", c.limits)
			b.stub("claude", `echo $$ >"$HOME/pid"; `+c.script)
			started := time.Now()
			r := b.enter()
			if code := r.wait(); code != 124 {
				t.Errorf("exit %d, want 124\n%s", code, r.err.String())
			}
			if took := time.Since(started); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
			if got := b.ends(); len(got) != 1 || got[0] != "1 failed timeout 124" || !strings.Contains(strings.Join(b.record().Notes, " "), c.note) {
				t.Errorf("records %q, notes %q", got, b.record().Notes)
			}
			b.noGroup()
		})
	}
}

// noGroup fails when a process of the agent's group is left.
func (b *box) noGroup() {
	b.t.Helper()
	pid := strings.TrimSpace(b.read(b.home("pid")))
	until(b.t, "the agent's group is gone", func() bool {
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range stats {
			stat, _ := os.ReadFile(path) // gone meanwhile
			_, after, _ := strings.Cut(string(stat), ") ")
			if f := strings.Fields(after); len(f) > 2 && f[2] == pid && f[0] != "Z" {
				return false
			}
		}
		return true
	})
}

func TestDeafAgent(t *testing.T) {
	// An agent that ignores TERM must be killed after the grace time, with its children.
	t.Parallel()
	b := newBox(t, "claude", spec.Headless)
	b.limited("on-failure:3", `,"timeout":"4s"`)
	b.stub("claude", `trap '' TERM; echo $$ >"$HOME/pid"; while :; do sleep 0.2; done`)
	started := time.Now()
	if code := b.enter().wait(); code != 124 {
		t.Errorf("exit %d, want 124", code)
	}
	if took := time.Since(started); took < killGrace {
		t.Errorf("it was killed after %s, before its grace was over", took)
	}
	b.noGroup()
}

func TestDeadlineOverAttempts(t *testing.T) {
	// The time limit must be one over all attempts, and no attempt be begun that it leaves no time for.
	t.Parallel()
	b := newBox(t, "claude", spec.Headless)
	b.limited("on-failure", `,"timeout":"6s"`) // the sixth attempt is after 3.1 s of waiting, the seventh would be after 6.3 s
	b.stub("claude", "exit 7")
	started := time.Now()
	if code := b.enter().wait(); code != 7 {
		t.Errorf("exit %d, want the last attempt's own 7", code)
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	list := b.records()
	if last := list[len(list)-1]; len(list) < 3 || !strings.Contains(strings.Join(last.Notes, " "), "no time left for another attempt") {
		t.Errorf("%d attempts, the last one's notes are %q", len(list), last.Notes)
	}
}

func TestStopBetweenAttempts(t *testing.T) {
	// A stop between two attempts must end the job at once, with the last attempt's code, and start none.
	t.Parallel()
	b := newBox(t, "claude", spec.Headless)
	b.limited("on-failure", "")
	b.stub("claude", `echo >>"$HOME/n"; exit 9`)
	r := b.enter()
	until(t, "the wait before the sixth attempt", func() bool {
		list := b.records()
		return len(list) == 5 && list[4].EndedAt != nil // 1.6 s until the next
	})
	r.term()
	if code := r.wait(); code != 9 {
		t.Errorf("exit %d, want 9", code)
	}
	if n := strings.Count(b.read(b.home("n")), "\n"); n != 5 || len(b.records()) != 5 {
		t.Errorf("%d runs, %d records, want 5", n, len(b.records()))
	}
}

func TestSetupLimits(t *testing.T) {
	// A phase that does not get on must be given up after its limit, and the job's own limit must count in the set-up too.
	t.Parallel()
	for name, c := range map[string]struct {
		limits, end, status string
		code                int
	}{
		"start":   {`,"start_timeout":"4s"`, "1 failed set-up 1", "failed git: no progress for 4s", 1},
		"timeout": {`,"timeout":"4s"`, "1 failed timeout 124", "failed git: the job's time limit was reached", 124},
	} {
		b := newBox(t, "claude", spec.Headless)
		b.limited("on-failure:3", c.limits)
		b.stub("git", "sleep 60")
		b.stub("claude", `: >"$HOME/ran"`)
		r := b.enter()
		if code := r.wait(); code != c.code || b.status() != c.status {
			t.Errorf("%s: exit %d, status %q", name, code, b.status())
		}
		if got := b.ends(); len(got) != 1 || got[0] != c.end || exists(b.home("ran")) {
			t.Errorf("%s: records %q, agent ran: %t", name, got, exists(b.home("ran")))
		}
	}
}

func TestRecordThatCannotBeWritten(t *testing.T) {
	// Trouble with the record must not become the agent's end: its code stays.
	t.Parallel()
	for name, c := range map[string]struct {
		limits, script string
		code           int
	}{
		"exit":    {"", "exit 7", 7},
		"success": {"", "exit 0", 0},
		"timeout": {`,"timeout":"4s"`, "sleep 60", 124},
	} {
		b := newBox(t, "claude", spec.Headless)
		b.limited("no", c.limits)
		b.stub("claude", `rm -r "$AGENT_CONTAINER_RUNS_DIR"; : >"$AGENT_CONTAINER_RUNS_DIR"; `+c.script)
		r := b.enter()
		if code := r.wait(); code != c.code || !strings.Contains(r.err.String(), "error: ") {
			t.Errorf("%s: exit %d, want %d\n%s", name, code, c.code, r.err.String())
		}
	}
}

func TestStoppedAndDeaf(t *testing.T) {
	// A limit must hold also for an agent that was told to stop and goes on.
	t.Parallel()
	b := newBox(t, "claude", spec.Headless)
	b.limited("no", `,"timeout":"6s"`)
	b.stub("claude", `trap '' TERM; echo $$ >"$HOME/pid"; while :; do sleep 0.2; done`)
	r := b.enter()
	until(t, "the agent runs", func() bool { return exists(b.home("pid")) })
	r.term()
	if code := r.wait(); code != 137 || exitOf(b.record()) != "stopped engine-stop 137" {
		t.Errorf("exit %d, record %q", code, exitOf(b.record()))
	}
	b.noGroup()
}

func TestIdleIsNoWork(t *testing.T) {
	// An agent that prints nothing but keeps its session must not count as idle.
	t.Parallel()
	b := newBox(t, "claude", spec.Headless)
	b.limited("no", `,"idle_timeout":"3s"`)
	b.stub("claude", `for i in 1 2 3 4 5; do sleep 0.8; echo $i >>"$HOME/.claude/session"; done; exit 6`)
	if code := b.enter().wait(); code != 6 {
		t.Errorf("exit %d, want the agent's own 6", code)
	}
}

func TestGitThatHangs(t *testing.T) {
	// A git whose child keeps its output open must not keep the container from ending.
	t.Parallel()
	b := newBox(t, "claude", spec.Headless)
	b.stub("git", `case "$*" in *"diff --name-only"*) sleep 300 & exit 0 ;; esac; exec /usr/bin/git "$@"`)
	b.commit()
	started := time.Now()
	b.stub("claude", "exit 0")
	if code := b.enter().wait(); code != 0 || time.Since(started) > 20*time.Second {
		t.Errorf("exit %d after %s", code, time.Since(started))
	}
}

func TestKeptOutput(t *testing.T) {
	// The kept output must be whole up to its bound, then its beginning and its end with a word between, without credentials, while all of it is passed on.
	secret := "sk-0123456789abcdef"
	b := newBox(t, "claude", spec.Headless)
	b.environment("ANTHROPIC_API_KEY=" + secret + "\x00GH_TOKEN=sk-01234567\x00PLAIN=sk-99999999999\x00SHORT_KEY=the\x00AWS_SECRET_ACCESS_KEY=/AbCdEfGh01\x00")
	b.stub("claude", `
printf 'the first sk-0123'; sleep 0.1; printf '456789abcdef line sk-99999999999 sk-01234567\n'
head -c 3000000 /dev/zero | tr '\0' x
printf 'error sk-0123456789abcdef\n' >&2
printf '/AbCdEfGh01\nthe last line'`)
	r := b.enter()
	if code := r.wait(); code != 0 {
		t.Fatalf("exit %d\n%s", code, r.err.String())
	}
	rec := b.record()
	kept := b.read(filepath.Join(b.p.RunsDir, rec.ID+spec.OutputSuffix))
	for part, want := range map[string]bool{
		"the first [masked] line sk-99999999999 [masked]\n": true, "error [masked]\n": true, "\nthe last line": true,
		" bytes are left out here]\n": true, secret: false, "sk-01234567": false, "AbCdEfGh": false,
	} {
		if strings.Contains(kept, part) != want {
			t.Errorf("kept %q: %t, want %t", part, !want, want)
		}
	}
	if len(kept) > spec.MaxOutputBytes+200 || len(kept) < spec.MaxOutputBytes {
		t.Errorf("%d bytes are kept", len(kept))
	}
	passed := r.out.String() + r.err.String()
	if !strings.Contains(passed, secret) || rec.OutputBytes < 3000000 || len(passed) < 3000000 {
		t.Errorf("%d bytes were passed on, %d counted", len(passed), rec.OutputBytes)
	}
}

func TestOutputOfAKilledContainer(t *testing.T) {
	// What the agent wrote before everything was killed must be kept.
	b := newBox(t, "claude", spec.Headless)
	b.stub("claude", `echo "so far"; echo $$ >"$HOME/pid"; sleep 60`)
	r := b.enter()
	until(t, "the agent has spoken", func() bool {
		pid, _ := os.ReadFile(b.home("pid")) // not yet
		return strings.HasSuffix(string(pid), "\n") && strings.Contains(b.kept(), "so far\n")
	})
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.wait()
	if got := b.kept(); got != "so far\n" {
		t.Errorf("kept %q", got)
	}
	if out, err := os.ReadFile(b.home("pid")); err == nil {
		pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(-pid, syscall.SIGKILL) // the test's own agent, which lost its container
	}
}

// kept is the output of the only run so far.
func (b *box) kept() string {
	paths, _ := filepath.Glob(filepath.Join(b.p.RunsDir, "*"+spec.OutputSuffix))
	if len(paths) != 1 {
		return ""
	}
	return b.read(paths[0])
}

func TestOOMKills(t *testing.T) {
	// The kernel's count must be read in the words of both cgroup versions, and nothing else be taken for it.
	for content, want := range map[string]int64{
		"low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n": 2,
		"oom_kill_disable 0\nunder_oom 0\noom_kill 7\n":                7,
		"oom_kill_disable 0\nunder_oom 0\n":                            -1,
		"oom_kill many\n":                                              -1, "": -1,
	} {
		n, ok := parseOOMKills(content)
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %t", content, n, ok)
		}
	}
}

// sh runs a script in the workspace with the real git.
func (b *box) sh(script string) string {
	b.t.Helper()
	r := b.start("/bin/bash", "-ec", script)
	if code := r.wait(); code != 0 {
		b.t.Fatalf("exit %d\n%s", code, r.err.String())
	}
	return r.out.String()
}

// recreate makes the box a new container: what was filled and kept is gone.
func (b *box) recreate() {
	for _, pattern := range []string{filepath.Join(b.p.RunDir, "*"), filepath.Join(b.p.RunsDir, "*")} {
		paths, _ := filepath.Glob(pattern)
		for _, p := range paths {
			if err := os.Remove(p); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	b.fill(spec.FillJob, `{"record_task":true}`)
}

func TestDiffAndUnpushed(t *testing.T) {
	// The record must come with what the run changed, committed or not, tracked or not, and count what is on no remote; the agent's index must stay as it was.
	b := newBox(t, "claude", spec.Headless)
	b.environment("GH_TOKEN=ghp_0123456789\x00")
	b.sh(`git init -q --bare ../origin.git && git init -q -b main . && echo one >kept && echo old >changed && echo "*.log" >.gitignore &&
		git add -A && git commit -qm first && git remote add origin ../origin.git && git push -q origin main`)
	r := b.work(`echo new >changed; echo ghp_0123456789 >token; echo fresh >untracked; echo noise >x.log; git add changed && git commit -qm second; git add -N token; git status --porcelain >"$HOME/status"`)
	diff := b.read(filepath.Join(b.p.RunsDir, r.ID+spec.DiffSuffix))
	for part, want := range map[string]bool{"-old\n+new\n": true, "+fresh\n": true, "+[masked]\n": true, "ghp_": false, "noise": false, "one": false} {
		if strings.Contains(diff, part) != want {
			t.Errorf("%q in the diff: %t, want %t\n%s", part, !want, want, diff)
		}
	}
	if r.Repository == nil || !r.Repository.Remote || r.Repository.Unpushed != 1 {
		t.Errorf("repository is %+v", r.Repository)
	}
	if got := b.sh("git status --porcelain"); got != b.read(b.home("status")) {
		t.Errorf("the agent's index was changed: %q, was %q", got, b.read(b.home("status")))
	}
	b.recreate()
	if r := b.work("git push -q origin main"); r.Repository.Unpushed != 0 || !r.Repository.Remote {
		t.Errorf("after a push: %+v", r.Repository)
	}
}

func TestVolumeIsBounded(t *testing.T) {
	// The runs volume must stay below what the host reads of it: the newest runs stay, output and changes of the newest only.
	b := newBox(t, "claude", spec.Headless)
	name := func(i int, suffix string) string {
		return filepath.Join(b.p.RunsDir, fmt.Sprintf("20260101T%02d%02d00Z-00000000%s", i/60, i%60, suffix))
	}
	for i := range 600 {
		b.write(name(i, ".json"), "{}", 0o600)
		b.write(name(i, spec.OutputSuffix), "x", 0o600)
	}
	if err := os.Truncate(name(150, ".json"), volumeBytes); err != nil {
		t.Fatal(err)
	}
	if code, _, out := b.guest("phase", "record"); code != 0 {
		t.Fatal(out)
	}
	for i, want := range map[int][2]bool{99: {false, false}, 150: {false, false}, 151: {true, false}, 579: {true, false}, 580: {true, true}, 599: {true, true}} {
		if got := [2]bool{exists(name(i, ".json")), exists(name(i, spec.OutputSuffix))}; got != want {
			t.Errorf("run %d: record and output are there: %v, want %v", i, got, want)
		}
	}
}
