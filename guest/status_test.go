package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

func TestStatusVerb(t *testing.T) {
	// The check must print the status and fail unless it is ready.
	b := newBox(t, "claude", spec.Idle)
	if code, _, _ := b.guest("status", "check"); code != 1 {
		t.Errorf("check without a status: exit %d", code)
	}
	for line, want := range map[string]int{"starting seed": 1, "failed seed: two lines: and more": 1, "ready": 0} {
		b.fill(spec.FileStatus, line+"\n")
		if code, out, _ := b.guest("status", "check"); code != want || out != line+"\n" {
			t.Errorf("%q: check gives %d, %q", line, code, out)
		}
	}
	for _, args := range [][]string{{"status"}, {"status", "starting", "x"}, {"status", "sideways"}} {
		if code, _, said := b.guest(args...); code != 1 || !strings.Contains(said, "usage: status") {
			t.Errorf("%q: exit %d, %q", args, code, said)
		}
	}
}

func TestStatusIsNotTrusted(t *testing.T) {
	// What an agent may put in the status's place must not hold up or flood whoever asks.
	for name, spoil := range map[string]func(path string) error{
		"fifo":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"link":      func(p string) error { return os.Symlink("/dev/zero", p) },
		"large":     func(p string) error { return os.WriteFile(p, make([]byte, 1<<20), 0o600) },
	} {
		b := newBox(t, "claude", spec.Idle)
		if err := spoil(filepath.Join(b.p.RunDir, spec.FileStatus)); err != nil {
			t.Fatal(err)
		}
		r := b.start(program, "status", "check")
		if code := r.wait(); code != 1 || len(r.out.String()) > 0 {
			t.Errorf("%s: exit %d, %q", name, code, r.out.String())
		}
	}
	b := newBox(t, "claude", spec.Idle)
	b.fill(spec.FileStatus, "failed seed: "+strings.Repeat("long ", 500)+"\n")
	if _, out, _ := b.guest("status", "check"); !strings.HasPrefix(out, "failed seed: long") || len(out) > 1100 {
		t.Errorf("a long reason: %d bytes", len(out))
	}
}

func TestStatusWaitLooksAtTheStatusAge(t *testing.T) {
	// A status that is not written again must be no progress, but for the one that the host has filled, by whatever clock.
	old := time.Now().Add(-time.Hour)
	for line, want := range map[string]string{
		"starting container": "starting container\n", "starting seed": "failed seed: no progress for 1m0s\n",
	} {
		b := newBox(t, "claude", spec.Idle)
		b.fill(spec.FileStatus, line+"\n")
		if err := os.Chtimes(filepath.Join(b.p.RunDir, spec.FileStatus), old, old); err != nil {
			t.Fatal(err)
		}
		if code, out, stderr := b.guest("status", "wait"); code != 0 || out != want {
			t.Errorf("%s: exit %d, %q, want %q\n%s", line, code, out, want, stderr)
		}
	}
}

func TestStatusWait(t *testing.T) {
	// Waiting must go on through the phases and end with the final line at once.
	for _, final := range []string{"ready", "failed seed: no room"} {
		b := newBox(t, "claude", spec.Idle)
		r := b.start(program, "status", "wait")
		for _, line := range []string{"starting environment", "starting seed"} {
			b.fill(spec.FileStatus, line+"\n")
			if r.ended() {
				t.Fatalf("it ended at %q", line)
			}
		}
		b.fill(spec.FileStatus, final+"\n")
		set := time.Now()
		if code := r.wait(); code != 0 || r.out.String() != final+"\n" {
			t.Errorf("exit %d, %q", code, r.out.String())
		}
		if took := time.Since(set); took > 5*time.Second {
			t.Errorf("it took %s to see %q", took, final)
		}
	}
}
