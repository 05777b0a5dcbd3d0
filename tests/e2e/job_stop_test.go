package e2e

import (
	"syscall"
	"testing"
	"time"
)

// grace is what a container may take to end (compose.StopGrace).
const grace = 15 * time.Second

// deaf is a child of the agent that does not listen and keeps its output open.
const deaf = `sh -c 'trap "" TERM; while :; do sleep 1; done' & `

// wantStopped checks that the agent was told to stop, took its leave with code
// 7, and that container and record say so.
func (u *user) wantStopped() {
	u.t.Helper()
	if _, ok := u.file(mark); !ok {
		u.t.Error("TERM did not reach the agent")
	}
	if code := u.inspect("{{.State.Status}} {{.State.ExitCode}}"); code != "exited 7" {
		u.t.Errorf("the container is %s, not exited 7", code)
	}
	wantEnd(u.t, u.record(), "stopped", "engine-stop", 7)
}

// Stopping a running job must reach the agent and close the record, within the
// grace time, also while a child of the agent does not listen.
func TestStopReachesTheAgent(t *testing.T) {
	u := newUser(t)
	u.withStub()
	for _, stop := range []func(){
		func() { docker(t, "stop", u.container()) },
		func() { u.must("stop", u.name) },
	} {
		if len(u.records()) == 0 {
			u.job(0, deaf+untilStopped)
		} else {
			u.again(0, untilStopped)
		}
		u.waitLog("started")
		stop()
		u.wantStopped() // with a code of its own: nobody was killed at the end of the grace time
	}
}

// An agent that ignores TERM must be killed by the engine, and the record must
// be closed all the same.
func TestStopOfADeafAgent(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.job(0, `trap "" TERM; echo started; while :; do sleep 0.1; done`)
	u.waitLog("started")
	docker(t, "stop", "--time", "5", u.container())
	record := u.record()
	wantEnd(t, record, "stopped", "engine-stop", nil)
	if engine, _ := record["engine"].(map[string]any); engine["exit_code"] != 137.0 {
		t.Errorf("the engine's word: %v", record)
	}
}

// A stop that comes while the repository is still being read, before the agent
// runs, must close the record as well.
func TestStopBeforeTheAgentRuns(t *testing.T) {
	u := newUser(t)
	u.withStub()
	// This git takes its time over rev-parse, as it would with a huge work tree.
	u.write("repo/images/agents/claude/bin/git", `#!/bin/sh
case "$*" in
--version) exit 0 ;; # where the image is built there is no other
*rev-parse*) touch /workspace/reading; sleep 2 ;;
esac
exec /usr/bin/git "$@"
`)
	u.must("up", u.name, "--mode", "idle")
	image := u.inspect("{{.Config.Image}}")
	t.Cleanup(func() {
		u.must("wipe", u.name, "--yes")
		docker(t, "image", "rm", image) // no other test has it
	})
	u.must("exec", u.name, "--", "git", "init", "-q", "/workspace")
	redeploy := u.start("redeploy", u.name, "--mode", "headless", "--task", "x", "--env", "STUB_RUN="+untilStopped)
	eventually(t, 60*time.Second, func() string {
		if dockerTry(t, "exec", u.container(), "test", "-e", "/workspace/reading").code != 0 {
			return "the repository is not being read: " + redeploy.errOut.String()
		}
		return ""
	})
	docker(t, "stop", u.container())
	redeploy.wait(time.Minute)
	record := u.record()
	if record["outcome"] != "stopped" || record["cause"] != "engine-stop" || record["ended_at"] == nil {
		t.Errorf("the record: %v", record)
	}
}

// A signal to a followed job must stop it in order, and say by our exit code
// which signal it was.
func TestSignalStopsAFollowedJob(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		t.Run(c.signal.String(), func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			f := u.start("up", u.name, "--mode", "headless", "--foreground", "--task", "x", "--env", "STUB_RUN="+deaf+untilStopped)
			f.said("started\n")
			f.signal(c.signal)
			if r := f.wait(time.Minute); r.code != c.code {
				t.Errorf("want exit %d: %s", c.code, r)
			}
			u.wantStopped()
		})
	}
}

// A second signal must kill an agent that does not listen to the first.
func TestSecondSignalKillsAFollowedJob(t *testing.T) {
	u := newUser(t)
	u.withStub()
	f := u.start("up", u.name, "--mode", "headless", "--foreground", "--task", "x",
		"--env", `STUB_RUN=trap 'echo heard it' TERM; echo started; while :; do sleep 0.1; done`)
	f.said("started\n")
	began := time.Now()
	f.signal(syscall.SIGINT)
	f.said("heard it")
	f.signal(syscall.SIGINT)
	if r := f.wait(time.Minute); r.code != 130 {
		t.Errorf("want exit 130: %s", r)
	}
	// After the grace time the engine would have killed it without a second signal.
	if took := moment(t, u.inspect("{{.State.FinishedAt}}")).Sub(began); took >= grace {
		t.Errorf("it was killed %s after the first signal", took)
	}
	if code := u.inspect("{{.State.Status}} {{.State.ExitCode}}"); code != "exited 137" {
		t.Errorf("the container is %s", code)
	}
	wantEnd(t, u.record(), "stopped", "engine-stop", nil)
}

// A container that is killed with its record open must be closed as lost by
// the next verb, with what the engine knows.
func TestKilledContainerIsLost(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.job(0, untilStopped)
	u.waitLog("started")
	if record := u.record(); record["outcome"] != "" || record["ended_at"] != nil {
		t.Errorf("the record of a running job has an end: %v", record)
	}
	docker(t, "kill", "--signal", "KILL", u.container())
	u.waitState("exited")
	record := u.record()
	wantEnd(t, record, "lost", "lost", nil)
	if engine, _ := record["engine"].(map[string]any); engine["exit_code"] != 137.0 || engine["status"] != "exited" {
		t.Errorf("the engine's word: %v", record)
	}
	if notes, _ := record["notes"].([]any); len(notes) == 0 {
		t.Errorf("no note says why: %v", record)
	}
	if again := u.record(); again["ended_at"] != record["ended_at"] || len(u.records()) != 1 {
		t.Errorf("the record changed: %v, was %v", again, record)
	}
	u.want(137, "up", u.name, "--foreground")
}
