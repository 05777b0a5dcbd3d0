package bench

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/docker/go-units"
)

// BenchmarkAttachable is a warm up and an attach until the shell's prompt has come
// over ssh, beside a bare "docker compose up -d" of the same file.
func BenchmarkAttachable(b *testing.B) {
	u := newBench(b)
	defer u.run("wipe", "bench-attach", "--yes")
	defer u.run("wipe", "bench-other", "--yes")
	u.run("up", "bench-attach") // has its port first
	compose := u.fileOf("bench-other")
	var attached []time.Duration
	u.compare(map[string]func() time.Duration{
		"attachable": func() time.Duration {
			u.run("down", "bench-attach", "--purge", "--yes")
			return timed(func() {
				u.run("up", "bench-attach")
				attached = append(attached, u.untilPrompt("bench-attach"))
			})()
		},
		"floor": func() time.Duration {
			u.command("docker", append(compose, "down", "--volumes")...)
			return timed(func() { u.command("docker", append(compose, "up", "--detach")...) })()
		},
	})
	b.ReportMetric(float64(median(attached).Milliseconds()), "ms_attach")
}

// fileOf is how Compose is called with the file of a deployment of which nothing
// else is left.
func (u *bench) fileOf(name string) []string {
	u.b.Helper()
	u.run("up", name)
	u.run("down", name, "--yes")
	return []string{"compose", "--project-name", "agent-container-" + name, "--file", filepath.Join(u.dir, "STATE/local", name, "compose.yaml")}
}

// untilPrompt attaches on a terminal and returns how long the shell's prompt took.
func (u *bench) untilPrompt(name string) time.Duration {
	u.b.Helper()
	cmd := exec.Command("../../build/agent-container", "attach", name, "--window", "shell")
	cmd.Env = append(u.env, "TERM=xterm-256color")
	began := time.Now()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
	if err != nil {
		u.b.Fatal(err)
	}
	defer terminal.Close()
	var got strings.Builder
	for buffer := make([]byte, 4096); !strings.Contains(got.String(), "agent@"+name); {
		n, err := terminal.Read(buffer)
		if got.Write(buffer[:n]); err != nil {
			u.b.Fatalf("the terminal got %q: %v", got.String(), err)
		}
	}
	took := time.Since(began)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed
	return took
}

// BenchmarkRedeploy is how long nothing can be run in a deployment during its
// redeploy, beside a "docker compose up -d --force-recreate" of the same file;
// and how long its sshd does not greet.
func BenchmarkRedeploy(b *testing.B) {
	u := newBench(b)
	defer u.run("wipe", "bench-redeploy", "--yes")
	defer u.run("wipe", "bench-other", "--yes")
	compose := u.fileOf("bench-other")
	u.command("docker", append(compose, "up", "--detach")...)
	u.run("up", "bench-redeploy")
	_, address, _ := strings.Cut(strings.TrimSpace(u.command("docker", "port", "agent-container-bench-redeploy")), " -> ")
	var ssh []time.Duration
	u.compare(map[string]func() time.Duration{
		"redeploy": func() time.Duration {
			var greets time.Duration
			down := away(canExec("agent-container-bench-redeploy"), func() {
				greets = away(func() bool { return greeted(address) }, func() { u.run("redeploy", "bench-redeploy") })
			})
			ssh = append(ssh, greets)
			return down
		},
		"floor": func() time.Duration {
			return away(canExec("agent-container-bench-other"), func() {
				u.command("docker", append(compose, "up", "--detach", "--force-recreate")...)
			})
		},
	})
	b.ReportMetric(float64(median(ssh).Milliseconds()), "ms_ssh")
}

// away is the longest time between two probes that succeeded, one after the
// other, around do.
func away(probe func() bool, do func()) time.Duration {
	ctx, done := context.WithCancel(context.Background())
	longest := make(chan time.Duration)
	ready := make(chan struct{})
	go func() {
		var most time.Duration
		last := time.Now()
		pace := time.NewTicker(20 * time.Millisecond) // what is probed needs the processors too
		defer pace.Stop()
		for first := true; ; <-pace.C {
			if !probe() {
				continue
			}
			if first {
				first, last = false, time.Now()
				close(ready)
			}
			most, last = max(most, time.Since(last)), time.Now()
			if ctx.Err() != nil { // do is over, and the probe succeeds
				longest <- most
				return
			}
		}
	}()
	<-ready
	do()
	done()
	return <-longest
}

func canExec(container string) func() bool {
	return func() bool { return exec.Command("docker", "exec", container, "true").Run() == nil }
}

// greeted reports whether an sshd answers; that a port is open may be the
// engine's doing.
func greeted(address string) bool {
	const patience = 200 * time.Millisecond
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	greeting := make([]byte, 4)
	n, _ := conn.Read(greeting)
	return string(greeting[:n]) == "SSH-"
}

// BenchmarkIdleMemory is what a session takes whose agent has quit, as the engine
// counts it: without the cache of files.
func BenchmarkIdleMemory(b *testing.B) {
	u := newBench(b)
	defer u.run("wipe", "bench-memory", "--yes")
	u.run("up", "bench-memory")
	u.run("exec", "bench-memory", "--", "tmux", "send-keys", "-t", "=main:agent", "C-d") // the stub ends with its input
	u.run("exec", "bench-memory", "--", "sh", "-c", "while pgrep -f [b]in/claude; do sleep 0.1; done")
	var used []time.Duration // of bytes, for median
	for b.Loop() {
		text, _, _ := strings.Cut(u.command("docker", "stats", "--no-stream", "--format", "{{.MemUsage}}", "agent-container-bench-memory"), " ")
		bytes, err := units.RAMInBytes(text)
		if err != nil {
			b.Fatal(err)
		}
		used = append(used, time.Duration(bytes))
	}
	b.ReportMetric(float64(median(used))/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
}
