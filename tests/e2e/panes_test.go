package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// paneAgent is an agent as somebody starts it by hand in a pane.
type paneAgent struct {
	name    string
	dir     string   // where it is started, from /workspace
	env     []string // NAME=VALUE
	command []string
	asks    string // the task at which it asks; "" where it asks for no command
}

// What these tasks run is harmless, if it is run.
var paneAgents = []paneAgent{
	{name: "claude", command: []string{"claude"}, asks: "model: run touch /etc/no; rm -rf /workspace/no",
		env: []string{"ANTHROPIC_BASE_URL=http://model:8080", "ANTHROPIC_API_KEY=sk-test-0123456789abcdef", "CLAUDE_CONFIG_DIR=/home/agent/.claude",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}},
	{name: "codex", command: []string{"codex", "--sandbox", "danger-full-access", "--ask-for-approval", "on-request"}, asks: "model: run touch /etc/no; rm -rf /workspace/no",
		env: []string{"MODELSERVER_KEY=sk-test"}},
	{name: "pi", command: []string{"pi"}, dir: "/asks-for-trust", env: []string{"PI_OFFLINE=1"}},
	{name: "opencode", command: []string{"opencode"}, asks: "model: run true",
		env: []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1"}},
}

// The states of each real agent, started by hand with docker exec in a pane of a host's
// tmux, must be read from their screens: at their prompt, at work, after an
// interruption, and with a question.
func TestPanesOfRealAgents(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	for _, a := range paneAgents {
		t.Run(a.name, func(t *testing.T) {
			u := newUser(t)
			flags := u.withModel(a.name)
			u.letAsk(a.name)
			u.must(append([]string{"up", u.name, "--agent", a.name, "--mode", "idle"}, flags...)...)
			if a.dir != "" {
				u.must("exec", u.name, "--", "sh", "-c", "mkdir -p /workspace"+a.dir+"/.pi && echo '{}' >/workspace"+a.dir+"/.pi/settings.json")
			}
			p := u.paneOf(a)
			if a.dir != "" {
				p.until("waiting", "", 0)
				p.tmux("send-keys", "-t", p.id, "Enter")
			}
			p.until("idle", "", 0)
			p.types("model: hang")
			p.until("working", "Enter", 10*time.Second)
			again := 10 * time.Second
			if a.name == "opencode" {
				again = time.Second // it wants to be told twice
			}
			p.until("idle", "Escape", again)
			if a.asks != "" {
				p.types(a.asks)
				p.until("waiting", "Enter", 40*time.Second) // a second Enter would answer
			}
		})
	}
}

// letAsk adds to an agent's configuration what makes it ask before it runs a command, and
// nothing else.
func (u *user) letAsk(agent string) {
	u.t.Helper()
	switch agent {
	case "claude":
		u.write("config/"+u.name+".config/claude/settings.json", `{"permissions":{"defaultMode":"default"}}`)
	case "codex":
		u.addLine("config/"+u.name+".config/codex/config.toml", "[notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"")
	case "opencode":
		path := "config/" + u.name + ".config/opencode/opencode.json"
		config, err := os.ReadFile(u.path(path))
		if err != nil {
			u.t.Fatal(err)
		}
		u.write(path, strings.Replace(string(config), "{", `{"permission":{"bash":"ask"},`, 1))
	}
}

// agentPane is an agent in a pane of a watched tmux.
type agentPane struct {
	t         *testing.T
	agent, id string
	tmux      func(args ...string) string
}

// paneOf starts the agent in a pane of a tmux of its own, as somebody would by hand.
func (u *user) paneOf(a paneAgent) agentPane {
	u.t.Helper()
	tmux := u.hostTmux()
	argv := []string{"new-window", "-d", "-P", "-F", "#{pane_id}", "docker", "exec", "-it", "-w", "/workspace" + a.dir}
	for _, e := range a.env {
		argv = append(argv, "-e", e)
	}
	argv = append(append(argv, u.container()), a.command...)
	return agentPane{u.t, a.name, tmux(argv...), tmux}
}

// until waits for a state. A key is pressed at first, and every time that again is over: an
// agent that is still starting takes what is typed and drops Enter.
func (p agentPane) until(want, key string, again time.Duration) {
	p.t.Helper()
	var pressed time.Time
	eventually(p.t, 4*time.Minute, func() string {
		got := p.tmux("display-message", "-p", "-t", p.id, "#{@agent} #{@agent_container} #{@agent_state}")
		if got == p.agent+" docker "+want {
			return ""
		}
		if key != "" && time.Since(pressed) > again {
			p.tmux("send-keys", "-t", p.id, key)
			pressed = time.Now()
		}
		return "the marks are " + got + ", want " + want + "; the screen:\n" + p.screen()
	})
}

// types types a line and waits until it is shown.
func (p agentPane) types(line string) {
	p.t.Helper()
	untilTyped(p.t, line, func(text string) { p.tmux("send-keys", "-t", p.id, "-l", text) }, p.screen)
}

func (p agentPane) screen() string { return p.tmux("capture-pane", "-p", "-t", p.id) }

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
