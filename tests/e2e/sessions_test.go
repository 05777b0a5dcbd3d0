package e2e

import (
	"strings"
	"testing"
	"time"
)

// screen is what the agent's tmux window shows.
func (u *user) screen() string {
	u.t.Helper()
	r := dockerTry(u.t, "exec", u.container(), "tmux", "capture-pane", "-p", "-J", "-t", "=main:agent")
	if r.code != 0 {
		return r.String()
	}
	return r.stdout
}

// untilScreen waits until the agent's screen shows text.
func (u *user) untilScreen(limit time.Duration, text string) {
	u.t.Helper()
	eventually(u.t, limit, func() string {
		if s := u.screen(); !contains(s, text) {
			return "the screen does not show " + text + ":\n" + s
		}
		return ""
	})
}

// keys types into the agent's window.
func (u *user) keys(keys ...string) {
	u.t.Helper()
	docker(u.t, append([]string{"exec", u.container(), "tmux", "send-keys", "-t", "=main:agent"}, keys...)...)
}

// seen counts how often the model server beside the deployment got the task as
// a new one.
func (u *user) seen(task string) int {
	u.t.Helper()
	n := 0
	for _, r := range u.modelRequests() {
		if r["text"] == task && r["tool_results"] == 0.0 && r["answer"] != "side" && r["answer"] != "count-tokens" {
			n++
		}
	}
	return n
}

// An interactive agent must begin its task by itself, without any dialog, and
// get it once: neither a restart by the engine nor stop and start nor another
// up sends it again.
func TestInteractiveTaskIsSentOnce(t *testing.T) {
	for agent, prompt := range map[string]string{"claude": "❯", "codex": "›", "pi": ""} {
		t.Run(agent, func(t *testing.T) {
			u := newUser(t)
			task := "model: write /workspace/session.txt from the session of " + u.name + "\n" +
				"model: say the session has worked"
			flags := u.withModel(agent)
			if agent == "codex" {
				// It offers the successor of the model that the server speaks for.
				u.addLine("config/"+u.name+".config/codex/config.toml", "[notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"")
			}
			u.must(append([]string{"up", u.name, "--agent", agent, "--task", task}, flags...)...)
			eventually(t, 60*time.Second, func() string {
				// Once in the task, and once more as the answer to it.
				if s := u.screen(); strings.Count(s, "the session has worked") < 2 {
					return "the screen does not show an answer:\n" + s
				}
				return ""
			})
			if got := u.must("exec", u.name, "--", "cat", "/workspace/session.txt").stdout; got != "from the session of "+u.name+"\n" {
				t.Errorf("the file holds %q; the screen:\n%s", got, u.screen())
			}
			if n := u.seen(task); n != 1 {
				t.Fatalf("the model was asked %d times", n)
			}

			if agent == "pi" {
				return // what follows is ours, not the agent's; two show it
			}
			ready := func(after string) {
				t.Helper()
				u.untilScreen(60*time.Second, prompt)
				if s := u.screen(); contains(s, "the session has worked") {
					t.Errorf("after %s the screen shows the task:\n%s", after, s)
				}
			}
			docker(t, "restart", u.container())
			ready("docker restart")
			if n := u.seen(task); n != 1 {
				t.Errorf("after docker restart the model was asked %d times", n)
			}
			// Stopping takes the services along: the server has forgotten, and
			// must not be asked anew.
			u.must("stop", u.name)
			u.must("start", u.name)
			ready("stop and start")
			u.must("stop", u.name)
			u.must("up", u.name)
			ready("stop and up")
			u.must("up", u.name)
			if n := u.seen(task); n != 0 {
				t.Errorf("after stop, start and up the model was asked %d times", n)
			}
			if got := u.must("exec", u.name, "--", "sh", "-c", "cat /workspace/*.txt").stdout; got != "from the session of "+u.name+"\n" {
				t.Errorf("the workspace holds %q", got)
			}
		})
	}
}

// opencode takes no task at its start: up must say so, the task must be where
// the note says, and the agent must come up without it.
func TestInteractiveAgentThatTakesNoTask(t *testing.T) {
	u := newUser(t)
	task := "model: write /workspace/session.txt nobody asked"
	r := u.must(append([]string{"up", u.name, "--agent", "opencode", "--task", task}, u.withModel("opencode")...)...)
	if !contains(r.stderr, "NOTE: opencode takes no task") || !contains(r.stderr, "/run/agent-container/task") {
		t.Errorf("up does not say where the task is: %s", r)
	}
	if got := u.must("exec", u.name, "--", "cat", "/run/agent-container/task").stdout; got != task {
		t.Errorf("the task there is %q", got)
	}
	u.untilScreen(60*time.Second, "/workspace")
	if argv := u.must("exec", u.name, "--", "sh", "-c", `tr '\0' ' ' <"/proc/$(pgrep -o opencode)/cmdline"`).stdout; contains(argv, "model:") {
		t.Errorf("the agent's argv is %s", argv)
	}
	if n := u.seen(task); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// When the agent quits, its window must say so and become a shell, with the
// agent's environment, and the container must go on.
func TestAgentThatQuitsLeavesAShell(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--env", "STUB_RUN=exit 3")
	u.keys("C-d") // the stub reads its input to the end
	u.untilScreen(10*time.Second, "claude ended (exit status 3); this window is now a shell")
	u.keys("-l", "echo still $((40 + 2)) here in $PWD as $CLAUDE_CONFIG_DIR")
	u.keys("Enter")
	u.untilScreen(10*time.Second, "still 42 here in /workspace as /home/agent/.claude")
	if state := u.inspect("{{.State.Status}} {{.RestartCount}}"); state != "running 0" {
		t.Errorf("the container is %s", state)
	}
	// A session that goes on is no end of the run.
	if record := u.record(); record["outcome"] != nil && record["outcome"] != "" {
		t.Errorf("the record is closed: %v", record)
	}
}

// A dead tmux server must not take the container along.
func TestContainerOutlivesTheTmuxServer(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	before := u.inspect("{{.State.StartedAt}} {{.State.Status}} {{.State.Pid}}")
	u.must("exec", u.name, "--", "pkill", "-KILL", "tmux")
	eventually(t, 10*time.Second, func() string {
		if r := u.run("exec", u.name, "--", "pgrep", "tmux"); r.code != 1 {
			return "the server is still there: " + r.String()
		}
		return ""
	})
	u.must("exec", u.name, "--", "true")
	if now := u.inspect("{{.State.StartedAt}} {{.State.Status}} {{.State.Pid}}"); now != before {
		t.Errorf("the container went from %s to %s", before, now)
	}
	// The next start has a session again.
	u.must("stop", u.name)
	u.must("start", u.name)
	u.must("exec", u.name, "--", "tmux", "has-session", "-t", "=main:agent")
}

// Text beyond ASCII must pass whole: into a session, onto its screen, and
// through exec.
func TestUTF8(t *testing.T) {
	const text = "žluťoučký kůň 日本語 🐎 ─┼─"
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--task", text, "--env", "STUB_RUN=true")
	if got := u.must("exec", u.name, "--", "printf", "%s", text).stdout; got != text {
		t.Errorf("exec printed %q", got)
	}
	eventually(t, 10*time.Second, func() string {
		if r := u.run("exec", u.name, "--", "cat", "/home/agent/.claude/stub-argv"); r.stdout != "--\n"+text+"\n" {
			return "the agent got " + r.String()
		}
		return ""
	})
	u.keys("C-d")
	u.untilScreen(10*time.Second, "now a shell")
	u.keys("-l", "printf 'width %s|%d\\n' '"+text+"' $(printf %s 'kůň' | wc -m)")
	u.keys("Enter")
	u.untilScreen(10*time.Second, "width "+text+"|3")
	if bad := u.screen(); strings.Contains(bad, "\uFFFD") {
		t.Errorf("the screen shows replacement characters:\n%s", bad)
	}
}
