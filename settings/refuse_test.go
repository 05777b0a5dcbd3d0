package settings

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestLoadRefuses(t *testing.T) {
	// A file that is not wholly understood must be refused with its line, the reason and the nearest key, never treated as empty.
	for _, row := range []struct{ text, where, problem, hint string }{
		{"agnet: pi", ":1", `unknown key "agnet"`, `did you mean "agent"?`},
		{"agent: pi\n\nMode: idle", ":3", `unknown key "Mode"`, `did you mean "mode"?`},
		{"zebra: 1", ":1", `unknown key "zebra"`, "the keys are runtime, agent, "},
		{"limits:\n  memroy: 1g", ":2", `unknown key "limits.memroy"`, `did you mean "limits.memory"?`},
		{"<<: {agent: pi}", ":1", `unknown key "<<"`, "the keys are"},
		{"agent: pi\nagent: codex", ":2", `key "agent" is there twice`, ""},
		{"limits: {pids: 1}\nlimits: {pids: 2}", ":2", `key "limits" is there twice`, ""},
		{"limits:\n  pids: 1\n  pids: 2", ":3", `key "limits.pids" is there twice`, ""},
		{"limits: {pids: 1}\nlimits.pids: 2", ":2", `key "limits.pids" is there twice`, ""},
		{"agent: [pi]", ":1", "agent: takes one value: claude, codex", ""},
		{"agent: {name: pi}", ":1", "agent: takes one value", ""},
		{"agent:", ":1", "agent: takes one value", ""},
		{"agent: &a pi\nmode: *a", ":2", "mode: takes one value", ""},
		{"agent: emacs", ":1", `agent: --agent: unknown agent "emacs"`, ""},
		{"mode: headles", ":1", `mode: "headles" is not one of interactive, headless, idle; did you mean "headless"?`, ""},
		{"mode: 5", ":1", `mode: "5" is not one of`, ""},
		{"workspace: tmp", ":1", `workspace: "tmp" is not one of persistent, bind, ephemeral`, ""},
		{"runtime: podman", ":1", `runtime: "podman" is not one of docker`, ""},
		{"record_task: no", ":1", `record_task: "no" is not true or false`, ""},
		{`record_task: "true"`, ":1", `record_task: "true" is not true or false`, ""},
		{"record_task: 1", ":1", `record_task: "1" is not true or false`, ""},
		{"headless_restart: always", ":1", `"always" would start a finished job again, and every attempt is billed`, ""},
		{"headless_restart: unless-stopped", ":1", `"unless-stopped" would start a finished job again, and every attempt is billed`, ""},
		{"headless_restart: on-failure:0", ":1", `is not one of no, on-failure, on-failure:N`, ""},
		{"base_image: --pull", ":1", `"--pull" is not an image reference`, ""},
		{"base_image: a b", ":1", `"a b" is not an image reference`, ""},
		{"base_image: $X", ":1", `"$X" is not an image reference`, ""},
		{"ca_bundle: ca.pem", ":1", `"ca.pem" is not auto, none or an absolute path`, ""},
		{"ca_bundle: /a,b", ":1", `"/a,b" is not auto, none or an absolute path`, ""},
		{"subnet_pool: fd00::/64", ":1", "is not an IPv4 network", ""},
		{"limits: 5", ":1", "limits is not a mapping", ""},
		{"limits:", ":1", "limits is not a mapping", ""},
		{"limits: {memory: much}", ":1", `"much" is not an amount of memory`, ""},
		{"limits: {memory: 0}", ":1", `"0" is not an amount of memory`, ""},
		{"limits: {memory: -1g}", ":1", `"-1g" is not an amount of memory`, ""},
		{"limits: {cpus: .nan}", ":1", `".nan" is not a number of processors`, ""},
		{"limits: {cpus: NaN}", ":1", `"NaN" is not a number of processors`, ""},
		{"limits: {cpus: 0}", ":1", `"0" is not a number of processors`, ""},
		{"limits: {cpus: Inf}", ":1", `"Inf" is not a number of processors`, ""},
		{"limits: {pids: 0}", ":1", `"0" is not a number of processes`, ""},
		{"limits: {pids: 1.5}", ":1", `"1.5" is not a number of processes`, ""},
		{"agent", ":1", "is not a mapping of keys to values", ""},
		{"# x\n- agent", ":2", "is not a mapping of keys to values", ""},
		{"agent: pi\nmode: [", ":2", "not YAML: ", ""},
		{"agent: pi\n\tmode: idle", ":2", "not YAML: ", ""},
		{"agent: \x00", ":1", "not YAML: control characters are not allowed", ""},
		{"agent: \xff", ":1", "not YAML: ", ""},
		{"agent: pi\n---\nzebra: 1", ":2", "holds more than one document", ""},
		{"agent: pi\n---\nmode: [", ":3", "not YAML: ", ""},
	} {
		w := write(t, row.text, "")
		_, err := w.load(nil)
		if err == nil {
			t.Errorf("%q was accepted", row.text)
			continue
		}
		e := refusal(t, err)
		if e.Where != w.userFile()+row.where || !strings.Contains(e.Problem, row.problem) || !strings.HasPrefix(e.Hint, row.hint) {
			t.Errorf("%q: %s | %s | hint %q", row.text, strings.TrimPrefix(e.Where, w.config), e.Problem, e.Hint)
		}
		if row.hint == "" && e.Hint != "" || strings.TrimSpace(e.Problem) != e.Problem {
			t.Errorf("%q: hint %q, problem %q", row.text, e.Hint, e.Problem)
		}
	}
}

func TestEnvironmentRefuses(t *testing.T) {
	// A variable of the table must be checked as a file's value is, and be named.
	for name, value := range map[string]string{
		"AGENT_CONTAINER_AGENT": "emacs", "AGENT_CONTAINER_RECORD_TASK": "yes", "AGENT_CONTAINER_LIMITS_MEMORY": "x", "AGENT_CONTAINER_HEADLESS_RESTART": "always",
	} {
		w := write(t, "", "")
		_, err := w.load(map[string]string{name: value})
		if e := refusal(t, err); e.Where != name {
			t.Errorf("%s=%s: %v", name, value, e)
		}
	}
}

// unreadable makes things in place of a settings file that are no file to read.
var unreadable = map[string]struct {
	make    func(path string) error
	problem string
}{
	"fifo":      {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "not a regular file"},
	"directory": {func(p string) error { return os.Mkdir(p, 0o700) }, "not a regular file"},
	"device":    {func(p string) error { return os.Symlink("/dev/zero", p) }, "not a regular file"},
	"too large": {func(p string) error { return os.WriteFile(p, make([]byte, maxFile+1), 0o600) }, "larger than 1048576 bytes"},
	"loop":      {func(p string) error { return os.Symlink(p, p) }, "too many levels of symbolic links"},
}

func TestLoadUnreadable(t *testing.T) {
	// What is not a readable file of bounded size must be refused at once, without hanging and never as if it were absent.
	for about, row := range unreadable {
		for _, project := range []bool{false, true} {
			w := write(t, "", "")
			path := map[bool]string{false: w.userFile(), true: w.projectFile()}[project]
			must(t, row.make(path))
			_, err := w.load(nil)
			if err == nil {
				t.Errorf("%s: accepted", about)
				continue
			}
			if e := refusal(t, err); e.Where != path || !strings.Contains(e.Problem, row.problem) {
				t.Errorf("%s: %v", about, e)
			}
		}
	}
}

func TestLoadNoPermission(t *testing.T) {
	// A settings file that may not be read must be refused, never treated as absent.
	if os.Getuid() == 0 {
		t.Skip("root reads a file of any mode: nothing to test as uid 0")
	}
	w := write(t, "agent: pi\n", "")
	must(t, os.Chmod(w.userFile(), 0))
	_, err := w.load(nil)
	if e := refusal(t, err); e.Where != w.userFile() || !strings.Contains(e.Problem, "permission denied") {
		t.Errorf("%v", e)
	}
}

func TestLoadBelowAFile(t *testing.T) {
	// A configuration directory that is a file must be refused, never treated as empty.
	w := write(t, "agent: pi\n", "")
	w.config = w.userFile()
	_, err := w.load(nil)
	if e := refusal(t, err); e.Where != w.userFile() {
		t.Errorf("%v", e)
	}
}

func TestLoadLargest(t *testing.T) {
	// A file of exactly the largest size must be read, links followed.
	w := write(t, "", "")
	text := "agent: pi\n#" + strings.Repeat("x", maxFile-11)
	other := filepath.Join(w.config, "other")
	must(t, os.WriteFile(other, []byte(text), 0o600))
	must(t, os.Symlink(other, w.userFile()))
	s, err := w.load(nil)
	must(t, err)
	if len(text) != maxFile || s.Get("agent").Text != "pi" {
		t.Errorf("%d bytes: agent %q", len(text), s.Get("agent").Text)
	}
}

func FuzzSettings(f *testing.F) {
	// Arbitrary bytes, as the user's file or a project's, must load or be refused as an *Error with one printable line, and never panic.
	for _, s := range []string{"agent: pi\n", "limits:\n  pids: 5\n", "- a", "a: &a [*a]", "? : :", "\xff\xfe", "agent: !!binary aa", "{", "limits: {<<: *x}", "%YAML 1.1\n---\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, project := range []bool{false, true} {
			w := write(t, "", "")
			must(t, os.WriteFile(map[bool]string{false: w.userFile(), true: w.projectFile()}[project], content, 0o600))
			s, err := w.load(nil)
			if err == nil {
				for _, k := range Keys {
					if v := s.Get(k.Name); v.Text != k.Default && k.checkValue(v.Text) != nil {
						t.Errorf("%s = %q was accepted", k.Name, v.Text)
					}
				}
				continue
			}
			if e := refusal(t, err); strings.ContainsFunc(e.Problem+e.Hint, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
				t.Errorf("control character in %q, hint %q", e.Problem, e.Hint)
			}
		}
	})
}
