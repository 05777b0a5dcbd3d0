package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/images"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/runs"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// Exit codes. An agent may exit with any of them too: the run record, not the
// number, is authoritative.
const (
	exitDone        = 0
	exitFailed      = 1
	exitRefused     = 2
	exitPending     = spec.ExitPending
	exitNotFound    = 4
	exitUnreachable = 5
	exitBusy        = 6
	exitTimeLimit   = spec.ExitTimeLimit
	exitOurs        = 125
	exitInterrupted = 130
	exitTerminated  = 143
)

// ExitCode is one row of the exit-code table, from which --help, the JSON
// envelope and docs/exit-codes.md come.
type ExitCode struct {
	Code    int
	Name    string // error.code of the JSON envelope
	Meaning string
}

// ExitCodes is the table of exit codes.
var ExitCodes = []ExitCode{
	{exitDone, "done", "done; also nothing to do"},
	{exitFailed, "failed", "failed"},
	{exitRefused, "refused", "refused: wrong usage, invalid spec or settings, confirmation missing"},
	{exitPending, "pending", "pending: the container is up and waits for its SSH key to be registered"},
	{exitNotFound, "not_found", "no such deployment, session, run, key, or pane or client of tmux"},
	{exitUnreachable, "unreachable", "runtime missing, unreachable or too old"},
	{exitBusy, "busy", "busy: another operation, or what a killed one has left at work, holds this deployment"},
	{exitTimeLimit, "limit", "a time or spending limit of ours ended the run"},
	{exitOurs, "after_start", "up and redeploy --foreground, exec, attach -- CMD: we failed after the container was started"},
	{exitInterrupted, "interrupted", "interrupted"},
	{exitTerminated, "terminated", "terminated"},
}

// codeName returns the JSON name of a code; any other is the agent's own.
func codeName(code int) string {
	for _, c := range ExitCodes {
		if c.Code == code {
			return c.Name
		}
	}
	return "exit"
}

// failure is an error on its way to the user.
type failure struct {
	code    int
	name    string // JSON name, where it is not the code's own
	message string
	hint    string // the next command, or what to change
	data    any    // what is known all the same, for JSON
	result  bool   // it is how the run ended, such as a failed set-up
	quiet   bool   // the message was said already, or is the agent's own matter
	cause   error
}

func (f *failure) Error() string { return f.message }
func (f *failure) Unwrap() error { return f.cause }

// fail makes a failure with a code of the table.
func fail(code int, hint, format string, args ...any) *failure {
	err := fmt.Errorf(format, args...)
	return &failure{code: code, message: err.Error(), hint: hint, cause: errors.Unwrap(err)}
}

// refuse makes a failure for something that was asked for and must not be done.
func refuse(hint, format string, args ...any) *failure {
	return fail(exitRefused, hint, format, args...)
}

// childExit is the end of a child whose exit status becomes ours.
func childExit(code int, what string, data any) *failure {
	return &failure{code: code, name: "exit", message: fmt.Sprintf("%s exited with status %d", what, code), data: data, quiet: true}
}

// Causes with which a signal cancels the context.
var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
	errHungUp      = fmt.Errorf("hung up: %w", errTerminated)
)

// asFailure maps every error to its exit code, in this one place.
func asFailure(err error) *failure {
	var (
		own         *failure
		specError   *spec.Error
		setting     *settings.Error
		services    *compose.ServicesError
		unreachable *engine.UnreachableError
		foreign     *engine.ForeignError
		run         *runs.NotFoundError
		busy        *busyError
		child       *process.ExitError
	)
	f := &failure{code: exitFailed, message: err.Error(), cause: err}
	full := diskFull(err)
	switch {
	case errors.As(err, &own) && (own.code == exitInterrupted || own.code == exitTerminated):
		return own // it says what is left
	case errors.Is(err, errInterrupted):
		f.code = exitInterrupted
	case errors.Is(err, errTerminated):
		f.code = exitTerminated
	case errors.As(err, &own):
		return own
	case errors.As(err, &specError):
		f.code, f.hint = exitRefused, specError.Hint
	case errors.As(err, &setting):
		f.code, f.hint = exitRefused, setting.Hint
	case errors.As(err, &services):
		f.code, f.hint = exitRefused, services.Hint
	case errors.As(err, &foreign):
		f.code, f.hint = exitRefused, "remove or rename it yourself, or choose another NAME"
	case errors.As(err, &unreachable):
		// Which of the questions that were asked at once heard it first says nothing.
		f.code, f.hint, f.message = exitUnreachable, unreachable.Hint, unreachable.Error()
	case errors.As(err, &run):
		f.code, f.hint = exitNotFound, "run: agent-container runs list"
	case errors.As(err, &busy):
		f.code, f.hint = exitBusy, "wait for it, or end that process"
	case errors.Is(err, images.ErrNoGuest):
		f.hint = "build it with: make build"
	case full != "":
		f.message = fmt.Sprintf("disk full at %s: %v", full, err)
		f.hint = "free some of it (df -h " + process.Quote([]string{full}) + "), then run the same command again"
	case errors.As(err, &child) && strings.Contains(child.Stderr, syscall.ENOSPC.Error()):
		f.hint = "the engine's disk is full, see: docker system df; then run the same command again"
	case errors.Is(err, context.DeadlineExceeded):
		f.hint = "try again; with -v every engine command is shown"
	}
	return f
}

// diskFull returns where err says that a disk, or a user's share of one, is
// full, and "" when it does not. A temporary file is gone by now: then it is
// the nearest directory above it that exists.
func diskFull(err error) string {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return ""
	}
	var (
		at   *fs.PathError
		link *os.LinkError
		path string
	)
	switch {
	case errors.As(err, &at):
		path = at.Path
	case errors.As(err, &link):
		path = link.New
	}
	if !filepath.IsAbs(path) {
		return ""
	}
	for {
		if _, err := os.Lstat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// isResult reports whether err is how a run ended, and not trouble in finding
// that out.
func isResult(err error) bool {
	f := asFailure(err)
	return f.name == "exit" || f.code == exitTimeLimit || f.result
}

// afterStart turns an error of ours into 125: where an agent's own code may be
// returned, 1 to 6 would be taken for its.
func afterStart(err error) error {
	if err == nil {
		return nil
	}
	f := asFailure(err)
	if f.code == exitInterrupted || f.code == exitTerminated || f.name == "exit" {
		return f
	}
	g := *f
	g.code = exitOurs
	return &g
}
