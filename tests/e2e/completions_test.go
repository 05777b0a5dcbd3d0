package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// In a real shell, on a real terminal, the Tab key must complete commands, the
// values of flags, deployments' names wherever they stand, and files.
func TestTabCompletes(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("skipped: tmux is not installed, which gives the shells their terminal")
	}
	for shell, c := range map[string]struct{ command, rc string }{
		"bash": {"bash --noprofile --rcfile {rc} -i", "bind 'set bell-style none'\n"},
		"zsh":  {"ZDOTDIR={dir} zsh -i", "autoload -Uz compinit; compinit -D; unsetopt beep\n"},
		"fish": {"fish --no-config --interactive --init-command 'source {rc}'", ""},
	} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("skipped: %s is not installed", shell)
			}
			u := newUser(t)
			u.withStub()
			u.must("up", u.name, "--mode", "idle")
			u.write("project/keys/a.pub", "")
			u.write("project/keys.txt", "")
			rc := c.rc + "PS1='ready> '\nsource <(agent-container completions " + shell + ")\n"
			if shell == "fish" {
				rc = "function fish_prompt; echo 'ready> '; end\nset fish_greeting ''\nagent-container completions fish | source\n"
			}
			rc = u.write("rc/.zshrc", rc)
			socket := u.path("tmux")
			tmux := func(args ...string) string {
				t.Helper()
				cmd := exec.Command("tmux", append([]string{"-f", "/dev/null", "-S", socket}, args...)...)
				cmd.Dir = u.path("project")
				cmd.Env = append(append(outerEnvironment(), u.env...), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "TERM=screen")
				return finish(t, cmd).stdout
			}
			line := strings.NewReplacer("{rc}", rc, "{dir}", filepath.Dir(rc)).Replace(c.command)
			tmux("new-session", "-d", "-x", "120", "-y", "40", "exec env "+line)
			defer tmux("kill-server")
			shows := func(text string) {
				t.Helper()
				eventually(t, 20*time.Second, func() string {
					if s := tmux("capture-pane", "-p"); !contains(s, text) {
						return "the screen does not show " + text + ":\n" + s
					}
					return ""
				})
			}
			shows("ready>")
			for _, c := range []struct{ typed, becomes string }{
				{"agent-container rede", "agent-container redeploy "},
				{"agent-container up x --agent cl", "--agent claude "},
				{"agent-container up x --mode head", "--mode headless "},
				{"agent-container up --workspace eph", "--workspace ephemeral "},
				{"agent-container up x --workspace-d", "--workspace-dir "},
				{"agent-container runs sh", "runs show "},
				{"agent-container down --pur", "down --purge "},
				{"agent-container attach x --via e", "--via exec "},
				{"agent-container runs list --outcome fin", "--outcome finished "},
				{"agent-container up x --mode=head", "--mode=headless "},
				{"agent-container start " + u.name[:9], "start " + u.name + " "},
				{"agent-container redeploy --agent codex " + u.name[:9], "codex " + u.name + " "},
				{"agent-container access list " + u.name[:9], "list " + u.name + " "},
				{"agent-container up x --env-file keys.", "--env-file keys.txt "},
				{"agent-container up x --workspace-dir ke", "--workspace-dir keys/"},
			} {
				// Names are given up after a second, and whoever sees none types again.
				var typed time.Time
				eventually(t, 2*time.Minute, func() string {
					s := tmux("capture-pane", "-p")
					if contains(s, c.becomes+"+") {
						return ""
					}
					if time.Since(typed) > 10*time.Second {
						tmux("send-keys", "C-u")
						tmux("send-keys", "-l", c.typed)
						tmux("send-keys", "Tab")
						tmux("send-keys", "-l", "+") // what stands behind the completed word
						typed = time.Now()
					}
					return "the screen does not show " + c.becomes + "+:\n" + s
				})
				tmux("send-keys", "C-u")
			}
			// Several candidates are listed.
			tmux("send-keys", "-l", "agent-container up x --agent ")
			tmux("send-keys", "Tab", "Tab")
			for _, agent := range []string{"claude", "codex", "opencode", "pi"} {
				shows(agent)
			}
		})
	}
}
