package process

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stubborn starts a shell whose child ignores TERM, prints both process ids,
// and waits. Its output is closed in the child, so that only signals end it.
const stubborn = `
sh -c 'trap "" TERM; echo child $$; exec >&- 2>&-; while :; do sleep 60; done' &
trap "" TERM
echo leader $$
wait
wait`

// startCancelled runs c, calls stop as soon as n lines were printed, and
// returns the lines and the error.
func startCancelled(t *testing.T, ctx context.Context, stop func(), c Command, n int) ([]string, error) {
	t.Helper()
	r, w := io.Pipe()
	c.Stdout = w
	done := make(chan error, 1)
	go func() { done <- new(Runner).Run(ctx, c) }()
	var lines []string
	in := bufio.NewScanner(r)
	for len(lines) < n && in.Scan() {
		lines = append(lines, in.Text())
	}
	stop()
	go io.Copy(io.Discard, r)
	return lines, <-done
}

// gone reports whether a process ends within five seconds; a zombie counts.
func gone(pid int) bool {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

func TestCancelKillsTheGroup(t *testing.T) {
	// When the context ends, the whole group must be gone, also a child and a leader that ignore TERM, and the context's cause be returned.
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("took too long")
	start := time.Now()
	lines, err := startCancelled(t, ctx, func() { cancel(cause) }, sh(stubborn), 2)
	if !errors.Is(err, cause) || errors.As(err, new(*ExitError)) {
		t.Errorf("error %v, want %v", err, cause)
	}
	if took := time.Since(start); took > 2*defaultGrace+5*time.Second {
		t.Errorf("it took %v", took)
	}
	if len(lines) != 2 {
		t.Fatalf("lines %q", lines)
	}
	for _, line := range lines {
		who, text, _ := strings.Cut(line, " ")
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if !gone(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Errorf("the %s, %d, is alive", who, pid)
		}
	}
}

func TestCancelAsksFirst(t *testing.T) {
	// A program that ends itself on TERM must be given the time to.
	ctx, cancel := context.WithCancel(t.Context())
	file := t.TempDir() + "/cleaned"
	_, err := startCancelled(t, ctx, cancel, sh(`trap 'echo yes >"$1"; exit 0' TERM; echo up; while :; do sleep 0.01; done`, file), 1)
	content, readErr := os.ReadFile(file)
	if !errors.Is(err, context.Canceled) || string(content) != "yes\n" {
		t.Errorf("error %v, file %q %v", err, content, readErr)
	}
}

func TestTimeout(t *testing.T) {
	// A deadline must end the program and be the error.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := new(Runner).Run(ctx, sh("exec sleep 60"))
	if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "sh: context deadline exceeded" {
		t.Errorf("%v", err)
	}
}

func TestCancelledBefore(t *testing.T) {
	// With a context that ended already nothing may be started.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := t.TempDir() + "/started"
	err := new(Runner).Run(ctx, sh(`: >"$1"`, file))
	if _, statErr := os.Stat(file); !errors.Is(err, context.Canceled) || statErr == nil {
		t.Errorf("error %v, file %v", err, statErr)
	}
}

func TestChildKeepsOutputOpen(t *testing.T) {
	// A program that succeeded must count as successful although a child of it keeps its output open.
	t.Parallel()
	start := time.Now()
	out, err := new(Runner).Output(t.Context(), sh("sleep 60 & echo $!"))
	if err != nil || time.Since(start) > defaultGrace+5*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(out))); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	} else {
		t.Errorf("output %q", out)
	}
}

func TestGraceIsForCancellationAlone(t *testing.T) {
	// A short grace must cut nothing of what a program leaves behind that ends by itself, and end one that is deaf.
	t.Parallel()
	c := sh("sleep 0.5 && echo late & echo early")
	c.Grace = 50 * time.Millisecond
	if out, err := new(Runner).Output(t.Context(), c); err != nil || string(out) != "early\nlate\n" {
		t.Errorf("%q, %v", out, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c = sh("trap '' TERM; echo up; while :; do sleep 0.01; done")
	c.Grace = 50 * time.Millisecond
	start := time.Now()
	if _, err := startCancelled(t, ctx, cancel, c, 1); !errors.Is(err, context.Canceled) || time.Since(start) > defaultGrace {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	// Its children, which hold its output, too.
	ctx, cancel = context.WithCancel(t.Context())
	c = sh("trap '' TERM; sleep 60 & echo up; sleep 60")
	c.Grace = 50 * time.Millisecond
	start = time.Now()
	if _, err := startCancelled(t, ctx, cancel, c, 1); !errors.Is(err, context.Canceled) || time.Since(start) > defaultGrace {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}

func TestHeldFileIsInherited(t *testing.T) {
	// What a runner holds every program must have open, but one that is apart, one of another runner, and one after it was let go.
	f, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := new(Runner)
	inherits := func(r *Runner, apart bool) bool {
		c := sh("[ -d /dev/fd/3/. ]")
		c.Apart = apart
		return r.Run(t.Context(), c) == nil
	}
	before := inherits(r, false)
	r.Hold(f)
	if before || !inherits(r, false) || inherits(r, true) || inherits(r.With("A=b"), false) {
		t.Errorf("before %v, held %v, apart %v, another %v", before, inherits(r, false), inherits(r, true), inherits(r.With("A=b"), false))
	}
	if r.Hold(nil); inherits(r, false) {
		t.Error("it is inherited after it was let go")
	}
}

func TestOwnGroup(t *testing.T) {
	// A program must run in a group of its own, so that Ctrl-C reaches us alone, except where it has the terminal.
	for _, terminal := range []bool{false, true} {
		c := sh(`cut -d' ' -f5 /proc/$$/stat`)
		c.Foreground = terminal
		out, err := new(Runner).Output(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		ours := strings.TrimSpace(string(out)) == strconv.Itoa(syscall.Getpgrp())
		if ours != terminal {
			t.Errorf("terminal %v: in our group %v", terminal, ours)
		}
	}
}
