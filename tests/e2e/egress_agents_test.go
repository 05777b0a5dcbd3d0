package e2e

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// modelAlone is strict egress to the scripted model server, which stays outside,
// and to nothing else.
func (u *user) modelAlone() []string {
	u.write("config/settings.yaml", "egress:\n  outside: [model]\n")
	return []string{"--egress", "strict", "--egress-allow", "service:model:8080"}
}

// refusal is a row of what was refused.
type refusal struct {
	Name, Address, Stage string
	Port, Count          int
	Advised              bool
}

// refusals is what a record, or "egress denied", holds of what was refused.
type refusals struct {
	Watched     bool
	Enforcement string
	Refusals    []refusal
}

// has reports whether a name was refused at a port, 0 for the question alone.
func (r refusals) has(name string, port int) bool {
	return slices.ContainsFunc(r.Refusals, func(d refusal) bool { return d.Name == name && d.Port == port })
}

// refusedIn decodes the egress field of a record.
func refusedIn(t *testing.T, record map[string]any) (r refusals) {
	t.Helper()
	text, err := json.Marshal(record["egress"])
	if err != nil || json.Unmarshal(text, &r) != nil {
		t.Fatalf("egress of the record: %s, %v", text, err)
	}
	return r
}

// Real agents must do a job with nothing but their model permitted, and the record
// of it say that somebody watched; what they reach for on top is theirs to try.
func TestAgentsWorkWithTheirModelAlone(t *testing.T) {
	for _, agent := range []string{"claude", "codex"} {
		t.Run(agent, func(t *testing.T) {
			u := newUser(t)
			task := "model: run echo from behind > /workspace/made.txt; curl -sS --max-time 5 http://witness.invalid:8000/ || echo refused >> /workspace/made.txt\n" +
				"model: say it is written"
			flags := append(u.withModel(agent), u.modelAlone()...)
			r := u.must(append([]string{"up", u.name, "--agent", agent, "--mode", "headless", "--foreground", "--task", task}, flags...)...)
			if !contains(r.stdout, "it is written") {
				t.Errorf("the agent's answer is not on stdout: %s", r)
			}
			record := u.record()
			wantEnd(t, record, "finished", "exit", 0)
			refused := refusedIn(t, record)
			if !refused.Watched || refused.Enforcement != "strict" || !refused.has("witness.invalid", 0) {
				t.Errorf("the record's egress: %+v", refused)
			}
			for _, d := range refused.Refusals {
				if d.Name == "model" || d.Advised {
					t.Errorf("refused: %+v", d)
				}
				t.Logf("%s was refused: %+v", agent, d)
			}
			u.must("redeploy", u.name, "--mode", "idle")
			if got := u.inside("cat", "/workspace/made.txt"); got != "from behind\nrefused" {
				t.Errorf("it made %q", got)
			}
		})
	}
}

// A session of a real agent behind its gateway must come to its prompt, over ssh
// to the gateway's port, and do what is typed.
func TestAgentInteractiveBehindItsGateway(t *testing.T) {
	u := newUser(t)
	flags := append(u.withModel("claude"), u.modelAlone()...)
	u.write("config/"+u.name+".config/claude/settings.json", `{"permissions":{"defaultMode":"bypassPermissions"}}`)
	u.must(append([]string{"up", u.name, "--agent", "claude"}, flags...)...)
	first := u.sit(132, 43, nil, "attach", u.name)
	u.untilScreen(60*time.Second, "❯")
	u.doesWhatIsTyped(first)
}
