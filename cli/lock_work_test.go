package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/settings"
)

// deafProgram runs until the file that it is given exists, whatever it is sent.
var deafProgram = []string{"sh", "-c", `trap '' TERM; echo runs; while [ ! -e "$0" ]; do sleep 0.05; done`}

// lockAndRun locks web, starts deafProgram and releases the lock when released is set.
func lockAndRun(t *testing.T, state string, released bool) {
	a := &app{dirs: settings.Directories{State: state}, runner: &process.Runner{}}
	release, err := a.lock(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	if released {
		time.AfterFunc(100*time.Millisecond, release) // it runs by then, or is started without
	}
	_ = a.runner.Run(context.Background(), process.Command{Argv: append(deafProgram, filepath.Join(state, "end")), Stdout: os.Stdout})
}

func TestLockWaitsForWhatAKilledCommandStarted(t *testing.T) {
	// A program that was started under the lock must keep the next command waiting when the command that started it was killed; once the lock was released it must not.
	if state := os.Getenv("LOCK_AND_RUN"); state != "" {
		lockAndRun(t, state, os.Getenv("LOCK_RELEASED") == "1")
		return
	}
	t.Parallel()
	for about, released := range map[string]string{"killed": "", "released": "1"} {
		a, _ := lockingApp(t)
		a.err = io.Discard
		command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		command.Env = append(os.Environ(), "LOCK_AND_RUN="+a.dirs.State, "LOCK_RELEASED="+released)
		out, err := command.StdoutPipe()
		if err = errors.Join(err, command.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("runs"))); err != nil {
			t.Fatal(err)
		}
		if released == "" {
			_ = command.Process.Kill()
			_ = command.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if _, err := a.lock(ctx, "web"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: it does not wait: %v", about, err)
			}
			cancel()
			said := &strings.Builder{}
			ending := &app{dirs: a.dirs, runner: &process.Runner{}, err: said, ends: true}
			for range 2 { // the second time it does not wait
				release, err := ending.lock(t.Context(), "web")
				if err != nil {
					t.Fatalf("%s: a command that stops is kept from it: %v", about, err)
				}
				release()
			}
			if strings.Count(said.String(), "NOTE: what a killed command has started on web is still at work") != 1 {
				t.Errorf("%s: it says %q", about, said)
			}
			endSoon(t, a.dirs.State, 500*time.Millisecond)
		}
		soon(t, about, func() {
			for {
				if err := a.awaitOrphans(t.Context(), "web"); err != nil {
					t.Errorf("%s: %v", about, err)
				}
				release, err := a.lock(t.Context(), "web")
				if err == nil {
					release()
					return
				}
				if released == "" || !errors.As(err, new(*busyError)) { // it is about to be released
					t.Errorf("%s: %v", about, err)
					return
				}
			}
		})
		endSoon(t, a.dirs.State, 0)
	}
}

// endSoon ends deafProgram after d.
func endSoon(t *testing.T, state string, d time.Duration) {
	t.Helper()
	time.AfterFunc(d, func() { _ = os.WriteFile(filepath.Join(state, "end"), nil, 0o600) })
}
