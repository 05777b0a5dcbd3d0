package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree is a fresh directory with a user's configuration and a project.
type tree struct{ config, project string }

// write makes a tree; an empty text leaves the file out.
func write(t *testing.T, user, project string) tree {
	t.Helper()
	dir := t.TempDir()
	w := tree{filepath.Join(dir, "config"), filepath.Join(dir, "repo")}
	must(t, os.MkdirAll(w.config, 0o700))
	must(t, os.MkdirAll(filepath.Join(w.project, ProjectDir), 0o700))
	if user != "" {
		must(t, os.WriteFile(w.userFile(), []byte(user), 0o600))
	}
	if project != "" {
		must(t, os.WriteFile(w.projectFile(), []byte(project), 0o600))
	}
	return w
}

func (w tree) userFile() string    { return filepath.Join(w.config, FileName) }
func (w tree) projectFile() string { return filepath.Join(w.project, ProjectDir, FileName) }

func (w tree) load(env map[string]string) (*Settings, error) {
	return Load(w.config, w.project, func(name string) string { return env[name] })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// set returns the values that are not defaults, as "text (origin)", with the
// files called U and P.
func set(w tree, s *Settings) map[string]string {
	got := map[string]string{}
	short := strings.NewReplacer(w.userFile(), "U", w.projectFile(), "P")
	for _, name := range Names() {
		if v := s.Get(name); v.Origin != "default" {
			got[name] = v.Text + " (" + short.Replace(v.Origin) + ")"
		}
	}
	return got
}

func TestDefaults(t *testing.T) {
	// Without any file every key must have its documented default and say so.
	dir := t.TempDir()
	s, err := Load(filepath.Join(dir, "absent"), dir, func(string) string { return "" })
	must(t, err)
	want := map[string]string{
		"panes.notify_command": "", "runtime": "", "agent": "claude", "mode": "interactive", "workspace": "persistent", "headless_restart": "no", "record_task": "true",
		"base_image": "debian:trixie-slim", "ca_bundle": "auto", "ssh_bind": "127.0.0.1", "ssh_ports": "22000-22999", "subnet_pool": "10.213.0.0/16", "git.credentials": "github.com=GH_TOKEN", "limits.memory": "", "limits.cpus": "", "limits.pids": "2048",
		"limits.timeout": "", "limits.idle_timeout": "", "limits.start_timeout": "60s",
		"egress.enforcement": "", "egress.allow": "", "egress.outside": "",
	}
	got := map[string]string{}
	for _, name := range Names() {
		got[name] = s.Get(name).Text
		if s.Get(name).Origin != "default" {
			t.Errorf("%s: origin %q", name, s.Get(name).Origin)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLoad(t *testing.T) {
	// Each value must come from the strongest place that sets it, and name that place with its line.
	for _, row := range []struct {
		about, user, project string
		env                  map[string]string
		want                 map[string]string
	}{
		{"nothing", "", "", nil, map[string]string{}},
		{"comments only", "# a\n\n  # b\n", "#\n", nil, map[string]string{}},
		{"all of a user", "runtime: docker\nagent: pi\nmode: idle\nworkspace: bind\nheadless_restart: on-failure:3\nrecord_task: false\nbase_image: debian:13\n" +
			"ca_bundle: /etc/ca.pem\nsubnet_pool: 10.9.0.0/20\nlimits:\n  memory: 512m\n  cpus: 1.5\n  pids: 99\n", "", nil,
			map[string]string{
				"runtime": "docker (user U:1)", "agent": "pi (user U:2)", "mode": "idle (user U:3)", "workspace": "bind (user U:4)",
				"headless_restart": "on-failure:3 (user U:5)", "record_task": "false (user U:6)", "base_image": "debian:13 (user U:7)", "ca_bundle": "/etc/ca.pem (user U:8)",
				"subnet_pool": "10.9.0.0/20 (user U:9)", "limits.memory": "512m (user U:11)", "limits.cpus": "1.5 (user U:12)", "limits.pids": "99 (user U:13)",
			}},
		{"project over user", "agent: pi\nmode: idle\n", "\nagent: codex\n", nil, map[string]string{"agent": "codex (project P:2)", "mode": "idle (user U:2)"}},
		{"environment over both", "agent: pi\n", "agent: codex\n", map[string]string{"AGENT_CONTAINER_AGENT": "opencode"},
			map[string]string{"agent": "opencode (environment AGENT_CONTAINER_AGENT)"}},
		{"environment widens what a project narrowed", "limits: {pids: 50}\n", "limits: {pids: 20}\n", map[string]string{"AGENT_CONTAINER_LIMITS_PIDS": "70"},
			map[string]string{"limits.pids": "70 (environment AGENT_CONTAINER_LIMITS_PIDS)"}},
		{"empty variable counts as unset", "agent: pi\n", "", map[string]string{"AGENT_CONTAINER_AGENT": ""}, map[string]string{"agent": "pi (user U:1)"}},
		{"byte order mark, CRLF", "\ufeffagent: pi\r\nmode: idle\r\n", "", nil, map[string]string{"agent": "pi (user U:1)", "mode": "idle (user U:2)"}},
		{"a bare no is a word", "headless_restart: no\n", "", nil, map[string]string{"headless_restart": "no (user U:1)"}},
		{"quoted, flow", `{"agent": "pi", "limits": {"pids": "7"}}`, "", nil, map[string]string{"agent": "pi (user U:1)", "limits.pids": "7 (user U:1)"}},
		{"a command", "panes:\n  notify_command: [notify, --urgent, -x]\n", "", nil, map[string]string{"panes.notify_command": "notify --urgent -x (user U:2)"}},
		{"a command of the environment", "", "", map[string]string{"AGENT_CONTAINER_PANES_NOTIFY_COMMAND": "notify -x"},
			map[string]string{"panes.notify_command": "notify -x (environment AGENT_CONTAINER_PANES_NOTIFY_COMMAND)"}},
		{"capital boolean", "record_task: False\n", "", nil, map[string]string{"record_task": "false (user U:1)"}},
		{"dotted", "limits.pids: 7\n", "", nil, map[string]string{"limits.pids": "7 (user U:1)"}},
	} {
		w := write(t, row.user, row.project)
		s, err := w.load(row.env)
		if err != nil {
			t.Errorf("%s: %v", row.about, err)
			continue
		}
		if d := cmp.Diff(row.want, set(w, s)); d != "" {
			t.Errorf("%s: %s", row.about, d)
		}
	}
}

func TestNarrowing(t *testing.T) {
	// A project may make a limit tighter than the user's or the default, and must not loosen one.
	for _, row := range []struct{ user, project, key, want string }{
		{"limits: {pids: 50}", "limits: {pids: 20}", "limits.pids", "20 (project P:1)"},
		{"limits: {pids: 20}", "limits: {pids: 50}", "limits.pids", "20 (user U:1)"},
		{"limits: {pids: 100}", "limits: {pids: 20}", "limits.pids", "20 (project P:1)"}, // numbers, not texts
		{"", "limits: {pids: 20}", "limits.pids", "20 (project P:1)"},
		{"", "limits: {pids: 4096}", "limits.pids", ""},
		{"limits: {memory: 1g}", "limits: {memory: 900m}", "limits.memory", "900m (project P:1)"},
		{"limits: {memory: 900m}", "limits: {memory: 1g}", "limits.memory", "900m (user U:1)"},
		{"", "limits: {memory: 1g}", "limits.memory", "1g (project P:1)"},
		{"limits: {cpus: 2}", "limits: {cpus: 0.5}", "limits.cpus", "0.5 (project P:1)"},
		{"limits: {cpus: 0.5}", "limits: {cpus: 2}", "limits.cpus", "0.5 (user U:1)"},
		{"", "limits: {cpus: 2}", "limits.cpus", "2 (project P:1)"},
		{"headless_restart: on-failure", "headless_restart: on-failure:2", "headless_restart", "on-failure:2 (project P:1)"},
		{"headless_restart: on-failure:2", "headless_restart: on-failure", "headless_restart", "on-failure:2 (user U:1)"},
		{"headless_restart: on-failure:2", "headless_restart: no", "headless_restart", "no (project P:1)"},
		{"", "headless_restart: on-failure:2", "headless_restart", ""},
		{"", "record_task: false", "record_task", "false (project P:1)"},
		{"record_task: false", "record_task: true", "record_task", "false (user U:1)"},
	} {
		w := write(t, row.user, row.project)
		s, err := w.load(nil)
		must(t, err)
		if got := set(w, s)[row.key]; got != row.want {
			t.Errorf("user %q, project %q: %s is %q, want %q", row.user, row.project, row.key, got, row.want)
		}
	}
}

func TestProjectMayNot(t *testing.T) {
	// A project comes from a repository: what reaches the host or the build must be refused with its line and the way out, on any value.
	for _, text := range []string{
		"runtime: docker", "base_image: debian:trixie-slim", "ca_bundle: none", "subnet_pool: 10.213.0.0/16", "workspace: bind", `base_image: "x\e[2J"`,
	} {
		w := write(t, "", "agent: pi\n"+text+"\n")
		_, err := w.load(nil)
		e := refusal(t, err)
		key, _, _ := strings.Cut(text, ":")
		if e.Where != w.projectFile()+":2" || !strings.Contains(e.Problem, "a project may not set "+key) || e.Hint != "set it in the user's settings.yaml" {
			t.Errorf("%s: %v, hint %q", text, e, e.Hint)
		}
		if strings.ContainsAny(e.Problem, "\x1b") {
			t.Errorf("%s: a repository's control characters reach the terminal: %q", text, e.Problem)
		}
	}
}

func refusal(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %T %v, want *Error", err, err)
	}
	return e
}

func TestProjectDiscovery(t *testing.T) {
	// The project must be the nearest directory above the working directory that holds the folder; a file of that name is none.
	w := write(t, "", "agent: pi\n")
	deep := filepath.Join(w.project, "a", "b")
	must(t, os.MkdirAll(deep, 0o700))
	must(t, os.WriteFile(filepath.Join(deep, ProjectDir), nil, 0o600))
	inner := filepath.Join(w.project, "inner")
	must(t, os.MkdirAll(filepath.Join(inner, ProjectDir), 0o700))
	for cwd, want := range map[string]string{w.project: w.project, deep: w.project, inner: inner, w.config: ""} {
		s, err := Load(w.config, cwd, func(string) string { return "" })
		must(t, err)
		agent := map[bool]string{true: "pi", false: "claude"}[want == w.project]
		if s.Project != want || s.Get("agent").Text != agent {
			t.Errorf("from %s: project %q, agent %q; want %q, %q", cwd, s.Project, s.Get("agent").Text, want, agent)
		}
	}
}

func TestSet(t *testing.T) {
	// A flag must replace a value together with its origin.
	w := write(t, "agent: pi\n", "")
	s, err := w.load(nil)
	must(t, err)
	s.Set("agent", "codex", "flag")
	if got := s.Get("agent"); got != (Value{"codex", "flag"}) {
		t.Errorf("got %+v", got)
	}
}
