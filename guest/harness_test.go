package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-container/agent-container/entrypoint"
	"github.com/agent-container/agent-container/spec"
)

var program string // the guest, built as for an image

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "guest-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "guest")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("%v\n%s", err, out))
		}
		return m.Run()
	}())
}

// box is a container without a container: every fixed path is a directory of
// the test, every program but git, tmux and the shell a stub.
type box struct {
	t    *testing.T
	p    entrypoint.Params
	bin  string // stubs, first on PATH
	env  []string
	call string // the guest's verbs in order, as the entrypoint called them
}

func newBox(t *testing.T, agent string, mode spec.Mode) *box {
	t.Helper()
	dir := t.TempDir()
	make := func(parts ...string) string {
		path := filepath.Join(append([]string{dir}, parts...)...)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	b := &box{t: t, bin: make("bin"), call: filepath.Join(dir, "calls")}
	b.p = entrypoint.Params{
		Mode: mode, Agent: agent, Name: "demo",
		RunDir: make("run"), RunsDir: make("runs"), SecretsDir: make("secrets"), Home: make("home"), Workspace: make("workspace"),
		AgentDir: make("agent"), SystemCA: filepath.Join(dir, "system.pem"), TmuxShell: "/bin/true",
	}
	row, err := spec.LookupAgent(agent)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range row.State {
		make("home", strings.TrimPrefix(v.Path, spec.ContainerHome))
	}
	b.p.Guest = filepath.Join(b.bin, "guest")
	b.stub("guest", fmt.Sprintf("echo \"$@\" >>%q\nexec %q \"$@\"", b.call, program))
	b.stub(row.Executable, "exit 0")
	b.fill(spec.FillJob, `{"record_task":true}`)
	return b
}

// stub puts a shell script on PATH.
func (b *box) stub(name, script string) {
	b.write(filepath.Join(b.bin, name), "#!/bin/bash\n"+script+"\n", 0o755)
}

func (b *box) fill(name, content string) { b.write(filepath.Join(b.p.RunDir, name), content, 0o600) }

// environment fills the user's environment: entries that each end with NUL.
func (b *box) environment(entries string) {
	b.write(filepath.Join(b.p.SecretsDir, spec.FillEnvironment), entries+"\x00", 0o600)
}

func (b *box) write(path, content string, mode os.FileMode) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		b.t.Fatal(err)
	}
}

func (b *box) read(path string) string {
	b.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

func (b *box) home(path string) string { return filepath.Join(b.p.Home, path) }

func (b *box) environ() []string {
	env := []string{
		"PATH=" + b.bin + ":/usr/bin:/bin", "HOME=" + b.p.Home, "LANG=C.UTF-8", "TMUX_TMPDIR=" + b.p.RunDir,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example",
	}
	for k, v := range b.p.Environment() {
		env = append(env, k+"="+v)
	}
	return append(env, b.env...)
}

// running is a program that a test has started.
type running struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err bytes.Buffer
	done     chan error
}

func (b *box) start(argv ...string) *running {
	b.t.Helper()
	r := &running{t: b.t, cmd: exec.Command(argv[0], argv[1:]...), done: make(chan error, 1)}
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = b.environ(), &r.out, &r.err
	r.cmd.Dir, r.cmd.WaitDelay = b.p.Workspace, 5*time.Second
	if err := r.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() { r.done <- r.cmd.Wait() }()
	b.t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// wait returns the exit status; a program that does not end fails the test.
func (r *running) wait() int {
	r.t.Helper()
	select {
	case err := <-r.done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			r.t.Fatalf("%v\n%s", err, r.err.String())
		}
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(30 * time.Second):
		r.t.Fatal("it does not end")
		return -1
	}
}

func (r *running) ended() bool { return len(r.done) > 0 }

// term sends TERM to the program alone, as tini does.
func (r *running) term() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
}

// enter starts the real entrypoint.sh.
func (b *box) enter() *running {
	b.t.Helper()
	return b.start("/bin/bash", b.script())
}

func (b *box) script() string {
	path, err := filepath.Abs("../entrypoint/entrypoint.sh")
	if err != nil {
		b.t.Fatal(err)
	}
	return path
}

// guest runs one verb and returns its status and what it said.
func (b *box) guest(args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	r := b.start(append([]string{program}, args...)...)
	code = r.wait()
	return code, r.out.String(), r.err.String()
}

func (b *box) status() string {
	content, _ := os.ReadFile(filepath.Join(b.p.RunDir, spec.FileStatus))
	return strings.TrimSpace(string(content))
}

// records reads every run record, oldest first.
func (b *box) records() []spec.Record {
	b.t.Helper()
	paths, err := filepath.Glob(filepath.Join(b.p.RunsDir, "*.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	list := make([]spec.Record, len(paths))
	for i, p := range paths {
		if err := json.Unmarshal([]byte(b.read(p)), &list[i]); err != nil {
			b.t.Fatalf("%s: %v", p, err)
		}
	}
	slices.SortFunc(list, func(a, b spec.Record) int { return a.StartedAt.Compare(b.StartedAt) })
	return list
}

// record is the only record there must be.
func (b *box) record() spec.Record {
	b.t.Helper()
	list := b.records()
	if len(list) != 1 {
		b.t.Fatalf("%d records, want one", len(list))
	}
	return list[0]
}

// holds reports whether the program has become the guest and every thread of it
// waits: only then is a signal the guest's to answer. The threads are read one after
// another, and one may hand its work to another one meanwhile: they must be found so
// several times.
func (r *running) holds() bool {
	for range 10 {
		if !r.waits() {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

// waits is one look at the program and its threads.
func (r *running) waits() bool {
	proc := fmt.Sprintf("/proc/%d", r.cmd.Process.Pid)
	if exe, err := os.Readlink(proc + "/exe"); err != nil || exe != program {
		return false
	}
	threads, err := filepath.Glob(proc + "/task/*/stat")
	for _, path := range threads {
		stat, err := os.ReadFile(path)
		if _, after, ok := bytes.Cut(stat, []byte(") ")); err != nil || !ok || after[0] != 'S' {
			return false
		}
	}
	return err == nil && len(threads) > 0
}

// until polls for something that must become true.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not reached: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func exitOf(r spec.Record) string {
	code := "none"
	if r.ExitCode != nil {
		code = fmt.Sprint(*r.ExitCode)
	}
	return fmt.Sprintf("%s %s %s", r.Outcome, r.Cause, code)
}
