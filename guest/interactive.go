package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/spec"
)

// maxTaskArgument is the longest task passed as an argument; the kernel's own
// limit for one argument is 128 KiB.
const maxTaskArgument = 100 << 10

// interactive runs the agent in its tmux window. When it quits, the window
// becomes a shell: an empty session would look like a lost one.
func (g *guest) interactive([]string) error {
	env, err := g.environment()
	if err != nil {
		return err
	}
	// It may take long: hold must be able to close the record meanwhile.
	repository := g.startRepository()
	if err := g.updateRecord(func(r *spec.Record) { r.Repository = repository }); err != nil {
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
		return argv, g.taskDelivered()
	}
	if err := g.consumeTask(); err != nil {
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

// consumeTask marks the task as an agent's from now on: whatever happens, it is
// given to no other. Half of this done, a redeploy asks for the task again.
func (g *guest) consumeTask() error {
	return errors.Join(g.taskDelivered(), renameio.WriteFile(g.fill(spec.FileConsumed), nil, 0o600))
}

// taskDelivered empties what a redeploy would take for a task that nobody has
// got yet.
func (g *guest) taskDelivered() error {
	path := filepath.Join(g.secretsDir, spec.FillUndelivered)
	if !exists(path) {
		return nil
	}
	return renameio.WriteFile(path, nil, 0o600)
}

// startSession makes the tmux session "main": the agent's window and a shell.
func (g *guest) startSession() error {
	env, err := g.environment()
	if err != nil {
		return err
	}
	for _, argv := range [][]string{
		// A restart begins with a fresh session; -A would attach to a dying one.
		{"new-session", "-d", "-s", "main", "-n", "agent", "-x", "200", "-y", "50", override(spec.EnvGuest, spec.ContainerGuest), "interactive"},
		{"new-window", "-d", "-t", "=main:", "-n", "shell"},
	} {
		cmd := exec.Command("tmux", argv...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("tmux %s: %w: %s", argv[0], err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// hold keeps the container until it is told to stop, then closes the record
// and ends the tmux server.
func (g *guest) hold([]string) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if s, err := g.readStatus(); err == nil && s.State == spec.Starting {
		// The phase was killed, for its memory most likely, and could not say so.
		if err := g.setStatus(spec.Status{State: spec.Failed, Phase: s.Phase, Reason: "it was killed"}); err != nil {
			say("error: %v", err)
		}
	}
	select {
	case <-signals:
	case why := <-g.watchGateway():
		return g.holdCutOff(why)
	}
	switch g.mode {
	case spec.Idle:
		return nil
	case spec.Headless: // it holds only while its set-up waits
		code := 128 + int(syscall.SIGTERM)
		return errors.Join(exitStatus(code), g.closeRecord(spec.OutcomeStopped, spec.CauseStop, &code, "it waited for its SSH key to be registered; no agent was started"))
	}
	now := time.Now()
	return g.endSession(func(r *spec.Record) { r.Finish(spec.OutcomeEnded, spec.CauseStop, nil, now) })
}

// endSession closes the record with finish, ends the tmux server, so that its programs
// are hung up in time, and adds last what may take long.
func (g *guest) endSession(finish func(*spec.Record)) error {
	err := g.updateRecord(finish)
	_ = exec.Command("tmux", "kill-server").Run() // there may be none left
	// The agent's window writes the record too, once: what it had read before the end
	// has undone the end.
	again := func(r *spec.Record) {
		if r.EndedAt == nil {
			finish(r)
		}
	}
	return errors.Join(err, g.updateRecord(again), g.updateRecord(func(r *spec.Record) {
		again(r)
		g.completeRepository(r)
	}))
}

// holdCutOff ends a container whose gateway is lost: started again, it waits for
// one that proves itself.
func (g *guest) holdCutOff(why string) error {
	say("error: %s", why)
	code, now := 128+int(syscall.SIGTERM), time.Now()
	return errors.Join(exitStatus(code), g.endSession(func(r *spec.Record) {
		r.Finish(spec.OutcomeFailed, spec.CauseEgress, &code, now)
		r.Notes = append(r.Notes, why)
	}))
}
