package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// dialogs are words of the questions with which agents greet a fresh home.
var dialogs = []string{"text style", "trust the", "trust this", "API key", "Try new model", "default permission mode?", "Yes, ", "to continue", "Sign in", "Log in"}

// theModelIsDone is the end of the scripted model's turn, a line of its own on
// every agent's screen.
var theModelIsDone = regexp.MustCompile(`(?m)^[ ●•]*done\W*$`)

// doesWhatIsTyped types a task for the agent on the screen at which somebody sits,
// and waits until its shell has done it.
func (u *user) doesWhatIsTyped(at *seat) {
	u.t.Helper()
	untilTyped(u.t, "model: run printf 'typed in %s\\n' $PWD | tee /workspace/typed.txt", at.types, u.screen)
	if screen := u.screen(); containsAny(screen, dialogs) {
		u.t.Errorf("it asks something:\n%s", screen)
	}
	at.types("\r")
	eventually(u.t, 60*time.Second, func() string {
		if r := u.run("exec", u.name, "--", "cat", "/workspace/typed.txt"); r.stdout != "typed in /workspace\n" {
			return r.String() + "\nthe screen:\n" + u.screen()
		}
		return ""
	})
}

// untilTyped types a line for an agent until its screen shows the end of it. Codex may
// throw away what it is given in its first moments at its prompt; whoever sits there sees
// that nothing has come and types again, on an empty line.
func untilTyped(t *testing.T, line string, types func(string), screen func() string) {
	t.Helper()
	end := line[max(0, len(line)-12):] // a long line is wrapped
	var typed time.Time
	eventually(t, 2*time.Minute, func() string {
		shown := screen()
		if contains(shown, end) {
			return ""
		}
		if time.Since(typed) > 20*time.Second {
			types("\x15" + line) // Ctrl-U empties the line; claude offers again what was interrupted
			typed = time.Now()
		}
		return "the screen does not show what is typed:\n" + shown
	})
}

// Every agent must come up on fresh volumes at its prompt, without a dialog, at
// the size of the terminal that is attached over ssh; do a typed task with its
// shell; and be on the same screen for the next one after the client was killed.
func TestEveryAgentInteractive(t *testing.T) {
	for agent, prompt := range map[string]string{"claude": "❯", "codex": "› Ask Codex", "pi": "(auto)", "opencode": "Ask anything"} {
		t.Run(agent, func(t *testing.T) {
			u := newUser(t)
			flags := u.withModel(agent)
			switch agent {
			case "claude":
				// Auto mode asks its makers' server what is safe, which a model behind a
				// gateway has not got.
				u.write("config/"+u.name+".config/claude/settings.json", `{"permissions":{"defaultMode":"bypassPermissions"}}`)
			case "codex":
				// It offers the successor of the model that the server speaks for.
				u.addLine("config/"+u.name+".config/codex/config.toml", "[notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"")
			}
			u.must(append([]string{"up", u.name, "--agent", agent}, flags...)...)

			first := u.sit(132, 43, nil, "attach", u.name)
			u.untilScreen(60*time.Second, prompt)
			eventually(t, 10*time.Second, func() string {
				if size := u.display("=main:agent", "#{pane_width}x#{pane_height}"); size != "132x42" {
					return "the pane is " + size
				}
				return ""
			})
			pane := u.display("=main:agent", "#{pane_pid}")
			u.doesWhatIsTyped(first)
			eventually(t, 60*time.Second, func() string {
				if screen := u.screen(); !theModelIsDone.MatchString(screen) {
					return "the screen does not show the end:\n" + screen
				}
				return ""
			})

			if err := first.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			first.ended(10 * time.Second) // and ssh with it
			second := u.sit(132, 43, nil, "attach", u.name)
			second.shows("printf 'typed in %s\\n' $PWD")
			eventually(t, 10*time.Second, func() string { // the first client goes, and the agent draws, in their own time
				if now := u.display("=main:agent", "#{pane_pid} #{pane_dead} #{session_attached}"); now != pane+" 0 1" {
					return "the pane's process was " + pane + ", now pid, dead and clients are " + now
				}
				if screen := u.screen(); !theModelIsDone.MatchString(screen) {
					return "it is another screen:\n" + screen
				}
				return ""
			})
		})
	}
}

// display is what tmux says of a target.
func (u *user) display(target, format string) string {
	u.t.Helper()
	return docker(u.t, "exec", u.container(), "tmux", "display-message", "-p", "-t", target, format)
}

func containsAny(text string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
