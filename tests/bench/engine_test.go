package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// bench is a user with directories of its own and images in which claude is a
// stub that does nothing.
type bench struct {
	b   *testing.B
	dir string
	env []string
}

func newBench(b *testing.B) *bench {
	b.Helper()
	if out, err := exec.Command("docker", "version").CombinedOutput(); err != nil {
		b.Skipf("no engine answers, run make engine: %s", out)
	}
	u := &bench{b: b, dir: b.TempDir()}
	for _, d := range []string{"images", "entrypoint"} {
		u.copy(filepath.Join("../..", d), filepath.Join("repo", d))
	}
	if err := os.RemoveAll(filepath.Join(u.dir, "repo/images/agents/claude")); err != nil {
		b.Fatal(err)
	}
	u.copy("../e2e/testdata/stub", "repo/images/agents/claude")
	u.env = append(os.Environ(), "AGENT_CONTAINER_REPO="+filepath.Join(u.dir, "repo"), "HOME="+u.dir)
	for _, kind := range []string{"CONFIG", "STATE", "DATA"} {
		u.env = append(u.env, "AGENT_CONTAINER_"+kind+"_DIR="+filepath.Join(u.dir, kind))
	}
	u.run("build", "--agent", "claude")
	return u
}

func (u *bench) copy(from, to string) {
	u.b.Helper()
	if err := os.CopyFS(filepath.Join(u.dir, to), os.DirFS(from)); err != nil {
		u.b.Fatal(err)
	}
}

// run runs the program and returns its stdout.
func (u *bench) run(args ...string) string { return u.command("../../build/agent-container", args...) }

func (u *bench) command(name string, args ...string) string {
	u.b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = u.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		u.b.Fatalf("%s %q: %v\n%s%s", name, args, err, out, stderr.String())
	}
	return string(out)
}

// compare runs each way of doing something in turn, so that what else the
// machine does meets all of them, and reports the median of each and its ratio
// to that of the way called "floor".
func (u *bench) compare(ways map[string]func() time.Duration) {
	u.b.Helper()
	times := map[string][]time.Duration{}
	for u.b.Loop() {
		for name, do := range ways {
			times[name] = append(times[name], do())
		}
	}
	floor := median(times["floor"])
	for name, list := range times {
		u.b.ReportMetric(float64(median(list).Microseconds())/1000, "ms_"+name)
		if name != "floor" {
			u.b.ReportMetric(float64(median(list))/float64(floor), "x_"+name)
		}
	}
	u.b.ReportMetric(0, "ns/op") // says nothing here
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// timed is how long do took.
func timed(do func()) func() time.Duration {
	return func() time.Duration {
		started := time.Now()
		do()
		return time.Since(started)
	}
}

// untilStarted runs do and returns the time from its beginning until the engine
// had started the container.
func (u *bench) untilStarted(container string, do func()) time.Duration {
	u.b.Helper()
	began := time.Now()
	do()
	at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(u.command("docker", "inspect", "--format", "{{.State.StartedAt}}", container)))
	if err != nil {
		u.b.Fatal(err)
	}
	return at.Sub(began)
}

// BenchmarkUp is a warm up until its container was started, and until it
// returned, beside a bare "docker compose up -d" of the same file.
func BenchmarkUp(b *testing.B) {
	u := newBench(b)
	defer u.run("wipe", "bench-up", "--yes")
	defer u.run("wipe", "bench-other", "--yes")
	// The file of another deployment, so that both begin with nothing.
	u.run("up", "bench-other", "--mode", "idle")
	u.run("down", "bench-other", "--yes")
	file := filepath.Join(u.dir, "STATE/local/bench-other/compose.yaml")
	u.run("up", "bench-up", "--mode", "idle")
	var returned []time.Duration
	image := strings.TrimSpace(u.command("docker", "inspect", "--format", "{{.Config.Image}}", "agent-container-bench-up"))
	u.compare(u.withDevcontainer(image, map[string]func() time.Duration{
		"up": func() time.Duration {
			u.run("down", "bench-up", "--purge", "--yes")
			return u.untilStarted("agent-container-bench-up", func() {
				returned = append(returned, timed(func() { u.run("up", "bench-up", "--mode", "idle") })())
			})
		},
		"floor": func() time.Duration {
			compose := []string{"compose", "--project-name", "agent-container-bench-other", "--file", file}
			u.command("docker", append(compose, "down", "--volumes")...)
			return u.untilStarted("agent-container-bench-other", func() { u.command("docker", append(compose, "up", "--detach")...) })
		},
	}))
	b.ReportMetric(float64(median(returned).Milliseconds()), "ms_returned")
}

// withDevcontainer adds the devcontainer command line with the same image to ways,
// where it is installed.
func (u *bench) withDevcontainer(image string, ways map[string]func() time.Duration) map[string]func() time.Duration {
	u.b.Helper()
	path, err := exec.LookPath("devcontainer")
	if err != nil {
		u.b.Log("devcontainer is not on PATH (npm install -g @devcontainers/cli): it is left out")
		return ways
	}
	dir := filepath.Join(u.dir, "devcontainer")
	if err := os.MkdirAll(filepath.Join(dir, ".devcontainer"), 0o755); err != nil {
		u.b.Fatal(err)
	}
	config := fmt.Sprintf(`{"image":%q,"remoteUser":"agent","updateRemoteUserUID":false}`, image)
	if err := os.WriteFile(filepath.Join(dir, ".devcontainer/devcontainer.json"), []byte(config), 0o600); err != nil {
		u.b.Fatal(err)
	}
	last := ""
	remove := func() {
		if last != "" {
			u.command("docker", "rm", "--force", last)
		}
	}
	u.b.Cleanup(remove)
	ways["devcontainer"] = func() time.Duration {
		remove()
		began := time.Now()
		var answer struct{ ContainerID string }
		if err := json.Unmarshal([]byte(u.command(path, "up", "--workspace-folder", dir)), &answer); err != nil {
			u.b.Fatal(err)
		}
		last = answer.ContainerID
		at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(u.command("docker", "inspect", "--format", "{{.State.StartedAt}}", last)))
		if err != nil {
			u.b.Fatal(err)
		}
		return at.Sub(began)
	}
	return ways
}

// BenchmarkJob is a job in the foreground beside "docker run --rm" of the same
// image and command.
func BenchmarkJob(b *testing.B) {
	u := newBench(b)
	defer u.run("wipe", "bench-job", "--yes")
	u.run("up", "bench-job", "--mode", "headless", "--foreground", "--task", "x")
	image := strings.TrimSpace(u.command("docker", "inspect", "--format", "{{.Config.Image}}", "agent-container-bench-job"))
	u.compare(map[string]func() time.Duration{
		"job": func() time.Duration {
			u.run("down", "bench-job", "--purge", "--yes")
			return timed(func() { u.run("up", "bench-job", "--mode", "headless", "--foreground", "--task", "x") })()
		},
		"floor": timed(func() { u.command("docker", "run", "--rm", "--entrypoint", "claude", image, "-p") }),
	})
}

// BenchmarkList is list with a hundred deployments beside one "docker ps" and one
// "docker inspect" of them.
func BenchmarkList(b *testing.B) {
	u := newBench(b)
	u.command("../modelserver/image.sh")
	var names []string
	defer func() {
		if len(names) > 0 {
			u.command("docker", append([]string{"rm", "--force"}, names...)...)
		}
	}()
	for i := range 100 {
		name := fmt.Sprintf("bench-list-%d", i)
		s := spec.Spec{Name: name, Agent: "claude", Mode: spec.Idle, Workspace: spec.Persistent, Limits: spec.Limits{Pids: 1}}
		names = append(names, "agent-container-"+name)
		u.command("docker", "create", "--name", "agent-container-"+name, "--label", "agent-container.name="+name,
			"--label", "agent-container.spec="+s.Label(), "localhost/agent-container-modelserver")
	}
	u.compare(map[string]func() time.Duration{
		"list": timed(func() {
			var answer struct{ Data struct{ Deployments []any } }
			if err := json.Unmarshal([]byte(u.run("list", "--json")), &answer); err != nil || len(answer.Data.Deployments) < 100 {
				b.Fatalf("%d deployments are listed, %v", len(answer.Data.Deployments), err)
			}
		}),
		"floor": timed(func() {
			u.command("docker", "ps", "--all", "--quiet", "--filter", "label=agent-container.name")
			u.command("docker", append([]string{"inspect"}, names...)...)
		}),
	})
}

// BenchmarkExec is a command in a running deployment beside "docker exec".
func BenchmarkExec(b *testing.B) {
	u := newBench(b)
	defer u.run("wipe", "bench-exec", "--yes")
	u.run("up", "bench-exec", "--mode", "idle")
	u.compare(map[string]func() time.Duration{
		"exec":  timed(func() { u.run("exec", "bench-exec", "--", "true") }),
		"floor": timed(func() { u.command("docker", "exec", "agent-container-bench-exec", "true") }),
	})
}
