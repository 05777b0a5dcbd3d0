package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// In a real shell, on a real terminal, the Tab key must complete commands and
// the values of flags.
func TestTabCompletes(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("skipped: tmux is not installed, which gives the shells their terminal")
	}
	for shell, c := range map[string]struct{ command, rc string }{
		"bash": {"bash --noprofile --rcfile {rc} -i", "bind 'set bell-style none'\n"},
		"zsh":  {"ZDOTDIR={dir} zsh -i", "autoload -Uz compinit; compinit -D; unsetopt beep\n"},
	} {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("skipped: %s is not installed", shell)
			}
			u := newUser(t)
			rc := u.write("rc/.zshrc", c.rc+"PS1='ready> '\nsource <(agent-container completions "+shell+")\n")
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
			} {
				tmux("send-keys", "-l", c.typed)
				tmux("send-keys", "Tab")
				tmux("send-keys", "-l", "+") // what stands behind the completed word
				shows(c.becomes + "+")
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
