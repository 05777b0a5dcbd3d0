package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/spec"
)

// job is a headless run: what was asked, and what is counted over its attempts.
type job struct {
	*guest
	spec.Job
	deadline time.Time // zero for none
	signals  <-chan os.Signal
	lost     <-chan string // why the gateway is
	env      []string
}

// headless runs the agent's unattended form with the task on stdin and ends
// with its status. A failed attempt is followed by another when the policy says
// so: the guest does that, and not the engine, because only it knows that an
// attempt timed out or was stopped, and none may be run after that.
func (g *guest) headless([]string) error {
	// First of all: a stop while the repository is read must close the record.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	j := job{guest: g, signals: signals}
	var err error
	if j.Job, err = g.job(); err == nil {
		j.env, err = g.environment()
	}
	if err == nil {
		j.deadline, err = g.readDeadline(j.Limits.Run)
	}
	if err == nil {
		// From here on the task is the agent's: a container that is started once
		// more, by whatever, must not run it again.
		err = g.consumeTask()
	}
	if err != nil {
		return g.notStarted(err)
	}
	j.lost = g.watchGateway()
	for attempt := 1; ; attempt++ {
		end, err := j.attempt(attempt)
		if err != nil {
			return err
		}
		if !j.again(attempt, end) {
			return statusOf(end.code)
		}
		if err := g.openRecord(attempt + 1); err != nil {
			// An attempt without a record would not be accounted for.
			say("error: no further attempt: %v", err)
			return statusOf(end.code)
		}
	}
}

// statusOf is the guest's own end with a status.
func statusOf(code int) error {
	if code == 0 {
		return nil
	}
	return exitStatus(code)
}

// attempt runs the agent once and closes its record.
func (j *job) attempt(number int) (ending, error) {
	out, err := j.newOutput()
	if err != nil {
		return ending{}, j.notStarted(err)
	}
	defer out.close()
	cmd, err := j.command(out)
	if err != nil {
		return ending{}, j.notStarted(err)
	}
	select {
	case <-j.signals:
		end := ending{outcome: spec.OutcomeStopped, cause: spec.CauseStop, code: 128 + int(syscall.SIGTERM), note: "stopped before the agent was started"}
		j.close(end)
		return end, nil
	default:
	}
	killed, _ := oomKills() // where the kernel does not count, no end is called oom
	if err := cmd.Start(); err != nil {
		return ending{}, j.notStarted(err)
	}
	if number == 1 {
		if err := j.setStatus(spec.Status{State: spec.Ready}); err != nil {
			say("error: %v", err) // the agent runs all the same
		}
	}
	end, err := j.supervise(cmd, out, killed)
	// What the agent left in its group would go on beside the next attempt.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	written := out.close()
	if err == nil {
		j.lookForGateway(&end)
		j.close(end, func(r *spec.Record) { r.OutputBytes = written })
	}
	return end, err
}

// command prepares one run of the agent.
func (j *job) command(out *output) (*exec.Cmd, error) {
	task, err := j.openTask()
	if err != nil {
		return nil, err
	}
	err = j.updateRecord(func(r *spec.Record) {
		r.Repository = j.startRepository()
		now := time.Now().UTC()
		r.AgentAt = &now
	})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(j.agent.Headless[0], j.agent.Headless[1:]...)
	cmd.Stdin, cmd.Dir, cmd.Env = task, j.workspace, j.env
	cmd.Stdout, cmd.Stderr = out.to(os.Stdout), out.to(os.Stderr)
	// A child that outlives the agent may keep its output open; it is not waited for.
	cmd.WaitDelay = 2 * time.Second
	// A group of its own, so that a stop reaches the agent's children too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// openTask opens the filled task; a job without one gets an empty input.
func (g *guest) openTask() (*os.File, error) {
	f, err := os.Open(g.fill(spec.FillTask))
	if errors.Is(err, fs.ErrNotExist) {
		return os.Open(os.DevNull)
	}
	return f, err
}

// Waiting before another attempt, as the engines do: from 100 ms, doubled each
// time, to a minute.
const (
	firstWait = 100 * time.Millisecond
	maxWait   = time.Minute
)

// again waits and reports whether another attempt is to be made after one that
// ended so.
func (j *job) again(attempt int, end ending) bool {
	allowed := j.Restart.Attempts()
	if end.final() || allowed != 0 && attempt >= allowed {
		return false
	}
	wait := maxWait
	if attempt < 10 {
		wait = min(firstWait<<(attempt-1), maxWait)
	}
	if !j.deadline.IsZero() && time.Until(j.deadline) <= wait {
		j.note("there is no time left for another attempt")
		return false
	}
	say("attempt %d exited with status %d; the next one starts in %s", attempt, end.code, wait)
	select {
	case <-j.signals:
		j.note("stopped before another attempt")
		return false
	case <-time.After(wait):
		return true
	}
}

// note adds a sentence to the last record, for whoever reads it and the log.
func (j *job) note(text string) {
	say("%s", text)
	if err := j.updateRecord(func(r *spec.Record) { r.Notes = append(r.Notes, text) }); err != nil {
		say("error: %v", err)
	}
}

// notStarted records that the agent's program could not be run at all.
func (g *guest) notStarted(err error) error {
	reason := fmt.Sprintf("%s could not be started: %v", g.agent.Executable, err)
	one := 1
	if err := g.closeRecord(spec.OutcomeFailed, spec.CauseSetup, &one, reason); err != nil {
		say("error: %v", err)
	}
	return errors.Join(errors.New(reason), g.setStatus(spec.Status{State: spec.Failed, Phase: "agent", Reason: reason}))
}

// startDeadline fixes when the job's time is over, once: it counts from the
// container's start and over all attempts.
func (g *guest) startDeadline(limit spec.Duration) error {
	if limit == 0 || exists(g.fill(spec.FileDeadline)) {
		return nil
	}
	at := time.Now().Add(time.Duration(limit)).UTC().Format(time.RFC3339Nano)
	return wrap("deadline", renameio.WriteFile(g.fill(spec.FileDeadline), []byte(at), 0o600))
}

// readDeadline returns when the job's time is over, zero for never.
func (g *guest) readDeadline(limit spec.Duration) (time.Time, error) {
	b, err := os.ReadFile(g.fill(spec.FileDeadline))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(b)))
	// From a wall clock, which may have been set meanwhile, to one that no
	// adjustment moves.
	left := time.Until(at)
	if limit > 0 {
		left = min(left, time.Duration(limit))
	}
	return time.Now().Add(left), wrap("deadline", err)
}
