package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// countRun is the beginning of a job that counts its runs on a volume.
const countRun = `echo run >>"$HOME/.claude/runs"; `

// sibling is the same user with another deployment, for tests that wipe it
// themselves or lose its engine.
func (u *user) sibling(suffix string) *user {
	other := *u
	other.name = u.name + "-" + suffix
	return &other
}

// hostRecords are the records on the host as the last verb left them, newest
// first: runs list would bring in and close what is open.
func (u *user) hostRecords() []map[string]any {
	u.t.Helper()
	files, err := filepath.Glob(u.path("data", "runs", "local", u.name, "*.json"))
	if err != nil {
		u.t.Fatal(err)
	}
	slices.Sort(files)
	slices.Reverse(files)
	var records []map[string]any
	for _, file := range files {
		b, err := os.ReadFile(file)
		var r map[string]any
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err != nil {
			u.t.Fatalf("%s: %v", file, err)
		}
		records = append(records, r)
	}
	return records
}

// wantNote checks that a record says in words why it was closed for its run.
func wantNote(t *testing.T, record map[string]any) {
	t.Helper()
	if notes, _ := record["notes"].([]any); len(notes) == 0 {
		t.Errorf("no note says why: %v", record)
	}
}

// A job whose container's first process was killed must be closed as lost by
// the next verb, and not be run again although failures are to be retried.
func TestKilledContainerIsNotRetried(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.job(0, countRun+untilStopped, "--headless-restart", "on-failure:3")
	u.waitLog("started")
	pid, err := strconv.Atoi(u.inspect("{{.State.Pid}}"))
	if err != nil {
		t.Fatal(err)
	}
	// The engine may be on another machine: whose process is that number here?
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil || !contains(string(environ), "AGENT_CONTAINER_NAME="+u.name+"\x00") {
		t.Skipf("skipped: the container's first process, %d, cannot be reached from here: %v", pid, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	u.waitState("exited")
	check := u.identity()
	if r := u.must("up", u.name); !contains(r.stdout, "lost") {
		t.Errorf("up does not say that the job is lost: %s", r)
	}
	records := u.hostRecords()
	if len(records) != 1 {
		t.Fatalf("the records: %v", records)
	}
	wantEnd(t, records[0], "lost", "lost", nil)
	wantNote(t, records[0])
	if engine, _ := records[0]["engine"].(map[string]any); engine["exit_code"] != 137.0 {
		t.Errorf("the engine's word: %v", records[0])
	}
	u.want(137, "up", u.name, "--foreground")
	if now := u.identity(); now != check || u.inspect("{{.State.Status}}") != "exited" {
		t.Errorf("the container was %s and is %s", check, now)
	}
	if runs, _ := u.file("/home/agent/.claude/runs"); runs != "run\n" || len(u.records()) != 1 {
		t.Errorf("it was run again: %q, %v", runs, u.records())
	}
}

// onPrivateEngine is a deployment on an engine that may be killed.
type onPrivateEngine struct {
	*user
	engine *privateEngine
}

func (d *onPrivateEngine) sibling(suffix string) *onPrivateEngine {
	return &onPrivateEngine{d.user.sibling(suffix), d.engine}
}

// volume is the content of a file in the agent's ~/.claude.
func (d *onPrivateEngine) volume(file string) string {
	d.t.Helper()
	return d.engine.volumeFile(d.container()+"-claude", file)
}

// runs counts how often a job with countRun was run.
func (d *onPrivateEngine) runs() int {
	d.t.Helper()
	return strings.Count(d.volume("runs"), "run\n")
}

// state is the container's state, which container it is, and which start of it.
func (d *onPrivateEngine) state() string {
	d.t.Helper()
	return d.engine.inspect(d.container(), "{{.State.Status}} {{.Id}} started {{.State.StartedAt}}")
}

// waitRunning waits until the container runs.
func (d *onPrivateEngine) waitRunning() {
	d.t.Helper()
	eventually(d.t, 20*time.Second, func() string {
		if now := d.state(); !strings.HasPrefix(now, "running ") {
			return d.name + " is " + now
		}
		return ""
	})
}

// finished returns a check that a job that has ended is as it was, also after
// an up: the same end of the same container, and as many runs and records.
func (d *onPrivateEngine) finished() func() {
	d.t.Helper()
	state, runs, records := d.state(), d.runs(), len(d.records())
	return func() {
		d.t.Helper()
		d.must("up", d.name)
		if now := d.state(); now != state {
			d.t.Errorf("%s was %s and is %s", d.name, state, now)
		}
		if r, l := d.runs(), len(d.records()); r != runs || l != records {
			d.t.Errorf("%s had run %d times, with %d records, and has %d times, with %d", d.name, runs, records, r, l)
		}
	}
}

// engineEnd is a way in which an engine ends, and what follows from it.
type engineEnd struct {
	name           string
	end            func()
	outcome, cause string // of a job that ran
	code           any
	session        string // the outcome of a session that ran
	byItself       bool   // whether the engine starts again what ran
}

// fleet is one deployment of each kind.
type fleet struct {
	job, good, bad         *onPrivateEngine // a job that runs, one that succeeded, one that failed
	idle, session, stopped *onPrivateEngine
}

const sessionTask = "do it once"

func newFleet(u *user, engine *privateEngine) fleet {
	u.t.Helper()
	d := &onPrivateEngine{u, engine}
	f := fleet{d.sibling("job"), d.sibling("good"), d.sibling("bad"), d.sibling("idle"), d.sibling("session"), d.sibling("stopped")}
	f.good.job(0, countRun, "--foreground")
	f.bad.job(9, countRun+"exit 9", "--foreground", "--headless-restart", "on-failure:3")
	if good, bad := f.good.runs(), f.bad.runs(); good != 1 || bad != 4 {
		u.t.Fatalf("the jobs were run %d and %d times", good, bad)
	}
	u.must("up", f.idle.name, "--mode", "idle")
	u.must("up", f.session.name, "--task", sessionTask)
	eventually(u.t, 20*time.Second, func() string {
		if got := f.session.volume("stub-argv"); !contains(got, sessionTask) {
			return "the session's agent has not got its task: " + got
		}
		return ""
	})
	u.must("up", f.stopped.name, "--mode", "idle")
	u.must("stop", f.stopped.name)
	return f
}

// newJob gives the job that runs a new task and waits until it is at it.
func (f fleet) newJob() (runs int) {
	t := f.job.t
	t.Helper()
	deploy := f.job.again
	if f.job.records() == nil {
		deploy = f.job.job
	}
	runs = f.job.runs() + 1
	deploy(0, countRun+untilStopped, "--headless-restart", "on-failure:3")
	eventually(t, 20*time.Second, func() string {
		if n := f.job.runs(); n != runs {
			return fmt.Sprintf("the job was run %d times, not %d", n, runs)
		}
		return ""
	})
	return runs
}

// survives ends the engine while all is as newFleet left it, starts it again,
// and checks what has become of each.
func (f fleet) survives(u *user, engine *privateEngine, c engineEnd) {
	t := u.t
	t.Helper()
	runs := f.newJob()
	f.idle.waitRunning()
	f.session.waitRunning()
	checkGood, checkBad, stopped := f.good.finished(), f.bad.finished(), f.stopped.state()
	open := f.session.records()[0]
	if open["outcome"] != "" {
		t.Fatalf("the session is not open: %v", open)
	}

	c.end()
	u.want(5, "list")
	engine.start()

	if c.byItself {
		f.idle.waitRunning()
		f.session.waitRunning()
	}
	if r := u.must("up", f.job.name); !contains(r.stdout, c.outcome) {
		t.Errorf("up does not say that the job is %s: %s", c.outcome, r)
	}
	records := f.job.hostRecords()
	if len(records) != runs {
		t.Fatalf("%d runs have left %d records: %v", runs, len(records), records)
	}
	wantEnd(t, records[0], c.outcome, c.cause, c.code)
	if c.outcome == "lost" {
		wantNote(t, records[0])
	}
	if n := f.job.runs(); n != runs || !strings.HasPrefix(f.job.state(), "exited ") {
		t.Errorf("the job was run again: %d times, not %d; it is %s", n, runs, f.job.state())
	}
	checkGood()
	checkBad()
	if now := f.stopped.state(); now != stopped {
		t.Errorf("what was stopped was %s and is %s", stopped, now)
	}

	u.must("up", f.idle.name)
	f.idle.waitRunning()
	u.must("up", f.session.name)
	f.session.waitRunning()
	records = f.session.hostRecords()
	if len(records) < 2 || records[0]["outcome"] != "" || records[1]["id"] != open["id"] || records[1]["outcome"] != c.session || records[1]["ended_at"] == nil {
		t.Fatalf("the session's record %v is not closed as %s, with an open one after it: %v", open["id"], c.session, records)
	}
	if c.session == "lost" {
		wantNote(t, records[1])
	}
	eventually(t, 20*time.Second, func() string {
		if got := f.session.volume("stub-argv"); contains(got, sessionTask) {
			return "the session's agent was not started, or got its task again: " + got
		}
		return ""
	})
}

// onlyPrivate copies the user's image to the engine, and makes the engine the
// user's.
func (u *user) onlyPrivate(engine *privateEngine) {
	u.t.Helper()
	images := []string{u.imageOf(u.must("build", "--json"))}
	for _, base := range []string{"debian:trixie-slim", "localhost/agent-container-base:trixie"} {
		if dockerTry(u.t, "image", "inspect", base).code == 0 {
			images = append(images, base) // its id is part of the image's name
		}
	}
	engine.start()
	engine.load(images...)
	u.env = append(u.env, "DOCKER_HOST="+engine.host,
		"AGENT_CONTAINER_SSH_BIND=none") // its machine has no address at all
}

// After its engine was stopped, killed or lost with the whole machine no job
// may be run again, every open record must be closed with what happened, what
// was stopped must stay so, and what ran must run.
func TestEngineRestarts(t *testing.T) {
	engine := newPrivateEngine(t)
	u := newUser(t)
	u.withStub()
	u.onlyPrivate(engine)
	f := newFleet(u, engine)
	for _, c := range []engineEnd{
		{"stopped in order", engine.stop, "stopped", "engine-stop", 7, "ended", true},
		// Back again, the engine ends in order the containers that it finds
		// running, and takes that for the user's own stop.
		{"killed", engine.kill, "stopped", "engine-stop", 7, "ended", false},
		{"lost with the machine", engine.powerOff, "lost", "lost", nil, "lost", true},
	} {
		t.Logf("the engine is %s", c.name)
		f.survives(u, engine, c)
	}
	t.Log("the shared network goes between create and start") // here, where nobody else uses it
	for _, d := range []*onPrivateEngine{f.job, f.good, f.bad, f.idle, f.session, f.stopped} {
		u.must("wipe", d.name, "--yes")
	}
	f.idle.withoutNetwork()
}

// withoutNetwork deploys while somebody else removes the shared network at the
// worst moment, as the wipe of the last deployment beside this one may.
func (d *onPrivateEngine) withoutNetwork() {
	d.t.Helper()
	path := d.withDocker(1, "start", "%s network rm agent-container >&2")
	if r := d.runWith(nil, []string{path}, "up", d.name, "--mode", "idle", "--env", "A=b"); r.code != 0 {
		d.t.Fatal(r)
	}
	if _, err := os.Stat(d.path("done")); err != nil {
		d.t.Fatalf("the network was never removed: %v", err)
	}
	d.waitRunning()
	if r := d.must("exec", d.name, "--", "sh", "-c", "echo $A"); r.stdout != "b\n" {
		d.t.Errorf("the container was not filled: %s", r)
	}
}
