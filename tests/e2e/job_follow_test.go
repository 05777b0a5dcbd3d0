package e2e

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A detached up must return while the job runs, and say how to follow it.
func TestDetachedUpReturnsAtReady(t *testing.T) {
	u := newUser(t)
	u.withStub()
	r := u.job(0, untilGo)
	if !contains(r.stdout, "agent-container logs -f "+u.name) {
		t.Errorf("it does not say how to follow: %s", r)
	}
	if state := u.inspect("{{.State.Status}}"); state != "running" {
		t.Errorf("the container is %s when up returns", state)
	}
	u.waitLog("started")
	// Between the two lines, by the one clock of both.
	between := time.Now().UTC().Format(time.RFC3339Nano)
	follow := u.start("logs", "-f", u.name)
	follow.said("started")
	u.goOn()
	if end := follow.wait(30 * time.Second); end.code != 0 || end.stdout != "started\nover\n" {
		t.Errorf("logs -f: %s", end)
	}
	u.waitState("exited")
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{nil, "started\nover\n"},
		{[]string{"--tail", "1"}, "over\n"},
		{[]string{"--since", between}, "over\n"},
		{[]string{"--since", "1h"}, "started\nover\n"},
		{[]string{"-f"}, "started\nover\n"},
	} {
		if r := u.must(append([]string{"logs", u.name}, c.flags...)...); r.stdout != c.want {
			t.Errorf("logs %v: want %q: %s", c.flags, c.want, r)
		}
	}
	wantEnd(t, u.record(), "finished", "exit", 0)
}

// A job that is over before anybody looked must be reported by a detached up
// with its end, and up itself has not failed. A followed one must give both of
// its streams, whole and apart.
func TestJobThatEndsAtOnce(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.job(0, "exit 3")
	eventually(t, 30*time.Second, func() string {
		if r := u.must("up", u.name); !contains(r.stdout, "failed, exit code 3, run "+u.record()["id"].(string)) {
			return r.String()
		}
		return ""
	})
	wantEnd(t, u.record(), "failed", "exit", 3)
	r := u.again(6, "seq 1 20000; echo to stderr >&2; exit 6", "--foreground")
	if lines := strings.Count(r.stdout, "\n"); lines != 20000 || !strings.HasSuffix(r.stdout, "\n20000\n") {
		t.Errorf("%d lines of 20000 came, the last %q", lines, r.stdout[max(0, len(r.stdout)-20):])
	}
	if !contains(r.stderr, "to stderr\n") || contains(r.stdout, "to stderr") {
		t.Errorf("the streams are not kept apart: %s", r)
	}

	// With --json stdout is the envelope's alone, and agrees with the exit code.
	r = u.again(42, "echo said by the agent; exit 42", "--foreground", "--json")
	var e struct {
		OK    bool
		Error struct{ Code string }
		Data  struct{ Run map[string]any }
	}
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || e.OK || e.Error.Code != "exit" || !contains(r.stderr, "said by the agent\n") {
		t.Fatalf("--foreground --json: %v: %s", err, r)
	}
	wantEnd(t, e.Data.Run, "failed", "exit", 42)
}

// A terminal that goes away must leave a followed job running, and say how to
// follow it.
func TestHangupLeavesAFollowedJobRunning(t *testing.T) {
	u := newUser(t)
	u.withStub()
	f := u.start("up", u.name, "--mode", "headless", "--foreground", "--task", "x", "--env", "STUB_RUN="+untilGo)
	f.said("started")
	f.signal(syscall.SIGHUP)
	r := f.wait(30 * time.Second)
	if r.code != 125 || !contains(r.stderr, "agent-container logs -f "+u.name) {
		t.Errorf("want exit 125 and how to follow it: %s", r)
	}
	u.leftRunning()
}

// A closed output must leave a followed job running as well.
func TestClosedOutputLeavesAFollowedJobRunning(t *testing.T) {
	u := newUser(t)
	u.withStub()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f := u.startWith(nil, nil, write, "up", u.name, "--mode", "headless", "--foreground", "--task", "x",
		"--env", "STUB_RUN=until [ -e /workspace/go ]; do echo started; sleep 0.1; done; rm /workspace/go; echo over")
	write.Close()
	if _, err := io.ReadFull(read, make([]byte, len("started"))); err != nil {
		t.Fatal(err, f.errOut.String())
	}
	read.Close()
	r := f.wait(30 * time.Second)
	if r.code != 125 || !contains(r.stderr, "agent-container logs -f "+u.name) {
		t.Errorf("want exit 125 and how to follow it: %s", r)
	}
	u.leftRunning()
}

// Output that cannot be passed on must not end as the agent's own success.
func TestLostOutputIsNotSuccess(t *testing.T) {
	u := newUser(t)
	u.withStub()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	f := u.startWith(nil, nil, full, "up", u.name, "--mode", "headless", "--foreground", "--task", "x", "--env", "STUB_RUN=echo answer")
	// A container that has not ended a moment later is left alone.
	if r := f.wait(60 * time.Second); r.code != 125 || !contains(r.stderr, "could not be passed on") && !contains(r.stderr, u.name+" goes on without us") {
		t.Errorf("want exit 125 and why: %s", r)
	}
	u.waitState("exited")
	wantEnd(t, u.record(), "finished", "exit", 0)
}

// leftRunning checks that the job runs, was not told to stop, and ends well.
func (u *user) leftRunning() {
	u.t.Helper()
	if state := u.inspect("{{.State.Status}}"); state != "running" {
		u.t.Fatalf("the container is %s", state)
	}
	if record := u.record(); record["ended_at"] != nil {
		u.t.Errorf("the record has an end: %v", record)
	}
	u.goOn()
	u.waitState("exited")
	wantEnd(u.t, u.record(), "finished", "exit", 0)
}
