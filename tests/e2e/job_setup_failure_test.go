package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// breakSeed makes the seed phase fail: a directory is where its file should be.
func (u *user) breakSeed() {
	u.t.Helper()
	u.must("up", u.name, "--mode", "idle")
	u.must("exec", u.name, "--", "sh", "-c", "rm ~/.claude/.claude.json && mkdir ~/.claude/.claude.json")
}

// wantSeedFailure checks that a result names the phase that failed and why.
func wantSeedFailure(t *testing.T, r result) {
	t.Helper()
	if !contains(r.stderr, "phase seed: ") || !contains(r.stderr, ".claude.json: is a directory") {
		t.Errorf("phase and reason are not named: %s", r)
	}
	wantHint(t, r, "agent-container redeploy")
}

// A job whose set-up fails must end with 1, once, without running the agent,
// and every report must name the phase and the reason.
func TestSetUpFailureOfAJob(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.breakSeed()
	wantSeedFailure(t, u.again(1, "exit 0"))
	if state := u.inspect("{{.State.Status}} {{.State.ExitCode}} {{.RestartCount}}"); state != "exited 1 0" {
		t.Errorf("the container is %s, want exited 1 0", state)
	}
	record := u.record()
	wantEnd(t, record, "failed", "set-up", 1)
	if notes, _ := json.Marshal(record["notes"]); !contains(string(notes), "seed failed: ") || !contains(string(notes), "is a directory") {
		t.Errorf("the record does not say what failed: %v", record)
	}
	if _, ran := u.file("/home/agent/.claude/stub-argv"); ran {
		t.Error("the agent ran after a failed set-up")
	}
	same := u.unchanged()
	// 125, not the container's 1: the agent never ran.
	wantSeedFailure(t, u.want(125, "up", u.name, "--foreground"))
	same()

	wantSeedFailure(t, u.again(125, "exit 0", "--foreground"))
	wantEnd(t, u.record(), "failed", "set-up", 1)
}

// A session whose set-up fails must stay up to be looked at, be listed as
// failed, and come up once the cause is gone and it is redeployed.
func TestSetUpFailureOfASession(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.breakSeed()
	wantSeedFailure(t, u.want(1, "redeploy", u.name, "--mode", "interactive"))
	if state := u.inspect("{{.State.Status}} {{.RestartCount}}"); state != "running 0" {
		t.Errorf("the container is %s, want running 0", state)
	}
	same := u.unchanged()
	eventually(t, 30*time.Second, func() string {
		d := u.listed()
		if detail, _ := d["detail"].(string); d["state"] != "failed" || !strings.HasPrefix(detail, "seed: ") || !contains(detail, "is a directory") {
			return "list does not say failed, seed and why: " + u.must("list").stdout
		}
		return ""
	})
	if text := u.must("list").stdout; !contains(text, "failed seed: ") {
		t.Errorf("list: %s", text)
	}
	wantSeedFailure(t, u.want(1, "up", u.name))
	same()
	u.must("exec", u.name, "--", "rmdir", "/home/agent/.claude/.claude.json")
	u.must("redeploy", u.name)
	eventually(t, 30*time.Second, func() string {
		if d := u.listed(); d["state"] != "running" {
			return "list: " + u.must("list").stdout
		}
		return ""
	})
}

// listed is what list says of the deployment.
func (u *user) listed() map[string]any {
	u.t.Helper()
	r := u.must("list", "--json")
	var e struct {
		Data struct{ Deployments []map[string]any }
	}
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil {
		u.t.Fatalf("%v: %s", err, r)
	}
	for _, d := range e.Data.Deployments {
		if d["name"] == u.name {
			return d
		}
	}
	u.t.Fatalf("%s is not listed: %s", u.name, r)
	return nil
}
