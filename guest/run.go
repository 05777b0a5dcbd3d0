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

// maxTaskArgument is the longest task passed as an argument; the kernel's own
// limit for one argument is 128 KiB.
const maxTaskArgument = 100 << 10

// headless runs the agent's unattended form with the task on stdin and ends
// with its status. TERM and INT close the record first, because the engine's
// grace may end before the agent has, and are then forwarded.
func (g *guest) headless([]string) error {
	// First of all: a stop while the repository is read must close the record.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	cmd, err := g.headlessCommand()
	if err != nil {
		return g.notStarted(err)
	}
	select {
	case <-signals:
		code := 128 + int(syscall.SIGTERM)
		return errors.Join(g.closeRecord(spec.OutcomeStopped, spec.CauseStop, &code, "stopped before the agent was started"), exitStatus(code))
	default:
	}
	if err := cmd.Start(); err != nil {
		return g.notStarted(err)
	}
	if err := g.setStatus(spec.Status{State: spec.Ready}); err != nil {
		say("error: %v", err) // the agent runs all the same
	}
	return g.supervise(cmd, signals)
}

// headlessCommand prepares the agent's run.
func (g *guest) headlessCommand() (*exec.Cmd, error) {
	env, err := g.environment()
	if err != nil {
		return nil, err
	}
	task, err := g.openTask()
	if err != nil {
		return nil, err
	}
	if err := g.updateRecord(func(r *spec.Record) { r.Repository = g.startRepository() }); err != nil {
		return nil, err
	}
	cmd := exec.Command(g.agent.Headless[0], g.agent.Headless[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = task, os.Stdout, os.Stderr, g.workspace, env
	// A group of its own, so that a stop reaches the agent's children too.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// supervise waits for the agent and answers signals meanwhile.
func (g *guest) supervise(cmd *exec.Cmd, signals <-chan os.Signal) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if err := g.updateRecord(func(r *spec.Record) { r.Finish(spec.OutcomeStopped, spec.CauseStop, nil, time.Now()) }); err != nil {
				say("error: %v", err)
			}
			_ = syscall.Kill(-cmd.Process.Pid, s.(syscall.Signal)) // it may be gone already; Wait tells
		case err := <-done:
			return g.ended(err)
		}
	}
}

// openTask opens the filled task; a job without one gets an empty input.
func (g *guest) openTask() (*os.File, error) {
	f, err := os.Open(g.fill(spec.FillTask))
	if errors.Is(err, fs.ErrNotExist) {
		return os.Open(os.DevNull)
	}
	return f, err
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

// ended closes the record with the agent's status and returns it.
func (g *guest) ended(waitErr error) error {
	code, cause := 0, spec.CauseExit
	var exit *exec.ExitError
	if errors.As(waitErr, &exit) {
		code = exit.ExitCode()
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			code, cause = 128+int(s.Signal()), spec.CauseSignal
		}
	} else if waitErr != nil {
		return waitErr
	}
	outcome := spec.OutcomeFinished
	if code != 0 {
		outcome = spec.OutcomeFailed
	}
	if err := g.closeRecord(outcome, cause, &code); err != nil {
		say("error: %v", err)
	}
	if code != 0 {
		return exitStatus(code)
	}
	return nil
}

// interactive runs the agent in its tmux window. When it quits, the window
// becomes a shell: an empty session would look like a lost one.
func (g *guest) interactive([]string) error {
	env, err := g.environment()
	if err != nil {
		return err
	}
	if err := g.updateRecord(func(r *spec.Record) { r.Repository = g.startRepository() }); err != nil {
		say("error: %v", err)
	}
	argv, err := g.interactiveArgv()
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = os.Stdin, os.Stdout, os.Stderr, g.workspace, env
	// The terminal's signals are the agent's. They are caught, not ignored: an
	// ignored signal would be inherited by the agent.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT)
	err = cmd.Run()
	say("%s ended (%s); this window is now a shell", g.agent.Name, endWords(err))
	shell := override(spec.EnvTmuxShell, "/bin/bash")
	return syscall.Exec(shell, []string{shell}, env)
}

func endWords(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}

// interactiveArgv is the agent's argv with the task, the first time. The task
// is marked consumed before the agent gets it: a crash, a restart or a reboot
// never sends it again.
func (g *guest) interactiveArgv() ([]string, error) {
	argv := append([]string(nil), g.agent.Interactive...)
	task, err := os.ReadFile(g.fill(spec.FillTask))
	if errors.Is(err, fs.ErrNotExist) || exists(g.fill(spec.FileConsumed)) {
		return argv, nil
	}
	if err != nil {
		return nil, err
	}
	if !g.agent.TakesTask {
		say("NOTE: %s takes no task at its start; it is in %s", g.agent.Name, g.fill(spec.FillTask))
		return argv, nil
	}
	if err := renameio.WriteFile(g.fill(spec.FileConsumed), nil, 0o600); err != nil {
		return nil, err
	}
	text := string(task)
	if strings.TrimSpace(text) == "" {
		return argv, nil
	}
	if len(text) > maxTaskArgument || strings.HasPrefix(text, "-") || strings.HasPrefix(text, "@") {
		text = "Do the task in " + g.fill(spec.FillTask)
	}
	return append(append(argv, g.agent.TaskArgs...), text), nil
}

// hold keeps the container until it is told to stop, then closes the record
// and ends the tmux server.
func (g *guest) hold([]string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
	if g.mode != spec.Interactive {
		return nil
	}
	// The end first, then the session, so that its programs are hung up in time,
	// and last what may take long.
	err := g.updateRecord(func(r *spec.Record) { r.Finish(spec.OutcomeEnded, spec.CauseStop, nil, time.Now()) })
	_ = exec.Command("tmux", "kill-server").Run() // there may be none left
	return errors.Join(err, g.updateRecord(g.completeRepository))
}
