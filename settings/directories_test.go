package settings

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindDirectories(t *testing.T) {
	// Our own variable must win over XDG's, XDG's over the home; an empty or a relative XDG one counts as unset.
	home := Directories{"/h/.config/agent-container", "/h/.local/state/agent-container", "/h/.local/share/agent-container"}
	for _, row := range []struct {
		about string
		env   map[string]string
		want  Directories
	}{
		{"home", map[string]string{"HOME": "/h"}, home},
		{"xdg", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_DATA_HOME": "/d"},
			Directories{"/c/agent-container", "/s/agent-container", "/d/agent-container"}},
		{"own", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/c", "AGENT_CONTAINER_CONFIG_DIR": "/oc", "AGENT_CONTAINER_STATE_DIR": "/os", "AGENT_CONTAINER_DATA_DIR": "/od"},
			Directories{"/oc", "/os", "/od"}},
		{"own without a home", map[string]string{"AGENT_CONTAINER_CONFIG_DIR": "/oc", "AGENT_CONTAINER_STATE_DIR": "/os", "AGENT_CONTAINER_DATA_DIR": "/od"},
			Directories{"/oc", "/os", "/od"}},
		{"empty", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "", "AGENT_CONTAINER_STATE_DIR": ""}, home},
		{"relative xdg", map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "c", "XDG_DATA_HOME": "./d"}, home},
	} {
		got, err := FindDirectories(func(name string) string { return row.env[name] })
		if err != nil {
			t.Errorf("%s: %v", row.about, err)
		}
		if d := cmp.Diff(row.want, got); d != "" {
			t.Errorf("%s: %s", row.about, d)
		}
	}
}

func TestFindDirectoriesRefuses(t *testing.T) {
	// A relative directory of ours must be refused by name, and so must a machine that names no directory at all.
	for _, own := range []string{"AGENT_CONTAINER_CONFIG_DIR", "AGENT_CONTAINER_STATE_DIR", "AGENT_CONTAINER_DATA_DIR"} {
		env := map[string]string{"HOME": "/h", own: "x"}
		_, err := FindDirectories(func(name string) string { return env[name] })
		if e := refusal(t, err); e.Where != own || e.Problem != "not an absolute path" {
			t.Errorf("%s: %v", own, e)
		}
	}
	for _, home := range []string{"", "relative"} {
		_, err := FindDirectories(func(name string) string { return map[string]string{"HOME": home}[name] })
		if err == nil || errors.As(err, new(*Error)) {
			t.Errorf("HOME=%q: %v", home, err)
		}
	}
}

func TestDirectoryPaths(t *testing.T) {
	// The files of a deployment must lie where docs/files.md says.
	d := Directories{"/c", "/s", "/d"}
	got := []string{d.Deployment("local", "web"), d.ServicesFile("web"), d.AgentConfig("web", "pi")}
	if diff := cmp.Diff([]string{"/s/local/web", "/c/web.services.yaml", "/c/web.config/pi"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMakePrivate(t *testing.T) {
	// A directory of ours must be made with its parents, for the user alone.
	dir := filepath.Join(t.TempDir(), "a", "b")
	must(t, MakePrivate(dir))
	must(t, MakePrivate(dir))
	for _, p := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Stat(p)
		must(t, err)
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %v", p, info.Mode())
		}
	}
}

func TestKeys(t *testing.T) {
	// Every key must be documented, have a valid default or none, and a variable of its own; what narrows must say how.
	seen := map[string]bool{}
	for _, k := range Keys {
		if k.Doc == "" || k.Values == "" || seen[k.Env()] {
			t.Errorf("%s: doc %q, values %q, env %s", k.Name, k.Doc, k.Values, k.Env())
		}
		seen[k.Env()] = true
		if k.Default != "" && k.checkValue(k.Default) != nil {
			t.Errorf("%s: default: %v", k.Name, k.checkValue(k.Default))
		}
		if (k.project == narrows) != (k.narrower != nil) {
			t.Errorf("%s: rule %v, but narrower given is %v", k.Name, k.project, k.narrower != nil)
		}
	}
	if k, ok := lookup("limits.memory"); !ok || k.Env() != "AGENT_CONTAINER_LIMITS_MEMORY" {
		t.Errorf("limits.memory: %v %s", ok, k.Env())
	}
}
