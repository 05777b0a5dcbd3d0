package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// privateEngine is a Docker engine of one test, which may be killed. It lives
// in mount, network and PID namespaces of its own, with a /run of its own, so
// that it shares nothing with the machine's engine, and the end of its first
// process is the end of everything in it: a reboot. What that leaves is what a
// disk keeps, in dir.
type privateEngine struct {
	t    *testing.T
	dir  string
	host string // its address, for DOCKER_HOST

	// The machine is a shell that is its first process and reads commands. The
	// end of its input ends it, also when the test is killed.
	machine *exec.Cmd
	input   io.WriteCloser
	answers *os.File
	lines   *bufio.Reader
}

// machineFlags are those of unshare for a machine.
var machineFlags = []string{"--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"}

// newPrivateEngine makes a place for an engine, or skips the test where there
// can be none. Call it before newUser: the user's clean-up needs the engine.
func newPrivateEngine(t *testing.T) *privateEngine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skipped: an engine of one's own takes root")
	}
	for _, needed := range []string{"dockerd", "containerd", "unshare", "bash"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("skipped: no engine of one's own: %v", err)
		}
	}
	if r := finish(t, exec.Command("unshare", append(slices.Clone(machineFlags), "true")...)); r.code != 0 {
		t.Skipf("skipped: no engine of one's own: %s", r)
	}
	// Not below t.TempDir: a socket's path is short, and /tmp may be memory.
	dir, err := os.MkdirTemp("/var/tmp", "e2e-engine-")
	if err != nil {
		t.Fatal(err)
	}
	p := &privateEngine{t: t, dir: dir, host: "unix://" + dir + "/docker.sock"}
	t.Cleanup(func() {
		p.powerOff()
		if t.Failed() {
			log, _ := os.ReadFile(p.log())
			t.Logf("the private engine: %s", clip(string(log)))
		}
		eventually(t, 10*time.Second, func() string {
			if err := os.RemoveAll(dir); err != nil {
				return err.Error() // its mounts go a moment after its processes
			}
			return ""
		})
	})
	if err := os.WriteFile(filepath.Join(dir, "daemon.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *privateEngine) log() string { return filepath.Join(p.dir, "dockerd.log") }

// cgroup is the parent of its containers' groups.
func (p *privateEngine) cgroup() string { return filepath.Base(p.dir) }

// powerOn starts the machine, without the engine.
func (p *privateEngine) powerOn() {
	p.t.Helper()
	p.machine = exec.Command("unshare", append(slices.Clone(machineFlags), "bash")...)
	answers, w, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	defer w.Close()
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.machine.Stdout, p.machine.Stderr = w, log
	if p.input, err = p.machine.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.machine.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.answers, p.lines = answers, bufio.NewReader(answers)
	p.sh("mount -t tmpfs tmpfs /run")
}

// sh runs commands in the machine; the last one has to succeed.
func (p *privateEngine) sh(commands string) {
	p.t.Helper()
	fmt.Fprintf(p.input, "%s\necho $?\n", commands)
	if err := p.answers.SetReadDeadline(time.Now().Add(commandTime)); err != nil {
		p.t.Fatal(err)
	}
	if line, err := p.lines.ReadString('\n'); err != nil || line != "0\n" {
		p.t.Fatalf("%s in the engine's machine: %q, %v", commands, line, err)
	}
}

// powerOff kills everything in the machine at once and returns when it is gone.
func (p *privateEngine) powerOff() {
	p.t.Helper()
	if p.machine == nil {
		return
	}
	p.input.Close()
	// Its first process is gone only when all others are.
	timer := time.AfterFunc(2*time.Minute, func() { _ = p.machine.Process.Kill() })
	_ = p.machine.Wait()
	if !timer.Stop() {
		p.t.Error("the engine's machine had to be killed")
	}
	p.answers.Close()
	p.machine = nil
	// No machine finds control groups after a boot.
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		tops, _ := filepath.Glob(filepath.Join(pattern, p.cgroup()))
		for _, top := range tops {
			p.removeGroups(top)
		}
	}
}

// removeGroups removes a control group and those in it.
func (p *privateEngine) removeGroups(top string) {
	p.t.Helper()
	var groups []string
	_ = filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return nil // what cannot be read cannot be removed, and that fails below
	})
	slices.Reverse(groups)
	eventually(p.t, 10*time.Second, func() string {
		for _, group := range groups {
			if err := os.Remove(group); err != nil && !os.IsNotExist(err) {
				return err.Error()
			}
		}
		return ""
	})
}

// start starts the engine, and its machine when that is off, and waits until
// it answers.
func (p *privateEngine) start() {
	p.t.Helper()
	if p.machine == nil {
		p.powerOn()
	}
	p.sh(strings.Join([]string{"dockerd",
		"--host", p.host, "--data-root", p.dir + "/data",
		"--exec-root", "/run/engine", "--pidfile", "/run/engine.pid", // lost with the machine
		"--config-file", p.dir + "/daemon.json", "--cgroup-parent", "/" + p.cgroup(),
		"</dev/null", ">>" + p.log(), "2>&1", "&"}, " "))
	eventually(p.t, 60*time.Second, func() string {
		if r := p.try("info"); r.code != 0 {
			return "the private engine does not answer: " + r.String()
		}
		return ""
	})
}

// stop ends the engine in order, as an upgrade does.
func (p *privateEngine) stop() { p.t.Helper(); p.sh("kill -TERM $!; wait $!; true") }

// kill kills the engine's daemon and nothing else.
func (p *privateEngine) kill() { p.t.Helper(); p.sh("kill -KILL $!; wait $!; true") }

// try runs the engine's command line on it.
func (p *privateEngine) try(args ...string) result {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	return finish(p.t, exec.CommandContext(ctx, "docker", append([]string{"--host", p.host}, args...)...))
}

// docker is try that must succeed.
func (p *privateEngine) docker(args ...string) string {
	p.t.Helper()
	r := p.try(args...)
	if r.code != 0 {
		p.t.Fatal(r)
	}
	return strings.TrimSpace(r.stdout)
}

// inspect returns one field of a container.
func (p *privateEngine) inspect(container, format string) string {
	p.t.Helper()
	return p.docker("inspect", "--format", format, container)
}

// load copies images from the machine's own engine.
func (p *privateEngine) load(images ...string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	save := exec.CommandContext(ctx, "docker", append([]string{"save"}, images...)...)
	load := exec.CommandContext(ctx, "docker", "--host", p.host, "load")
	pipe, err := save.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	load.Stdin = pipe
	if err := save.Start(); err != nil {
		p.t.Fatal(err)
	}
	if r := finish(p.t, load); r.code != 0 {
		p.t.Fatal(r)
	}
	if err := save.Wait(); err != nil {
		p.t.Fatalf("%v: %v", save.Args, err)
	}
}

// volumeFile is the content of a file on a volume of its, "" when there is
// none.
func (p *privateEngine) volumeFile(volume, file string) string {
	p.t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, "data", "volumes", volume, "_data", file))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(b)
}
