// Package process starts programs on the host. It is the only importer of
// os/exec there, so that every argv passes one place: what is traced is what is
// run, and nothing secret may ever be in one.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Command is one program to run.
type Command struct {
	Argv   []string  // program, looked up on PATH, and its arguments
	Stdin  io.Reader // nil reads from an empty input, never from the terminal
	Stdout io.Writer // nil discards
	Stderr io.Writer // nil keeps the last lines for the error, see also KeepStderr
	Dir    string    // working directory; empty means the caller's

	// Foreground leaves the program in our process group, which it needs to
	// read a terminal; it gets Ctrl-C itself then. Otherwise it runs in a group
	// of its own, so that Ctrl-C reaches us alone and we decide.
	Foreground bool

	// Apart leaves the program without what the runner holds.
	Apart bool

	// KeepStderr keeps the last lines for the error also where Stderr is set.
	KeepStderr bool

	// Grace is how long the program may take to end after TERM before it is
	// killed; 0 means three seconds.
	Grace time.Duration
}

// Runner runs commands. The zero value is usable.
type Runner struct {
	Trace io.Writer // where each argv is printed, nil for nowhere
	Env   []string  // the environment of every program; nil means the caller's

	held atomic.Pointer[os.File]
}

// Hold has every program that is started from now on inherit f, a locked file, or
// nothing when f is nil: a lock is there as long as anybody has it open, so one that
// outlives us, killed, is seen to be at work.
func (r *Runner) Hold(f *os.File) { r.held.Store(f) }

// With is a runner as r is, whose programs get variables ("NAME=value") as well. What r
// holds they do not inherit.
func (r *Runner) With(variables ...string) *Runner {
	env := r.Env
	if env == nil {
		env = os.Environ()
	}
	return &Runner{Trace: r.Trace, Env: append(slices.Clip(env), variables...)}
}

// ExitError says that a program ran and ended with a status other than 0.
type ExitError struct {
	Argv   []string
	Code   int    // exit status, or 128 + the signal's number
	Stderr string // its last lines, where they were kept
}

func (e *ExitError) Error() string {
	status := fmt.Sprintf("exit status %d", e.Code)
	// docker 28 ends some errors with a line that says no more than that, and
	// start ends with one that names the container; the reason stands before.
	said := strings.TrimSuffix(strings.TrimSpace(e.Stderr), status)
	text := lastLine(said)
	if strings.HasPrefix(text, "Error: failed to start containers:") {
		if reason := lastLine(strings.TrimSuffix(strings.TrimSpace(said), text)); reason != "" {
			text = reason
		}
	}
	if text == "" {
		text = status
	}
	return fmt.Sprintf("%s: %s", Short(e.Argv), text)
}

// ErrNotFound is wrapped by Run's error when the program is not on PATH.
var ErrNotFound = exec.ErrNotFound

// defaultGrace is the Grace of a command that names none.
const defaultGrace = 3 * time.Second

// keepStderr bounds what is kept of a program's stderr for its error.
const keepStderr = 64 << 10

// Run runs c to its end. When ctx ends first, the program's whole group gets
// TERM and, after a grace time, KILL, and ctx's error is returned. A non-zero
// status is an *ExitError.
func (r *Runner) Run(ctx context.Context, c Command) error {
	if r.Trace != nil {
		fmt.Fprintln(r.Trace, "+ "+Quote(c.Argv))
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = c.Stdin, c.Stdout, c.Stderr, c.Dir, r.Env
	kept := &tail{limit: keepStderr}
	switch {
	case c.Stderr == nil:
		cmd.Stderr = kept
	case c.KeepStderr:
		cmd.Stderr = io.MultiWriter(c.Stderr, kept)
	}
	group := !c.Foreground
	grace := c.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	// It also bounds the reading of what a program has left in its pipe when it ended
	// by itself: on a busy machine a short one would cut the output.
	cmd.WaitDelay = max(grace, defaultGrace)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: group}
	endWithUs(cmd.SysProcAttr)
	if held := r.held.Load(); held != nil && !c.Apart {
		cmd.ExtraFiles = []*os.File{held}
	}
	var late *time.Timer
	cmd.Cancel = func() error {
		late = time.AfterFunc(grace, func() { kill(cmd.Process, group) })
		return end(cmd.Process.Pid, group)
	}
	err := cmd.Run()
	if late != nil {
		late.Stop()
	}
	if group && ctx.Err() != nil && cmd.Process != nil {
		// Whatever of the group outlived its leader.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return fmt.Errorf("%s: %w", Short(c.Argv), cause)
	}
	return classify(c.Argv, err, kept)
}

// Output runs c and returns its stdout.
func (r *Runner) Output(ctx context.Context, c Command) ([]byte, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := r.Run(ctx, c)
	return out.Bytes(), err
}

// end asks a process, or its whole group, to terminate.
func end(pid int, group bool) error {
	if group {
		pid = -pid
	}
	err := syscall.Kill(pid, syscall.SIGTERM)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// kill kills a process, or its whole group.
func kill(p *os.Process, group bool) {
	if group {
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	}
	_ = p.Kill() // nothing once it was waited for
}

// classify turns the error of exec into ours.
func classify(argv []string, err error, kept *tail) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit):
		code := exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			code = 128 + int(status.Signal())
		}
		return &ExitError{Argv: argv, Code: code, Stderr: kept.String()}
	case errors.Is(err, exec.ErrWaitDelay):
		// The program ended with 0 but left its output open in a child.
		return nil
	}
	return fmt.Errorf("%s: %w", Short(argv), err)
}

// Short names argv for an error: the program and its first verb.
func Short(argv []string) string {
	if len(argv) > 1 && !strings.HasPrefix(argv[1], "-") {
		return argv[0] + " " + argv[1]
	}
	return argv[0]
}

// Quote renders argv so that it can be pasted into a POSIX shell.
func Quote(argv []string) string {
	quoted := make([]string, len(argv))
	for i, a := range argv {
		quoted[i] = a
		if a == "" || strings.ContainsFunc(a, needsQuote) {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func needsQuote(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("@%+=:,./-_", r)
}

// lastLine returns the last line of text that is not blank.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return strings.TrimSpace(text)
}

// tail keeps the last limit bytes written to it.
type tail struct {
	limit int
	buf   []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.limit; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.buf) }
