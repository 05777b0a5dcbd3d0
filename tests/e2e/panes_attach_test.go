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
		hasNot := func(want string) string {
			if got := tmux("display-message", "-p", "-t", pane, "#{@agent} #{@agent_container} #{@agent_state} #{@agent_attached}"); !strings.HasPrefix(got+",", want) {
				return "the marks are " + got + ", want " + want + "; the screen:\n" + tmux("capture-pane", "-p", "-t", pane)
			}
			return ""
		}
		has := func(want string) {
			t.Helper()
			eventually(t, 90*time.Second, func() string { return hasNot(want) })
		}
		tmux("send-keys", "-t", pane, program+" attach "+u.name+" --via "+via, "Enter")
		has("claude docker idle claude/docker/")
		// An Enter that comes with the text is part of what is pasted, and an agent that
		// has just started may drop either: so it comes a second later, and both again.
		var typed time.Time
		entered := false
		eventually(t, 4*time.Minute, func() string {
			problem := hasNot("claude docker working claude/docker/")
			switch since := time.Since(typed); {
			case problem == "":
			case since > 20*time.Second:
				tmux("send-keys", "-t", pane, "C-u")
				tmux("send-keys", "-t", pane, "-l", "model: hang")
				typed, entered = time.Now(), false
			case since > time.Second && !entered:
				tmux("send-keys", "-t", pane, "Enter")
				entered = true
			}
			return problem
		})
		tmux("send-keys", "-t", pane, "Escape")
		has("claude docker idle claude/docker/")
		tmux("send-keys", "-t", pane, "C-u")
		// Keys that a loaded machine brings together count as pasted: C-b d would be text.
		u.must("exec", u.name, "--", "tmux", "detach-client", "-s", "=main")
		has(",")
	}
}
