package spec

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAgentTable(t *testing.T) {
	// Every row must be complete: headless and interactive argv start the executable, state and configuration are kept below the home.
	for _, a := range Agents {
		if a.Name == "" || a.Title == "" || ValidateName(a.Name) != nil {
			t.Errorf("agent %q %q: no usable name or title", a.Name, a.Title)
		}
		if len(a.Packages) == 0 || len(a.Keys) == 0 {
			t.Errorf("%s: packages %v, keys %v", a.Name, a.Packages, a.Keys)
		}
		for _, argv := range [][]string{a.Headless, a.Interactive} {
			if len(argv) == 0 || argv[0] != a.Executable || path.Base(a.Executable) != a.Executable {
				t.Errorf("%s: argv %v does not start %q", a.Name, argv, a.Executable)
			}
		}
		if !a.TakesTask && len(a.TaskArgs) > 0 {
			t.Errorf("%s: takes no task but has arguments before it", a.Name)
		}
		checkState(t, a)
	}
}

// checkState requires that what a keeps lies on volumes below the home.
func checkState(t *testing.T, a Agent) {
	t.Helper()
	config, kept := path.Join(ContainerHome, a.ConfigDir), false
	for _, v := range a.State {
		if !below(v.Path, ContainerHome) || path.Clean(v.Path) != v.Path {
			t.Errorf("%s: state %s is not below %s", a.Name, v.Path, ContainerHome)
		}
		kept = kept || config == v.Path || below(config, v.Path)
	}
	if !kept {
		t.Errorf("%s: configuration %s is on none of its volumes %v", a.Name, config, a.State)
	}
	for name, value := range a.Environment {
		if strings.HasPrefix(name, EnvPrefix) || value == "" {
			t.Errorf("%s: environment %s=%q", a.Name, name, value)
		}
	}
}

func below(p, dir string) bool { return strings.HasPrefix(p, dir+"/") }

func TestAgentTableUnique(t *testing.T) {
	// No two agents may share a name, an executable, a volume or a mount point.
	var seen []string
	once := func(kind, value string) {
		if slices.Contains(seen, kind+value) {
			t.Errorf("%s %q is there twice", kind, value)
		}
		seen = append(seen, kind+value)
	}
	for _, a := range Agents {
		once("name", a.Name)
		once("executable", a.Executable)
	}
	for _, v := range Volumes(Persistent) {
		once("suffix", v.Suffix)
		once("path", v.Path)
	}
}

func TestHeadlessArgv(t *testing.T) {
	// The headless argv must be the one that was tried, without a place for the task, which is always on stdin.
	want := map[string]string{
		"claude":   "claude --permission-mode bypassPermissions -p",
		"codex":    "codex exec --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check -",
		"pi":       "pi -p",
		"opencode": "opencode run --auto",
	}
	got := map[string]string{}
	for _, a := range Agents {
		got[a.Name] = strings.Join(a.Headless, " ")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestLookupAgent(t *testing.T) {
	// An agent must be found by its exact name, and an unknown one refused with all names and the nearest.
	for _, name := range AgentNames() {
		if a, err := LookupAgent(name); err != nil || a.Name != name {
			t.Errorf("LookupAgent(%q) = %q, %v", name, a.Name, err)
		}
	}
	for typed, hint := range map[string]string{"Claude": `did you mean "claude"?`, "codx": `did you mean "codex"?`, "open-code": `did you mean "opencode"?`, "": "", "vim": ""} {
		_, err := LookupAgent(typed)
		e := asError(t, err)
		if e.Hint != hint || !strings.Contains(e.Problem, "claude, codex, pi, opencode") {
			t.Errorf("LookupAgent(%q): %v, hint %q, want %q", typed, e, e.Hint, hint)
		}
	}
}

func TestVolumes(t *testing.T) {
	// The volumes must be the same for every agent, and the workspace one only with a persistent workspace.
	common := []Volume{
		{"claude", "/home/agent/.claude"},
		{"codex", "/home/agent/.codex"},
		{"pi", "/home/agent/.pi"},
		{"opencode", "/home/agent/.config/opencode"},
		{"opencode-data", "/home/agent/.local/share/opencode"},
		{"shellenv", "/home/agent/.agent-env"},
		{"tmux", "/home/agent/.config/tmux"},
		{"ssh", "/home/agent/.ssh"},
		{"runs", "/var/lib/agent-container/runs"},
		{"secrets", "/run/agent-container-secrets"},
	}
	for w, want := range map[Workspace][]Volume{
		Persistent: append([]Volume{{"workspace", "/workspace"}}, common...),
		Bind:       common,
		Ephemeral:  common,
	} {
		if d := cmp.Diff(want, Volumes(w)); d != "" {
			t.Errorf("%s: %s", w, d)
		}
	}
}
