package e2e

import (
	"strings"
	"testing"
	"time"
)

// A pane that is attached to a deployment of ours, over ssh or through the engine, must be marked with its agent and with the state that the session's screen shows, until it is detached.
func TestPaneOfAnAttach(t *testing.T) {
	u := newUser(t)
	u.must(append([]string{"up", u.name, "--agent", "claude"}, u.withModel("claude")...)...)
	tmux := u.hostTmux()
	for _, via := range []string{"ssh", "exec"} {
		pane := tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "sh")
		has := func(want string) {
			t.Helper()
			eventually(t, 90*time.Second, func() string {
				if got := tmux("display-message", "-p", "-t", pane, "#{@agent} #{@agent_container} #{@agent_state} #{@agent_attached}"); !strings.HasPrefix(got+",", want) {
					return "the marks are " + got + ", want " + want + "; the screen:\n" + tmux("capture-pane", "-p", "-t", pane)
				}
				return ""
			})
		}
		tmux("send-keys", "-t", pane, program+" attach "+u.name+" --via "+via, "Enter")
		has("claude docker idle claude/docker/")
		tmux("send-keys", "-t", pane, "-l", "model: hang")
		tmux("send-keys", "-t", pane, "Enter")
		has("claude docker working claude/docker/")
		tmux("send-keys", "-t", pane, "Escape")
		has("claude docker idle claude/docker/")
		tmux("send-keys", "-t", pane, "C-u")
		// Keys that a loaded machine brings together count as pasted: C-b d would be text.
		u.must("exec", u.name, "--", "tmux", "detach-client", "-s", "=main")
		has(",")
	}
}
