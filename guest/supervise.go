package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// ending is how one attempt ended.
type ending struct {
	outcome spec.Outcome
	cause   spec.Cause
	code    int
	note    string
	alone   bool // the gateway was lost by then
}

// final reports whether no attempt may follow: success, and whatever was ended
// from outside or by a limit, which another attempt would only meet again.
func (e ending) final() bool {
	return e.code == 0 || e.alone || e.cause == spec.CauseTimeout || e.cause == spec.CauseStop || e.cause == spec.CauseEgress
}

// close ends the record. Trouble with it is said and changes nothing: the agent's
// end, and what follows from it, is what it is.
func (j *job) close(e ending, more ...func(*spec.Record)) {
	var notes []string
	if e.note != "" {
		notes = []string{e.note}
	}
	for _, change := range more {
		if err := j.updateRecord(change); err != nil {
			say("error: %v", err)
		}
	}
	if err := j.closeRecord(e.outcome, e.cause, &e.code, notes...); err != nil {
		say("error: %v", err)
	}
}

// killGrace is how long the agent may take to end after TERM when a limit of
// ours was reached. It is shorter than the engine's own grace for the container.
const killGrace = 10 * time.Second

// supervise waits for the agent, answers signals, and keeps its time.
func (j *job) supervise(cmd *exec.Cmd, out *output, killed int64) (ending, error) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var (
		over  *ending // why it was told to end, nil while it was not
		kill  <-chan time.Time
		total = timer(j.deadline)
		idle  = time.NewTimer(time.Hour)
	)
	defer idle.Stop()
	limit := time.Duration(j.Limits.Idle)
	if limit > 0 {
		idle.Reset(limit)
	}
	for {
		select {
		case s := <-j.signals:
			if over == nil {
				over = &ending{outcome: spec.OutcomeStopped, cause: spec.CauseStop, code: 128 + int(s.(syscall.Signal))}
				j.closeEarly(*over, nil)
			}
			signalGroup(cmd, s.(syscall.Signal))
		case why := <-j.lost:
			if over == nil {
				over, kill = j.cutOff(cmd, why)
			}
		case <-total:
			total = nil
			if over == nil {
				over, kill = j.timeOver(cmd, fmt.Sprintf("the time limit of %s was reached", j.Limits.Run))
			} else if kill == nil {
				kill = time.After(killGrace) // told to stop, and still there
			}
		case <-idle.C:
			quiet := j.quiet(out, limit)
			switch {
			case limit == 0:
			case quiet < limit:
				idle.Reset(limit - quiet)
			case over == nil:
				over, kill = j.timeOver(cmd, fmt.Sprintf("no output for %s", j.Limits.Idle))
			case kill == nil:
				kill = time.After(killGrace)
			}
		case <-kill:
			signalGroup(cmd, syscall.SIGKILL)
		case err := <-done:
			return endingOf(err, over, killed)
		}
	}
}

// quiet is for how long the agent has shown no sign of work: some print nothing
// before they end, but keep what they do in their own directories.
func (j *job) quiet(out *output, limit time.Duration) time.Duration {
	last := out.last()
	if limit == 0 || time.Since(last) < limit {
		return time.Since(last)
	}
	for _, v := range j.agent.State {
		if at := newestFile(j.inHome(v.Path)); at.After(last) && !at.After(time.Now()) {
			last = at
		}
	}
	return time.Since(last)
}

// maxLooked bounds the search for signs of work.
const maxLooked = 20000

// newestFile is when a file below dir was written last, the zero time for never.
func newestFile(dir string) time.Time {
	var newest time.Time
	looked := 0
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if looked++; looked > maxLooked {
			return fs.SkipAll
		}
		if err != nil || d.IsDir() {
			return nil // what cannot be read shows nothing
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
		return nil
	})
	return newest
}

// timer is a channel that fires at t, never for the zero time.
func timer(t time.Time) <-chan time.Time {
	if t.IsZero() {
		return nil
	}
	return time.After(time.Until(t))
}

// timeOver ends the agent because of a limit.
func (j *job) timeOver(cmd *exec.Cmd, reason string) (*ending, <-chan time.Time) {
	say("%s; ending the agent", reason)
	return j.endAgent(cmd, ending{outcome: spec.OutcomeFailed, cause: spec.CauseTimeout, code: spec.ExitTimeLimit, note: reason})
}

// cutOff ends the agent because the gateway is lost: it reaches nothing any more,
// and must not be able to make that look like success.
func (j *job) cutOff(cmd *exec.Cmd, why string) (*ending, <-chan time.Time) {
	say("error: %s", why)
	return j.endAgent(cmd, ending{outcome: spec.OutcomeFailed, cause: spec.CauseEgress, code: 128 + int(syscall.SIGTERM), note: why})
}

// endAgent ends the agent for a reason of ours: the record first, which must be
// right even if the container is killed next, then TERM, and later KILL.
func (j *job) endAgent(cmd *exec.Cmd, end ending) (*ending, <-chan time.Time) {
	j.closeEarly(end, &end.code)
	signalGroup(cmd, syscall.SIGTERM)
	return &end, time.After(killGrace)
}

// closeEarly closes the record before the agent has ended. Without a code the
// agent's own is added once it is known.
func (j *job) closeEarly(e ending, code *int) {
	if err := j.updateRecord(func(r *spec.Record) { r.Finish(e.outcome, e.cause, code, time.Now()) }); err != nil {
		say("error: %v", err)
	}
}

// signalGroup signals the agent and its children; they may be gone already.
func signalGroup(cmd *exec.Cmd, s syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, s) }

// endingOf reads the agent's status. What told it to end, over, decides the
// outcome; a stopped agent's own code stays.
func endingOf(waitErr error, over *ending, killed int64) (ending, error) {
	e := ending{outcome: spec.OutcomeFinished, cause: spec.CauseExit}
	var exit *exec.ExitError
	switch {
	case errors.As(waitErr, &exit):
		e.outcome, e.code = spec.OutcomeFailed, exit.ExitCode()
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			e.cause, e.code = spec.CauseSignal, 128+int(s.Signal())
			// The engine's own word for it is also true when only a child was killed.
			if now, ok := oomKills(); ok && now > killed && s.Signal() == syscall.SIGKILL {
				e.cause, e.note = spec.CauseOOM, "the agent was killed because the container's memory was used up"
			}
		}
	case waitErr != nil && !errors.Is(waitErr, exec.ErrWaitDelay):
		return e, waitErr
	}
	switch {
	case over == nil:
	case over.cause == spec.CauseStop:
		over.code = e.code // 0 when it ended in order
		return *over, nil
	case over.cause == spec.CauseEgress && e.code != 0:
		over.code = e.code
		return *over, nil
	default:
		return *over, nil
	}
	return e, nil
}
