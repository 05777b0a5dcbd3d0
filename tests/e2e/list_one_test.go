package e2e

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// one is what "list NAME" says of the user's deployment.
func (u *user) one() map[string]any {
	u.t.Helper()
	r := u.must("list", u.name, "--json")
	var e struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil {
		u.t.Fatalf("%v: %s", err, r)
	}
	return e.Data
}

// list NAME must tell everything of a deployment: what list has, and its image's
// age, ports, mounts and services, and how session and repository are.
func TestListOne(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.services("services:\n  db:\n    image: IMAGE\n    pull_policy: never\n    init: true\n    entrypoint: [sleep, '600']\n")
	u.must("up", u.name)
	u.must("exec", u.name, "--", "sh", "-ec", `git init -q --bare /tmp/remote.git; git init -q; git config user.email a@example; git config user.name a
		git remote add origin https://user:secret@host.example/a.git; git config remote.origin.pushurl /tmp/remote.git
		git commit -q --allow-empty -m one; git push -q origin main; git update-ref refs/remotes/origin/main HEAD
		git commit -q --allow-empty -m two; echo x >new`)
	head := strings.TrimSpace(u.must("exec", u.name, "--", "git", "rev-parse", "HEAD").stdout)

	one := u.one()
	listed := u.listedAs(u.name)
	for key, want := range listed {
		if diff := cmp.Diff(want, one[key]); diff != "" {
			t.Errorf("list has another %s: %s", key, diff)
		}
	}
	for key, want := range map[string]any{
		"ports":      []any{map[string]any{"address": "127.0.0.1", "port": u.sshPort(), "container_port": "2222/tcp"}},
		"services":   []any{map[string]any{"container": u.container() + ".db", "state": "running"}},
		"repository": map[string]any{"state": "ok", "branch": "main", "head": head, "remote": "https://host.example/a.git", "uncommitted": 1.0, "unpushed": 1.0},
		"session": map[string]any{"state": "alive", "windows": []any{
			map[string]any{"index": 0.0, "name": "agent", "command": "claude", "active": true},
			map[string]any{"index": 1.0, "name": "shell", "command": "bash"},
		}},
	} {
		if diff := cmp.Diff(want, one[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	built, err := time.Parse(time.RFC3339, one["image_built"].(string))
	if label := docker(t, "inspect", "--format", `{{index .Config.Labels "agent-container.built"}}`, u.inspect("{{.Image}}")); err != nil || built.Format(time.RFC3339) != label {
		t.Errorf("the image was built %v, says its label %s: %v", one["image_built"], label, err)
	}
	if mounts, _ := json.Marshal(one["mounts"]); !contains(string(mounts), `{"path":"/workspace","source":"`+u.container()+`-workspace","type":"volume"}`) {
		t.Errorf("the mounts are %s", mounts)
	}
	text := u.must("list", u.name).stdout
	for _, want := range []string{"session: alive, 0 attached", "window: 0 agent, claude (active)", "repository: main at " + head[:12] + ", 1 uncommitted, 1 unpushed, remote https://host.example/a.git", "service: " + u.container() + ".db running"} {
		if !contains("\n"+text, "\n"+want+"\n") {
			t.Errorf("no line %q in:\n%s", want, text)
		}
	}

	// Who is attached is counted.
	socket := u.path("tmux")
	attach := exec.Command("tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", program, "attach", u.name)
	attach.Env = append(append(outerEnvironment(), u.env...), "TERM=xterm-256color")
	if out, err := attach.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", socket, "kill-server").Run() })
	eventually(t, 30*time.Second, func() string {
		if s, _ := u.one()["session"].(map[string]any); s["clients"] != 1.0 {
			return "nobody is attached"
		}
		return ""
	})

	// A session that has ended, and a container that has.
	u.must("exec", u.name, "--", "pkill", "-KILL", "tmux")
	r := u.must("list", u.name)
	if !contains(r.stdout, "\nsession: ended\n") || !contains(r.stderr, "hint: begin it anew: agent-container redeploy "+u.name) {
		t.Error(r)
	}
	u.must("stop", u.name)
	one = u.one()
	if one["session"] != nil || one["repository"] != nil || one["unseen"] != "the container is exited" || one["state"] != "exited" || one["ports"] == nil {
		t.Errorf("stopped, it is %v", one)
	}
	u.want(4, "list", u.name+"-x")
}

// An agent that stops tmux and blocks git must not hold up list for longer than
// it is told to wait, nor hide what else is known.
func TestListOneIsBounded(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	u.must("exec", u.name, "--", "sh", "-ec", "pkill -STOP tmux; git init -q; rm .git/HEAD; mkfifo .git/HEAD")
	started := time.Now()
	one := u.one()
	if took := time.Since(started); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	session, _ := one["session"].(map[string]any)
	repository, _ := one["repository"].(map[string]any)
	if one["state"] != "running" || session["state"] != "unreadable" || repository["state"] != "unreadable" {
		t.Errorf("it is %v", one)
	}
	u.must("exec", u.name, "--", "pkill", "-CONT", "tmux")
}
