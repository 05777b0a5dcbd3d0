package settings

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agent-container/agent-container/spec"
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
		{"panes: {notify_command: notify -x}", ":1", "panes.notify_command: takes a list: a command and its arguments", ""},
		{"panes: {notify_command: []}", ":1", "panes.notify_command: takes a list", ""},
		{"panes: {notify_command: [sh, -c, 'a b']}", ":1", "a word of a command has no blank in it; put such a command into a script", ""},
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
	"dangling":  {func(p string) error { return os.Symlink(p+".gone", p) }, "a link to nothing"},
	"empty":     {func(p string) error { return os.WriteFile(p, nil, 0o600) }, "is empty"},
	"sparse":    {func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Truncate(p, 100<<20)) }, "larger than 1048576 bytes"},
	"zeros":     {func(p string) error { return os.WriteFile(p, make([]byte, 200), 0o600) }, "not YAML: control characters are not allowed"},
	"binary":    {func(p string) error { return os.WriteFile(p, []byte("\x7fELF\x02\x01\x01\x00"), 0o600) }, "not YAML: "},
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
			if e := refusal(t, err); strings.TrimSuffix(e.Where, ":1") != path || !strings.Contains(e.Problem, row.problem) || strings.Contains(e.Problem, path) {
				t.Errorf("%s: %v", about, e)
			}
		}
	}
}

func TestLoadCut(t *testing.T) {
	// A file that was cut at any byte must be refused with its line, or give only values that a whole one may have, each with its line.
	whole := "agent: codex\nmode: headless\nheadless_restart: on-failure:12\nrecord_task: false\nca_bundle: /etc/ca.pem\nlimits:\n  memory: 512m\n  timeout: 90m\n  pids: 2048\n"
	refused := 0
	for n := range len(whole) {
		w := write(t, whole[:n], "")
		if n == 0 {
			must(t, os.WriteFile(w.userFile(), nil, 0o600))
		}
		s, err := w.load(nil)
		if err != nil {
			refused++
			if e := refusal(t, err); !strings.HasPrefix(e.Where, w.userFile()) || e.Problem == "" {
				t.Errorf("%q: %v", whole[:n], e)
			}
		} else {
			for _, k := range Keys {
				v := s.Get(k.Name)
				if v.Origin != "default" && (k.checkValue(v.Text) != nil || !strings.HasPrefix(v.Origin, "user "+w.userFile()+":")) {
					t.Errorf("%q: %s is %q (%s)", whole[:n], k.Name, v.Text, v.Origin)
				}
			}
		}
		if now, err := os.ReadFile(w.userFile()); err != nil || string(now) != whole[:n] {
			t.Errorf("cut at %d: the file is %q now, %v", n, now, err)
		}
	}
	if refused < len(whole)/2 {
		t.Errorf("only %d of %d cuts were refused", refused, len(whole))
	}
}

func TestReadRegularLimit(t *testing.T) {
	// A file of exactly the limit must be read whole, one byte more be refused, and a missing one be told from a link to nothing.
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, []byte("12345"), 0o600))
	if b, err := ReadRegular(path, 5); err != nil || string(b) != "12345" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := ReadRegular(path, 4); err == nil || b != nil || !strings.Contains(err.Error(), path+": larger than 4 bytes") {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := ReadRegular(path+".gone", 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	must(t, os.Symlink(path+".gone", path+".link"))
	if _, err := ReadRegular(path+".link", 5); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("link to nothing: %v", err)
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
	for _, s := range []string{"agent: pi\n", "limits:\n  pids: 5\n", "- a", "a: &a [*a]", "? : :", "\xff\xfe", "agent: !!binary aa", "{", "limits: {<<: *x}", "%YAML 1.1\n---\n", "base_image: debian:13\n", "record_task: false\n", "workspace: bind\n", "limits: {timeout: 5m, memory: 1g}\n", "headless_restart: no\n",
		"egress: {allow: [a.test, '*.b.test:22', {provider: npm}, {service: db, port: 1}, {host: x.test, port: 2, private: true}], enforcement: advisory, outside: [db]}\n", "egress:\n  allow: []\n", "egress.enforcement: strict\n", "egress: {}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, project := range []bool{false, true} {
			w := write(t, "", "")
			path := map[bool]string{false: w.userFile(), true: w.projectFile()}[project]
			must(t, os.WriteFile(path, content, 0o600))
			s, err := w.load(nil)
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
				t.Fatalf("the file was changed: %v", err)
			}
			if err == nil {
				for _, k := range Keys {
					v := s.Get(k.Name)
					if v.Text != k.Default && k.checkValue(v.Text) != nil {
						t.Errorf("%s = %q was accepted", k.Name, v.Text)
					}
					if project && v.Origin != "default" && (k.project == never || k.project == narrows && !k.narrower(v.Text, k.Default)) {
						t.Errorf("a project set %s to %q", k.Name, v.Text)
					}
				}
				continue
			}
			e := refusal(t, err)
			if !strings.HasPrefix(e.Where, path) || e.Problem == "" || len(e.Error()) > len(path)+len(content)*4+1000 {
				t.Errorf("where %q, problem %q", e.Where, e.Problem)
			}
			if text := e.Error() + e.Hint; text != spec.Printable(text, len(text)) {
				t.Errorf("not printable: %q, hint %q", e, e.Hint)
			}
		}
	})
}
