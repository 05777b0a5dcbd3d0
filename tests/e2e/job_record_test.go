package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A run's record must say what was asked, who did it, what changed in the
// repository and what the engine says of the end.
func TestRecordOfAJobInARepository(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	git := "cd /workspace && git config user.name e2e && git config user.email e2e@example.com && "
	start := strings.TrimSpace(u.must("exec", u.name, "--", "sh", "-c", "git init -q -b work /workspace && "+git+
		"echo 1 >old && echo 1 >edited && git add . && git commit -q -m begin && git rev-parse HEAD").stdout)
	if len(u.records()) != 0 {
		t.Errorf("an idle deployment has a record: %v", u.records())
	}
	before := time.Now().Add(-time.Second)
	u.again(0, "echo 2 >committed && git rm -q old && git add . && git commit -q -m one && git commit -q --allow-empty -m two && "+
		"echo 2 >>edited && echo 3 >'untracked é'", "--foreground")
	record := u.record()
	wantEnd(t, record, "finished", "exit", 0)
	for key, want := range map[string]any{
		"schema": "agent-container/run/v1", "deployment": u.name, "host": "local", "agent": "claude", "kind": "headless",
		"image": u.inspect("{{.Image}}"), "task": "do it", "task_bytes": 5.0, "task_sha256": digest("do it"),
	} {
		if record[key] != want {
			t.Errorf("%s is %v, want %v", key, record[key], want)
		}
	}
	started, ended := moment(t, record["started_at"]), moment(t, record["ended_at"])
	if started.Before(before) || ended.Before(started) || ended.After(time.Now().Add(time.Second)) {
		t.Errorf("it ran from %s to %s", started, ended)
	}
	engine, _ := record["engine"].(map[string]any)
	if engine["status"] != "exited" || engine["exit_code"] != 0.0 || engine["oom_killed"] != false ||
		moment(t, engine["finished_at"]).Before(moment(t, engine["started_at"])) {
		t.Errorf("engine: %v", engine)
	}
	repository, _ := record["repository"].(map[string]any)
	commits, _ := repository["commits"].([]any)
	if repository["state"] != "ok" || repository["branch"] != "work" || repository["start_commit"] != start ||
		len(commits) != 2 || commits[0] != repository["end_commit"] || commits[1] == start {
		t.Errorf("repository: %v, the start was %s", repository, start)
	}
	if want := []any{"committed", "edited", "old", "untracked é"}; !reflect.DeepEqual(repository["paths"], want) {
		t.Errorf("paths: %v, want %v", repository["paths"], want)
	}
	u.must("redeploy", u.name, "--mode", "idle")
	if end := strings.TrimSpace(u.must("exec", u.name, "--", "git", "-C", "/workspace", "rev-parse", "HEAD").stdout); end != repository["end_commit"] {
		t.Errorf("the end commit is %s, not %v", end, repository["end_commit"])
	}
}

func moment(t *testing.T, value any) time.Time {
	t.Helper()
	text, _ := value.(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Errorf("no time: %v", err)
	}
	return at
}

// A record must come to the host before its container is removed, be found by
// the beginning of its id, and outlive everything but wipe.
func TestRecordOutlivesItsDeployment(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.job(0, "until [ -e /workspace/go ]; do sleep 0.1; done; exit 8")
	u.goOn()
	u.waitState("exited")
	// Nobody has asked since it ended: redeploy and down must bring it.
	u.again(0, untilStopped)
	u.waitLog("started")
	u.must("down", u.name, "--yes")
	files, err := filepath.Glob(u.path("data", "runs", "local", u.name, "*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("records on the host after down: %v, %v", files, err)
	}
	records := u.records()
	wantEnd(t, records[0], "stopped", "engine-stop", 7)
	wantEnd(t, records[1], "failed", "exit", 8)
	id := records[1]["id"].(string)
	var shown map[string]any
	if r := u.must("runs", "show", id[:len(id)-2]); json.Unmarshal([]byte(r.stdout), &shown) != nil || !reflect.DeepEqual(shown, records[1]) {
		t.Errorf("runs show by the beginning of the id: %s", r)
	}
	u.want(4, "runs", "show", "20000101")
	u.want(4, "runs", "show", id[:4]) // not unique
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, info.Mode(), err)
		}
	}
	u.must("down", u.name, "--purge", "--yes")
	if left := docker(t, "volume", "ls", "--quiet", "--filter", "name="+u.container()+"-"); left != "" {
		t.Errorf("volumes after --purge: %s", left)
	}
	if after := u.records(); !reflect.DeepEqual(after, records) {
		t.Errorf("the records after --purge: %v, were %v", after, records)
	}
	u.must("wipe", u.name, "--yes")
	if after := u.records(); len(after) != 0 {
		t.Errorf("the records after wipe: %v", after)
	}
	u.want(4, "runs", "show", id)
}
