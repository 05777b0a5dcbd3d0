package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// An agent that leaves files without end where the host reads must not hold up
// any verb, least of all the removal, and its real record must still come in.
func TestEndlessFilesHoldNothingUp(t *testing.T) {
	u := newUser(t)
	u.withStub()
	// The largest file that this file system takes; exit 1, so that the status is
	// looked at too.
	endless := "for f in /var/lib/agent-container/runs/zz.json /var/lib/agent-container/runs/zzz /run/agent-container/status /run/agent-container-secrets/environment; do " +
		"rm -f $f; truncate -s 8T $f; done; exit 1"
	bounded(t, commandTime, func() { u.job(1, endless, "--foreground") })
	if record := u.record(); record["outcome"] != "failed" || record["exit_code"] != 1.0 {
		t.Errorf("record: %v", record)
	}
	for _, args := range [][]string{{"up", u.name}, {"logs", u.name}, {"runs", "list", u.name}, {"stop", u.name}, {"redeploy", u.name, "--mode", "idle"}, {"down", u.name, "--purge", "--yes"}} {
		bounded(t, commandTime, func() {
			if r := u.run(args...); r.code != 0 && args[0] != "redeploy" { // its environment is spoiled
				t.Error(r)
			}
		})
	}
}

// A record is data from a container: what it says must never steer a terminal,
// and another run's must never pass for this one's.
func TestRecordsAreNotTrusted(t *testing.T) {
	u := newUser(t)
	u.withStub()
	r := u.job(0, `sed -i 's/"deployment": ".*"/"deployment": "\\u009b31mother"/; s/"outcome": ""/"outcome": "\\u001b]0;x\\u0007"/' /var/lib/agent-container/runs/*.json`)
	if !contains(r.stdout, "exit code 0") && r.code != 0 {
		t.Error(r)
	}
	for _, args := range [][]string{{"up", u.name}, {"up", u.name, "--json"}, {"runs", "list", u.name}, {"list"}} {
		r := u.run(args...)
		if i := strings.IndexFunc(r.stdout+r.stderr, func(c rune) bool { return c < 0x20 && c != '\n' || c >= 0x7f && c < 0xa0 }); i >= 0 {
			t.Errorf("a control character reaches the terminal: %q", r.stdout+r.stderr)
		}
	}
	u.again(0, "exit 0")
	r = u.must("redeploy", u.name, "--mode", "idle", "--json")
	var e struct {
		Data struct{ Run any }
	}
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || e.Data.Run != nil {
		t.Errorf("a former run is reported as this container's: %v %s", err, r)
	}
	files, err := filepath.Glob(u.path("data", "runs", "local", u.name, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no records: %v", err)
	}
	for _, f := range files {
		if content, err := os.ReadFile(f); err != nil || contains(string(content), "\x1b") || contains(string(content), "\u009b") {
			t.Errorf("%s: %v %q", f, err, content)
		}
	}
}

// bounded fails the test when do takes longer than limit.
func bounded(t *testing.T, limit time.Duration, do func()) {
	t.Helper()
	started := time.Now()
	do()
	if took := time.Since(started); took > limit {
		t.Errorf("it took %s, at most %s", took, limit)
	}
}
