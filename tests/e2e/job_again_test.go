package e2e

import (
	"testing"
	"time"
)

// up on a running job must change nothing, report it, and refuse whatever
// differs, naming redeploy.
func TestUpOnARunningJob(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.job(0, untilGo, "--env", "K=one")
	same := u.unchanged()
	r := u.must("up", u.name)
	if !contains(r.stdout, "logs -f "+u.name) {
		t.Errorf("up does not say how to follow it: %s", r)
	}
	u.must("up", u.name, "--agent", "claude", "--mode", "headless", "--env", "K=one")
	for _, flags := range [][]string{
		{"--task", "another"}, {"--task", "do it"}, {"--agent", "pi"}, {"--mode", "idle"}, {"--workspace", "ephemeral"},
		{"--env", "K=other"}, {"--env", "MORE=1"}, {"--agent", "nobody"},
	} {
		r := u.want(2, append([]string{"up", u.name}, flags...)...)
		if flags[1] != "nobody" {
			wantHint(t, r, "agent-container redeploy "+u.name)
		}
	}
	same()

	// up --foreground follows it, from its beginning, to its code.
	f := u.start("up", u.name, "--foreground")
	f.said("started")
	u.goOn()
	end := f.wait(30 * time.Second)
	if end.code != 0 || end.stdout != "started\nover\n" {
		t.Errorf("up --foreground on a running job: %s", end)
	}
	same()
	wantEnd(t, u.record(), "finished", "exit", 0)
}

// A finished job must never be run again by up or start, only by redeploy with
// a new task, which keeps the environment and the records.
func TestFinishedJobIsNotRunAgain(t *testing.T) {
	u := newUser(t)
	u.withStub()
	wantHint(t, u.want(4, "redeploy", u.name, "--task", "a task"), "agent-container up "+u.name)
	u.job(0, `printf '%s|' "$KEPT" "$ADDED" >$HOME/.claude/env; exit 4`, "--env", "KEPT=a b", "--env", "ADDED=")
	u.waitState("exited")
	same := u.unchanged()
	wantHint(t, u.want(2, "start", u.name), "agent-container redeploy "+u.name+" --task")
	wantHint(t, u.want(2, "redeploy", u.name), "--task")
	wantHint(t, u.want(2, "up", u.name, "--task", "another"), "agent-container redeploy "+u.name)
	wantHint(t, u.want(2, "up", u.name, "--agent", "pi"), "agent-container redeploy "+u.name)
	wantHint(t, u.want(2, "up", u.name, "--env", "KEPT=other"), "agent-container redeploy "+u.name)
	r := u.must("up", u.name)
	if !contains(r.stdout, "exit code 4") || !contains(r.stdout, u.record()["id"].(string)) {
		t.Errorf("up does not report the end and the record: %s", r)
	}
	u.want(4, "up", u.name, "--foreground")
	same()

	old, oldContainer := u.record(), u.inspect("{{.Id}}")
	u.want(4, "redeploy", u.name, "--foreground", "--task", "another", "--env", "ADDED=new")
	if u.inspect("{{.Id}}") == oldContainer {
		t.Error("redeploy kept the container")
	}
	if got, _ := u.file("/home/agent/.claude/env"); got != "a b|new|" {
		t.Errorf("the environment after redeploy: %q", got)
	}
	if got, _ := u.file("/home/agent/.claude/stub-stdin"); got != "another" {
		t.Errorf("the task after redeploy: %q", got)
	}
	records := u.records()
	if len(records) != 2 || records[1]["id"] != old["id"] || records[1]["task"] != "do it" || records[0]["task"] != "another" {
		t.Errorf("the records after redeploy: %v", records)
	}
}
