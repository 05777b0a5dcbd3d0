package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// failing is a build of the program that can be ended after any of its steps.
var failing = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(program), "agent-container-failpoints")
	build := exec.Command("go", "build", "-tags", "failpoints", "-o", path, "../..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// stepNames are the names of all steps, read from the program's source, so that
// none can be forgotten here.
func stepNames(t *testing.T, down bool) []string {
	t.Helper()
	var names []string
	pattern := regexp.MustCompile(`\{"([a-z-]+)", func\(\)|reached\(ctx, "([a-z-]+)"\)`)
	for _, file := range []string{"deploy.go", "up.go", "up_report.go", "down.go"} {
		source, err := os.ReadFile(filepath.Join("../../cli", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range pattern.FindAllStringSubmatch(string(source), -1) {
			if name := m[1] + m[2]; strings.HasPrefix(name, "down-") == down && name != "down-records" {
				names = append(names, name)
			}
		}
	}
	if len(names) < 8 {
		t.Fatalf("only %d steps: %q", len(names), names)
	}
	return names
}

// endedAt runs a command that ends after a step: killed, interrupted, or by an
// error.
func (u *user) endedAt(step, kind string, args ...string) {
	u.t.Helper()
	path, err := failing()
	if err != nil {
		u.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = u.path("project")
	cmd.Env = append(append(outerEnvironment(), u.env...), "AGENT_CONTAINER_FAILPOINT="+step+" "+kind)
	r := finish(u.t, cmd)
	want := map[string]int{"kill": -1, "int": 130, "error": 1}[kind]
	if r.code != want || !contains(r.stderr, "failpoint "+step+": "+kind) {
		u.t.Fatalf("want it to end at %s with %d: %s", step, want, r)
	}
}

// ends are the ways in which a command is ended after a step. All three at every
// step take minutes: AGENT_CONTAINER_EVERY_END=1 asks for them; else an interrupt
// and an error are tried where most is half done.
func ends(step string) []string {
	if os.Getenv("AGENT_CONTAINER_EVERY_END") == "1" || slices.Contains([]string{"created", "filled", "started", "down-containers"}, step) {
		return []string{"kill", "int", "error"}
	}
	return []string{"kill"}
}

// everyEnd runs check in parallel for every step and the ways of ending there.
func everyEnd(t *testing.T, down bool, check func(u *user, step, kind string)) {
	t.Parallel()
	for _, step := range stepNames(t, down) {
		for _, kind := range ends(step) {
			t.Run(step+" "+kind, func(t *testing.T) {
				u := newUser(t)
				u.withStub()
				if kind == "error" { // with a service there are an own network and more to leave behind
					u.withService()
				}
				if kind == "int" { // and with a gateway another container that is filled
					u.write("config/settings.yaml", "egress:\n  allow: [provider:agent]\n")
				}
				check(u, step, kind)
			})
		}
	}
}

// withService gives the deployment a service of its own.
func (u *user) withService() {
	u.t.Helper()
	if err := modelImage(); err != nil {
		u.t.Fatal(err)
	}
	u.write("config/"+u.name+".services.yaml", "services: {side: {image: localhost/agent-container-modelserver, pull_policy: never, volumes: [data:/data]}}\nvolumes: {data: {}}\n")
}

// countedJob is a task that counts how often it is run.
var countedJob = []string{"--mode", "headless", "--task", "count", "--env", "STUB_RUN=echo run >>$HOME/.claude/runs"}

// ranOnce checks that the job was run once, with one record, in one container.
func (u *user) ranOnce() {
	u.t.Helper()
	u.waitState("exited")
	u.must("up", u.name)
	if runs, _ := u.file("/home/agent/.claude/runs"); runs != "run\n" {
		u.t.Errorf("the task was run so often: %q", runs)
	}
	if list := u.records(); len(list) != 1 || list[0]["outcome"] != "finished" {
		u.t.Errorf("records are %v", list)
	}
	names := strings.Fields(docker(u.t, "ps", "--all", "--format", "{{.Names}}", "--filter", "label=agent-container.name="+u.name))
	names = slices.DeleteFunc(names, func(n string) bool { return n == u.gateway() || n == u.container()+".side" })
	if len(names) != 1 || names[0] != u.container() {
		u.t.Errorf("containers are %q", names)
	}
}

// nothingLeft checks that a purge has left nothing of the deployment but records.
func (u *user) nothingLeft(records int) {
	u.t.Helper()
	filter := "label=agent-container.name=" + u.name
	for _, list := range [][]string{
		{"ps", "--all", "--quiet", "--filter", filter}, {"volume", "ls", "--quiet", "--filter", filter}, {"network", "ls", "--quiet", "--filter", filter},
		{"ps", "--all", "--quiet", "--filter", "name=" + u.name}, {"volume", "ls", "--quiet", "--filter", "name=" + u.name},
	} {
		if left := docker(u.t, list...); left != "" {
			u.t.Errorf("%q finds %s", list, left)
		}
	}
	if _, err := os.Stat(u.path("state", "local", u.name)); !os.IsNotExist(err) {
		u.t.Errorf("its state is still there: %v", err)
	}
	if n := len(u.records()); n != records {
		u.t.Errorf("%d records are left, want %d", n, records)
	}
}

// An up that was killed, interrupted or failed after any step must finish when
// it is run again, and run nothing twice.
func TestEndedUpFinishes(t *testing.T) {
	everyEnd(t, false, func(u *user, step, kind string) {
		up := append([]string{"up", u.name}, countedJob...)
		u.endedAt(step, kind, up...)
		u.must(up...)
		u.ranOnce()
		u.must("down", u.name, "--purge", "--yes")
		u.nothingLeft(1)
	})
}

// A redeploy likewise; and it must still know what was typed before it.
func TestEndedRedeployFinishes(t *testing.T) {
	everyEnd(t, false, func(u *user, step, kind string) {
		u.must("up", u.name, "--mode", "idle", "--env", "KEPT=as typed")
		redeploy := append([]string{"redeploy", u.name}, countedJob...)
		u.endedAt(step, kind, redeploy...)
		u.must(redeploy...)
		u.ranOnce()
		if filled, _ := u.file("/run/agent-container-secrets/environment"); !contains(filled, "KEPT=as typed\x00") {
			u.t.Errorf("the value that was typed before is lost: %q", filled)
		}
		u.must("down", u.name, "--purge", "--yes")
		u.nothingLeft(1)
	})
}

// A down likewise must leave nothing when it is run again.
func TestEndedDownFinishes(t *testing.T) {
	everyEnd(t, true, func(u *user, step, kind string) {
		u.must(append([]string{"up", u.name}, countedJob...)...)
		u.endedAt(step, kind, "down", u.name, "--purge", "--yes")
		if r := u.run("down", u.name, "--purge", "--yes"); r.code != 0 && !(r.code == 4 && step == "down-state") {
			u.t.Error(r)
		}
		u.nothingLeft(1)
	})
}

// toldTheEnd reports whether a command that made a job was killed only when it had
// nothing left to do but to exit: the same once more is then the order to run it anew.
func (u *user) toldTheEnd() bool {
	u.t.Helper()
	if _, err := os.Stat(u.path("state", "local", u.name, "operation.json")); !os.IsNotExist(err) {
		return false
	}
	r := dockerTry(u.t, "inspect", "--format", `{{index .Config.Labels "agent-container.spec"}}`, u.container())
	return contains(r.stdout, `"mode":"headless"`)
}

// A command that is killed at any moment, with a child of the engine at work or
// between two, must finish when it is run again at once.
func TestKilledAtAnyMoment(t *testing.T) {
	u := newUser(t)
	u.withStub()
	up := append([]string{"up", u.name}, countedJob...)
	began := time.Now()
	u.must(up...)
	whole := time.Since(began)
	u.must("redeploy", u.name, "--mode", "idle") // from here on a recreate
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	redeploy := append([]string{"redeploy", u.name}, countedJob...)
	records := 1
	for round := range 6 {
		u.must("exec", u.name, "--", "rm", "-f", "/home/agent/.claude/runs")
		after := time.Duration(random.Int64N(int64(whole)))
		r := u.start(redeploy...)
		time.Sleep(after) // the moment is what is tested
		_ = r.cmd.Process.Kill()
		want := "run\n"
		if r.wait(time.Minute).code == 0 || u.toldTheEnd() { // it was faster
			want += want
			records++
		}
		records++
		if again := u.run(redeploy...); again.code != 0 {
			t.Fatalf("seed %d, round %d, killed after %s: %s", seed, round, after, again)
		}
		u.waitState("exited")
		if runs, _ := u.file("/home/agent/.claude/runs"); runs != want {
			t.Errorf("seed %d, round %d, killed after %s: the task was run so often: %q", seed, round, after, runs)
		}
		u.must("redeploy", u.name, "--mode", "idle")
	}
	u.must("down", u.name, "--purge", "--yes")
	u.nothingLeft(records)
}

// A down that is killed at any moment must finish when it is run again at once,
// also while the engine is still at what the killed one began.
func TestKilledDownAtAnyMoment(t *testing.T) {
	u := newUser(t)
	u.withStub()
	down := []string{"down", u.name, "--purge", "--yes"}
	u.must("up", u.name, "--mode", "idle")
	began := time.Now()
	u.must(down...)
	whole := time.Since(began)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 4 {
		u.must("up", u.name, "--mode", "idle")
		after := time.Duration(random.Int64N(int64(whole)))
		r := u.start(down...)
		time.Sleep(after) // the moment is what is tested
		_ = r.cmd.Process.Kill()
		r.wait(time.Minute)
		if again := u.run(down...); again.code != 0 && again.code != 4 { // it may have been done, which is seen next
			t.Fatalf("seed %d, round %d, killed after %s: %s", seed, round, after, again)
		}
		u.nothingLeft(0)
	}
}

// An up that would make something else of a deployment whose redeploy was killed
// after it had removed the old container must be refused.
func TestInterruptedRedeployIsNotForgotten(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle", "--workspace", "ephemeral", "--env", "A=b")
	u.endedAt("created", "kill", "redeploy", u.name)
	r := u.want(2, "up", u.name)
	if !contains(r.stderr, "was created by a command that was interrupted, and differs: mode: idle -> interactive") || !contains(r.stderr, "redeploy "+u.name) {
		t.Error(r)
	}
	u.must("redeploy", u.name)
	if got := strings.TrimSpace(u.must("exec", u.name, "--", "sh", "-c", "echo $A").stdout); got != "b" || u.inspect(`{{index .Config.Labels "agent-container.spec"}}`) == "" {
		t.Errorf("the value is %q", got)
	}
}

// Only the very command that was interrupted may be taken for done: another task,
// another value, a command that lost a race, and one whose end was told are new.
func TestWhatIsNotResumed(t *testing.T) {
	u := newUser(t)
	u.withStub()
	runs := func(want string) {
		t.Helper()
		if got, _ := u.file("/home/agent/.claude/runs"); got != want {
			t.Errorf("the task was run %q, want %q", got, want)
		}
	}
	job := func(verb, task, value string) []string {
		return []string{verb, u.name, "--mode", "headless", "--task", task, "--env", "V=" + value, "--env", "STUB_RUN=echo $V >>$HOME/.claude/runs"}
	}
	u.endedAt("started", "kill", job("up", "one", "a")...)
	u.want(2, append(job("up", "one", "a"), "--dry-run")...) // it goes on with nothing
	u.must(job("up", "one", "a")...)
	u.waitState("exited")

	// Another command was faster: 6, and the hint to run it again must run it.
	in, feed := io.Pipe()
	late := u.startWith(in, nil, nil, append(job("redeploy", "-", "b"), "-v")...)
	late.said("docker container inspect")
	u.must(append(job("redeploy", "two", "c"), "--foreground")...)
	io.WriteString(feed, "three")
	feed.Close()
	if r := late.wait(time.Minute); r.code != 6 {
		t.Fatalf("the command that lost the race: %s", r)
	}
	r := u.runWith(strings.NewReader("three"), nil, append(job("redeploy", "-", "b"), "--foreground")...)
	if r.code != 0 || contains(r.stderr, "not run twice") {
		t.Errorf("it was not run: %s", r)
	}
	runs("a\nc\nb\n")

	// Killed, and then asked for with another value.
	u.endedAt("started", "kill", job("redeploy", "four", "d")...)
	u.must(append(job("redeploy", "four", "e"), "--foreground")...)
	// Interrupted after the end was told, and asked for again.
	u.endedAt("started", "kill", job("redeploy", "five", "f")...)
	u.waitState("exited")
	u.must("up", u.name)
	u.must(append(job("redeploy", "five", "f"), "--foreground")...)
	got, _ := u.file("/home/agent/.claude/runs")
	if want := "e\nf\nf\n"; !strings.HasSuffix(got, want) {
		t.Errorf("the task was run %q, want it to end with %q", got, want)
	}

	// While it is followed, the same command is busy, not done.
	hold := []string{"redeploy", u.name, "--task", "six", "--foreground", "--env", "STUB_RUN=" + untilGo}
	first := u.start(hold...)
	first.said("started")
	if r := u.want(6, hold...); !contains(r.stderr, "the same command") {
		t.Error(r)
	}
	u.goOn()
	if r := first.wait(time.Minute); r.code != 0 {
		t.Error(r)
	}
}

// A down must empty the environment also of what an interrupted recreate left.
func TestDownOfATwin(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle", "--env", "MY_TOKEN=canary-value")
	image := u.inspect("{{.Config.Image}}")
	docker(t, "rename", u.container(), "0123456789ab_"+u.container())
	u.must("down", u.name, "--yes")
	docker(t, "create", "--name", u.container(), "--label", "agent-container.name="+u.name, "--volume", u.container()+"-secrets:/run/agent-container-secrets", image, "true")
	if left, ok := u.file("/run/agent-container-secrets/environment"); !ok || contains(left, "canary") {
		t.Errorf("down left the environment, there: %t", ok)
	}
}
