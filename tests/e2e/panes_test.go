package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The states of a real claude and a real codex, started by hand with docker exec in a
// pane of a host's tmux, must be read from their screens: at their prompt, at work, after an
// interruption, and, of claude, with a question.
func TestPanesOfRealAgents(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	for agent, command := range map[string][]string{
		"claude": {"-e", "ANTHROPIC_BASE_URL=http://model:8080", "-e", "ANTHROPIC_API_KEY=sk-test-0123456789abcdef", "-e", "CLAUDE_CONFIG_DIR=/home/agent/.claude",
			"-e", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CONTAINER", "claude"},
		"codex": {"-e", "MODELSERVER_KEY=sk-test", "CONTAINER", "codex", "--sandbox", "danger-full-access"},
	} {
		t.Run(agent, func(t *testing.T) {
			u := newUser(t)
			flags := u.withModel(agent)
			switch agent {
			case "claude":
				u.write("config/"+u.name+".config/claude/settings.json", `{"permissions":{"defaultMode":"default"}}`)
			case "codex":
				u.addLine("config/"+u.name+".config/codex/config.toml", "[notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"")
			}
			u.must(append([]string{"up", u.name, "--agent", agent}, flags...)...)
			tmux := u.hostTmux()
			for i, word := range command {
				if word == "CONTAINER" {
					command[i] = u.container()
				}
			}
			pane := tmux(append([]string{"new-window", "-d", "-P", "-F", "#{pane_id}", "docker", "exec", "-it", "-w", "/workspace"}, command...)...)
			state := func(want string) {
				t.Helper()
				eventually(t, 60*time.Second, func() string {
					if got := tmux("display-message", "-p", "-t", pane, "#{@agent} #{@agent_container} #{@agent_state}"); got != agent+" docker "+want {
						return "the marks are " + got + ", want " + want + "; the screen:\n" + tmux("capture-pane", "-p", "-t", pane)
					}
					return ""
				})
			}
			types := func(line string) {
				t.Helper()
				tmux("send-keys", "-t", pane, "-l", line)
				eventually(t, 20*time.Second, func() string {
					if screen := tmux("capture-pane", "-p", "-t", pane); !strings.Contains(screen, line) {
						return "it does not show what is typed:\n" + screen
					}
					return ""
				})
				tmux("send-keys", "-t", pane, "Enter")
			}
			state("idle")
			types("model: hang")
			state("working")
			tmux("send-keys", "-t", pane, "Escape")
			state("idle")
			if agent != "claude" {
				return // in its sandbox mode of containers it asks nothing
			}
			tmux("send-keys", "-t", pane, "C-u") // it offers what was interrupted again
			types("model: run touch /etc/no; rm -rf /workspace/no")
			state("waiting")
		})
	}
}

// hostTmux starts a tmux server of the test's own on this machine, with a watcher, and
// returns how it is called.
func (u *user) hostTmux() func(args ...string) string {
	u.t.Helper()
	dir, err := os.MkdirTemp("", "panes") // a socket's path has to be short
	if err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { os.RemoveAll(dir) })
	conf := filepath.Join(dir, "tmux.conf")
	if err := os.WriteFile(conf, []byte("run-shell -b '"+program+" panes watch'\n"), 0o600); err != nil {
		u.t.Fatal(err)
	}
	try := func(args ...string) (string, error) {
		cmd := exec.Command("tmux", append([]string{"-u", "-f", conf, "-S", filepath.Join(dir, "s")}, args...)...)
		cmd.Env = append(append(outerEnvironment(), u.env...), "TMUX=", "TERM=screen", "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	u.t.Cleanup(func() { _, _ = try("kill-server") })
	tmux := func(args ...string) string {
		u.t.Helper()
		out, err := try(args...)
		if err != nil {
			u.t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return out
	}
	tmux("new-session", "-d", "-x", "120", "-y", "40", "sh")
	return tmux
}
