package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// listedAs is what list says of one deployment.
func (u *user) listedAs(name string) map[string]any {
	u.t.Helper()
	r := u.must("list", "--json")
	var e struct {
		OK   bool
		Data struct{ Deployments []map[string]any }
	}
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || !e.OK {
		u.t.Fatalf("%v: %s", err, r)
	}
	for _, d := range e.Data.Deployments {
		if d["name"] == name {
			return d
		}
	}
	return nil
}

// list must show every deployment with its agent, mode, workspace, port, state
// and exit code, in columns and in JSON, stopped ones too.
func TestListShowsStates(t *testing.T) {
	u := newUser(t)
	u.withStub()
	other := u.second()
	u.services("services:\n  db:\n    image: IMAGE\n    pull_policy: never\n    init: true\n    entrypoint: [sleep, '600']\n")
	u.must("up", u.name, "--mode", "idle", "--workspace", "ephemeral", "--ssh")
	u.want(7, "up", other, "--mode", "headless", "--foreground", "--task", "x", "--env", "STUB_RUN=exit 7")

	rows := func() map[string][]string {
		t.Helper()
		r := u.must("ls")
		found := map[string][]string{}
		for i, line := range strings.Split(strings.TrimSpace(r.stdout), "\n") {
			fields := strings.Fields(line)
			if i == 0 {
				if diff := cmp.Diff([]string{"NAME", "AGENT", "MODE", "WORKSPACE", "PORT", "STATE", "EXIT", "CREATED"}, fields); diff != "" {
					t.Error(diff)
				}
			}
			if len(fields) == 8 {
				if _, err := time.Parse(time.RFC3339, fields[7]); err == nil {
					found[fields[0]] = fields[1:7]
				}
			}
		}
		return found
	}
	all := rows()
	for name, want := range map[string][]string{
		u.name: {"claude", "idle", "ephemeral", u.sshPort(), "running", "-"},
		other:  {"claude", "headless", "persistent", "-", "exited", "7"},
	} {
		if diff := cmp.Diff(want, all[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if all[u.name+".db"] != nil {
		t.Error("a service is listed as a deployment")
	}
	one := u.listedAs(u.name)
	for key, want := range map[string]any{
		"agent": "claude", "mode": "idle", "workspace": "ephemeral", "state": "running", "host": "local", "runtime": "docker",
		"container": u.container(), "image": u.inspect("{{.Config.Image}}"), "exit_code": nil,
		"services": []any{map[string]any{"container": u.container() + ".db", "state": "running"}},
	} {
		if diff := cmp.Diff(want, one[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	if two := u.listedAs(other); two["exit_code"] != 7.0 || two["state"] != "exited" {
		t.Errorf("the job is listed as %v", two)
	}
	u.must("stop", u.name)
	if one := u.listedAs(u.name); one["state"] != "exited" || one["exit_code"] == nil {
		t.Errorf("the stopped one is listed as %v", one)
	}
	if now := rows()[u.name]; len(now) < 4 || now[3] != u.sshPort() {
		t.Errorf("the stopped one, bound to port %s, is listed as %q", u.sshPort(), now)
	}
}

// A set-up that failed must be in list, although the container runs.
func TestListShowsAFailedSetUp(t *testing.T) {
	u := newUser(t)
	u.withStub()
	// A directory where the configuration has a file: the set-up cannot lay it.
	u.must("up", u.name, "--mode", "idle")
	u.must("exec", u.name, "--", "mkdir", "-p", "/home/agent/.claude/settings.json/d")
	u.write("config/"+u.name+".config/claude/settings.json", "{}")
	u.want(1, "redeploy", u.name)
	eventually(t, 15*time.Second, func() string {
		one := u.listedAs(u.name)
		if detail, _ := one["detail"].(string); one["state"] != "failed" || !strings.HasPrefix(detail, "config: ") {
			raw, _ := json.Marshal(one)
			return string(raw)
		}
		return ""
	})
	if state := u.inspect("{{.State.Status}} {{.RestartCount}}"); state != "running 0" {
		t.Errorf("the container is %s", state)
	}
	// What was wrong is mended, and a redeploy recovers.
	u.must("exec", u.name, "--", "rm", "-r", "/home/agent/.claude/settings.json")
	u.must("redeploy", u.name)
	if one := u.listedAs(u.name); one["state"] != "running" {
		t.Errorf("after the redeploy it is listed as %v", one)
	}
}

// A container of ours whose spec cannot be read must not hide the others: list
// shows it with the problem, and down removes it.
func TestListWithAnUnreadableSpec(t *testing.T) {
	for kind, label := range map[string]string{"nonsense": "}{", "a later version's": `{"name":"x","a_later_field":1}`, "empty": ""} {
		t.Run(kind, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			docker(t, "create", "--name", u.container(), "--network", "none", "--entrypoint", "true",
				"--label", "agent-container.name="+u.name, "--label", "agent-container.version=v99", "--label", "agent-container.spec="+label, u.built()[0])
			one := u.listedAs(u.name)
			if problem, _ := one["problem"].(string); !contains(problem, "spec label") {
				t.Errorf("it is listed as %v", one)
			}
			if r := u.must("list"); !contains(r.stdout, u.name) {
				t.Errorf("it is not in the table: %s", r)
			}
			// Acting on half a spec could drop a limit: refused, with the way out.
			if r := u.want(1, "start", u.name); !contains(r.stderr, "agent-container down "+u.name) {
				t.Errorf("no way out is named: %s", r)
			}
			u.must("stop", u.name)
			u.must("down", u.name, "--yes")
			if r := dockerTry(t, "inspect", u.container()); r.code == 0 {
				t.Error("down left it")
			}
		})
	}
}

// context must say of every setting which file and line, variable or default it
// comes from, and which of two counts.
func TestContextOrigins(t *testing.T) {
	u := newUser(t)
	user := u.write("config/settings.yaml", "agent: codex\nworkspace: ephemeral\nlimits:\n  memory: 2g\n  pids: 500\n")
	project := u.write("project/.agent-container/settings.yaml", "mode: idle\nworkspace: persistent\nlimits:\n  memory: 1g\n  pids: 900\n")
	r := u.runWith(nil, []string{"AGENT_CONTAINER_AGENT=pi"}, "context", "--json")
	var e struct {
		Data struct {
			Runtime     map[string]string
			Settings    []struct{ Key, Value, Origin string }
			Project     string
			Directories map[string]string
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || r.code != 0 {
		t.Fatalf("%v: %s", err, r)
	}
	got := map[string][2]string{}
	for _, s := range e.Data.Settings {
		got[s.Key] = [2]string{s.Value, s.Origin}
	}
	for key, want := range map[string][2]string{
		"agent":         {"pi", "environment AGENT_CONTAINER_AGENT"},
		"mode":          {"idle", "project " + project + ":1"},
		"workspace":     {"persistent", "project " + project + ":2"},
		"limits.memory": {"1g", "project " + project + ":4"},
		"limits.pids":   {"500", "user " + user + ":5"}, // a project may only narrow
		"limits.cpus":   {"", "default"},
		"ca_bundle":     {"auto", "default"},
	} {
		if got[key] != want {
			t.Errorf("%s: %v, want %v", key, got[key], want)
		}
	}
	if e.Data.Runtime["name"] != "docker" || e.Data.Runtime["origin"] != "detected" || e.Data.Project != u.path("project") ||
		e.Data.Directories["config"] != u.path("config") || e.Data.Directories["state"] != u.path("state") || e.Data.Directories["data"] != u.path("data") {
		t.Errorf("the places are %+v", e.Data)
	}
	text := u.must("context").stdout
	if want := "mode: idle (project " + project + ":1)\n"; !contains(text, want) {
		t.Errorf("no line %q in: %s", want, text)
	}
	// And what it says is what up does.
	if model := u.must("up", u.name, "--dry-run", "--agent", "claude").stdout; !contains(model, "AGENT_CONTAINER_MODE: idle") || !contains(model, "1073741824") || !contains(model, "pids_limit: 500") {
		t.Errorf("up would not do what context says: %s", model)
	}
}
