package tests

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// home is somebody with directories of their own, a project and a fake engine
// that has a running deployment "other" with two run records.
type home struct {
	t   *testing.T
	dir string
}

const (
	goodRun = "20260102T030405Z-0000000a"
	badRun  = "20260102T030405Z-0000000b"
)

func newHome(t *testing.T) *home {
	t.Helper()
	h := &home{t, t.TempDir()}
	for _, d := range []string{"config", "state", "data", "home", "docker"} {
		if err := os.Mkdir(h.path(d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.whole()
	if r := h.run("up", "other", "--mode", "idle"); r.code != 0 {
		t.Fatal(r)
	}
	return h
}

// twin is another home like h.
func (h *home) twin(t *testing.T) *home {
	t.Helper()
	twin := &home{t, t.TempDir()}
	if err := os.CopyFS(twin.dir, os.DirFS(h.dir)); err != nil {
		t.Fatal(err)
	}
	return twin
}

// whole writes the files that the user has.
func (h *home) whole() {
	h.t.Helper()
	for _, id := range []string{goodRun, badRun} {
		h.write("data/runs/local/other/"+id+".json", runRecord(id))
	}
	h.write("config/settings.yaml", "limits:\n  pids: 77\n")
	if err := os.MkdirAll(h.path("project/.agent-container"), 0o700); err != nil {
		h.t.Fatal(err)
	}
}

// runRecord is a record as it lies on the host.
func runRecord(id string) string {
	return `{
  "schema": "agent-container/run/v1", "id": "` + id + `", "deployment": "other", "host": "local", "agent": "claude", "kind": "headless",
  "task_bytes": 2, "started_at": "2026-01-02T03:04:05Z", "ended_at": "2026-01-02T03:05:05Z", "outcome": "finished", "exit_code": 0, "cause": "exit"
}
`
}

func (h *home) path(parts ...string) string {
	return filepath.Join(append([]string{h.dir}, parts...)...)
}

func (h *home) write(path, content string) {
	h.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(h.path(path)), 0o700), os.WriteFile(h.path(path), []byte(content), 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

// ended is the end of one command.
type ended struct {
	args           []string
	stdout, stderr string
	code           int
	memory         int64 // the most it had at once, in bytes
}

func (e ended) String() string {
	return strings.Join(e.args, " ") + "\nstdout: " + e.stdout + "\nstderr: " + e.stderr
}

// patience is far more than any command takes here. Who waits for the other end
// of a FIFO, or for the end of a device, waits for ever.
const patience = time.Minute

func (h *home) run(args ...string) ended {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "agent-container", args...)
	cmd.Dir = h.path("project")
	cmd.Env = append(os.Environ(),
		"AGENT_CONTAINER_CONFIG_DIR="+h.path("config"), "AGENT_CONTAINER_STATE_DIR="+h.path("state"), "AGENT_CONTAINER_DATA_DIR="+h.path("data"),
		"HOME="+h.path("home"), "FAKE_DOCKER="+h.path("docker"), "DOCKER_HOST=unix:///nowhere/docker.sock", "SSL_CERT_FILE=", "NODE_EXTRA_CA_CERTS=",
		"GORACE=atexit_sleep_ms=0")
	cmd.WaitDelay = time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if ctx.Err() != nil {
		h.t.Fatalf("%v hangs", args)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return ended{args, out.String(), errOut.String(), cmd.ProcessState.ExitCode(), usage.Maxrss << 10}
}

// damage is something that can have become of a file.
type damage struct {
	name string
	do   func(path, whole string) error
}

func replaced(content string) func(path, whole string) error {
	return func(path, _ string) error { return os.WriteFile(path, []byte(content), 0o600) }
}

func cutAt(part float64) func(path, whole string) error {
	return func(path, whole string) error {
		return os.WriteFile(path, []byte(whole[:int(float64(len(whole))*part)]), 0o600)
	}
}

// big makes a file of 100 MB that begins as the whole one does. It is a hole for
// the most part, which costs who reads it as much as any content.
func big(path, whole string) error {
	return errors.Join(os.WriteFile(path, []byte(whole), 0o600), os.Truncate(path, 100<<20))
}

// damages are the states of a file that no program of ours wrote. Each is made
// after the file was removed.
var damages = []damage{
	{"empty", replaced("")},
	{"cut in the middle", cutAt(0.47)},
	{"cut near its end", cutAt(0.9)},
	{"garbage", replaced("\x00\xff\x1b[2J\u009b{]\n\t:")},
	{"zeros", replaced(strings.Repeat("\x00", 4096))},
	{"100 MB", big},
	{"directory", func(path, _ string) error { return os.Mkdir(path, 0o700) }},
	{"fifo", func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }},
	{"link to nothing", func(path, _ string) error { return os.Symlink(path+".gone", path) }},
	{"link to itself", func(path, _ string) error { return os.Symlink(path, path) }},
	{"link to a device", func(path, _ string) error { return os.Symlink("/dev/zero", path) }},
}

// identity is what a file is, its content apart where that is large.
func identity(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	text := info.Mode().String() + info.ModTime().String()
	if info.Mode().IsRegular() && info.Size() < 1<<20 {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	if link, err := os.Readlink(path); err == nil {
		text += " -> " + link
	}
	return text
}

// answer is what a command must do with a damaged file: its exit code, and a
// line on stderr that has the file's path.
type answer struct {
	code int
	args []string
}

// damaged is a file, and what must happen when it is damaged.
type damaged struct {
	path, whole string
	also        []damage // beside those that every file can have
	only        []string // the damages that tell anything here, all when nil
	harmless    []string // damages after which it is as good as before
	answers     []answer
	hides       []string // what cannot show its answer without it
}

func TestDamagedFiles(t *testing.T) {
	// A file that is not as it was written must be an error or a warning with its path, in bounded time and memory, stay as it is, and leave everything else usable.
	settings := []answer{{2, []string{"up", "x", "--dry-run"}}, {2, []string{"redeploy", "other"}}, {2, []string{"context"}}}
	records := []string{"runs list"}
	inPlaceOfADirectory := []string{"garbage", "directory", "fifo", "link to nothing", "link to itself"}
	first := newHome(t)
	for _, file := range []damaged{
		{
			path: "config/settings.yaml", whole: "agent: claude\nheadless_restart: on-failure:2\nlimits:\n  pids: 77\n", answers: settings,
			also: []damage{{"newer", replaced("limits:\n  pids: 77\nnew_key: 1\n")}, {"binary", replaced("\x7fELF\x02\x01\x01")}},
		},
		{
			path: "project/.agent-container/settings.yaml", whole: "agent: claude\nheadless_restart: no\nlimits:\n  pids: 7\n", answers: settings,
			also: []damage{{"newer", replaced("new_key: 1\n")}}, only: []string{"empty", "100 MB", "fifo", "link to nothing", "newer"}, // the same code as the user's
		},
		{
			path: "config/x.services.yaml", whole: "services:\n  db:\n    image: postgres:17\n    stop_grace_period: 10s\n    user: postgres\n",
			answers:  []answer{{2, []string{"up", "x", "--dry-run"}}},
			also:     []damage{{"newer", replaced("services:\n  db:\n    image: x\n    new_key: 1\n")}},
			harmless: []string{"cut in the middle"}, // "image: postgr" is a service too
		},
		{
			path: "data/runs/local/other/" + badRun + ".json", whole: runRecord(badRun),
			answers: []answer{{0, []string{"runs", "list"}}, {0, []string{"runs", "list", "other"}}, {1, []string{"runs", "show", badRun}}},
			also: []damage{
				{"newer", replaced(strings.Replace(runRecord(badRun), "run/v1", "run/v2", 1))},
				{"another one's", replaced(runRecord(goodRun))},
				{"link to a record", func(path, whole string) error {
					return errors.Join(os.WriteFile(path+".real", []byte(whole), 0o600), os.Symlink(path+".real", path))
				}},
			},
		},
		{
			path: "data/runs/local/other", only: inPlaceOfADirectory, hides: records,
			answers: []answer{{0, []string{"runs", "list"}}, {0, []string{"runs", "list", "other"}}}, harmless: []string{"directory"},
		},
		{
			path: "data/runs/local", only: inPlaceOfADirectory, hides: records,
			answers: []answer{{0, []string{"runs", "list"}}}, harmless: []string{"directory"},
		},
		{
			path: "data/runs", only: inPlaceOfADirectory, hides: records,
			answers: []answer{{1, []string{"runs", "list"}}}, harmless: []string{"directory"},
		},
		{
			path: "state/local/other/lock", whole: "pid 1 since 2026-01-02T03:04:05Z\n",
			answers: []answer{{1, []string{"stop", "other"}}},
			// Its text is for people.
			harmless: []string{"empty", "cut in the middle", "cut near its end", "garbage", "zeros", "100 MB"},
		},
		{
			path: "state/local/other/operation.json", whole: `{"digest":"00","old":"00"}`,
			answers: []answer{{1, []string{"redeploy", "other"}}},
			// What cannot be read of it says nothing, and the next operation writes it anew.
			harmless: []string{"garbage", "100 MB", "fifo", "link to nothing", "newer"},
			only:     []string{"garbage", "100 MB", "fifo", "link to nothing", "newer", "directory"},
			also:     []damage{{"newer", replaced(`{"digest":"00","old":"00","new_key":{}}`)}},
		},
		{
			path: "state/local/other", only: inPlaceOfADirectory,
			answers: []answer{{1, []string{"redeploy", "other"}}}, harmless: []string{"directory"},
		},
	} {
		t.Run(strings.ReplaceAll(file.path, "/", " "), func(t *testing.T) {
			t.Parallel()
			h := first.twin(t)
			usual := h.run("list").memory
			for _, d := range append(damages, file.also...) {
				if file.only != nil && !slices.Contains(file.only, d.name) {
					continue
				}
				t.Run(d.name, func(t *testing.T) {
					h.t = t
					h.damage(file, d, usual)
				})
			}
			h.t = t
			h.goesOn()
		})
	}
}

// damage does d to a file, holds every command against what it must answer, and
// puts the file right again.
func (h *home) damage(file damaged, d damage, usual int64) {
	path := h.path(file.path)
	if err := errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Dir(path), 0o700), d.do(path, file.whole)); err != nil {
		h.t.Fatal(err)
	}
	before := identity(h.t, path)
	harmless := slices.Contains(file.harmless, d.name)
	for _, a := range file.answers {
		r := h.run(a.args...)
		code, named := a.code, strings.Contains(r.stderr, path)
		if harmless {
			code = 0
		}
		if r.code != code || named == harmless {
			h.t.Errorf("want exit code %d, the path named %t: %s", code, !harmless, r)
		}
		if strings.ContainsFunc(r.stdout+r.stderr, func(c rune) bool { return c < 0x20 && c != '\n' || c >= 0x7f && c < 0xa0 }) {
			h.t.Errorf("%v prints control characters: %q", a.args, r.stdout+r.stderr)
		}
		if r.memory > usual+40<<20 {
			h.t.Errorf("%v took %d MB of memory, list takes %d", a.args, r.memory>>20, usual>>20)
		}
		if !harmless && identity(h.t, path) != before {
			h.t.Errorf("%v changed it", a.args)
		}
	}
	if harmless {
		file.hides = append(file.hides, "runs list") // an empty directory hides records too
	}
	h.looksWell(file.hides...)
	if err := os.RemoveAll(path); err != nil {
		h.t.Fatal(err)
	}
	h.whole()
}

// looksWell requires that what only looks shows what is there, but for hidden.
func (h *home) looksWell(hidden ...string) {
	h.t.Helper()
	line, shows := "runs list", goodRun
	if slices.Contains(hidden, line) {
		line, shows = "list", "other"
	}
	if r := h.run(strings.Fields(line)...); r.code != 0 || !strings.Contains(r.stdout, shows) {
		h.t.Errorf("want exit code 0 and %q: %s", shows, r)
	}
}

// goesOn requires that nothing has got stuck.
func (h *home) goesOn() {
	h.t.Helper()
	if r := h.run("redeploy", "other"); r.code != 0 {
		h.t.Errorf("want exit code 0: %s", r)
	}
}

func TestDamagedModel(t *testing.T) {
	// The Compose file in the state directory must be a cache: whatever has become of it, a redeploy writes it anew, and nothing that it links to is touched; only a directory is in the way, and named.
	t.Parallel()
	h := newHome(t)
	path := h.path("state/local/other/compose.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range damages {
		if !slices.Contains([]string{"garbage", "100 MB", "fifo", "link to nothing", "link to itself", "directory"}, d.name) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			h.t = t
			if err := errors.Join(os.RemoveAll(path), d.do(path, string(content))); err != nil {
				t.Fatal(err)
			}
			if d.name == "directory" {
				if r := h.run("redeploy", "other"); r.code != 1 || !strings.Contains(r.stderr, path) {
					t.Errorf("want exit code 1 and the path: %s", r)
				}
				return
			}
			h.goesOn()
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) || info.Mode() != 0o600 {
				t.Errorf("it is %q now, mode %v, %v", now, info.Mode(), err)
			}
			if _, err := os.Lstat(path + ".gone"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the link's target was made: %v", err)
			}
		})
	}
}

func TestNewerDeployment(t *testing.T) {
	// A deployment that a newer version made must be listed with what is wrong, be refused by what has to understand it, and be stoppable and removable; others go on.
	h := newHome(t)
	if r := h.run("up", "newer", "--mode", "idle"); r.code != 0 {
		t.Fatal(r)
	}
	container := h.path("docker/containers/agent-container-newer")
	b, err := os.ReadFile(container)
	if err != nil {
		t.Fatal(err)
	}
	h.write("docker/containers/agent-container-newer", strings.Replace(string(b), `{\"name\":`, `{\"new_field\":1,\"name\":`, 1))
	if r := h.run("list", "--json"); r.code != 0 || !strings.Contains(r.stdout, `unknown field \"new_field\"`) || !strings.Contains(r.stdout, `"name":"newer"`) {
		t.Errorf("list: %s", r)
	}
	for _, verb := range []string{"redeploy", "start", "up"} {
		if r := h.run(verb, "newer"); r.code != 1 || !strings.Contains(r.stderr, "agent-container-newer") || !strings.Contains(r.stderr, "made by another version") {
			t.Errorf("%s: %s", verb, r)
		}
	}
	if r := h.run("stop", "newer"); r.code != 0 || r.stdout != "newer: exited\n" {
		t.Errorf("stop: %s", r)
	}
	if r := h.run("down", "newer", "--yes"); r.code != 0 {
		t.Errorf("down: %s", r)
	}
	h.goesOn()
}
