package cli

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/settings"
)

// lockingApp is an app with a state directory, and the path of web's lock in it.
func lockingApp(t *testing.T) (*app, string) {
	t.Helper()
	a := &app{dirs: settings.Directories{State: t.TempDir()}, runner: &process.Runner{}}
	dir := a.dirs.Deployment(engine.LocalHost, "web")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return a, filepath.Join(dir, "lock")
}

// soon runs f and fails the test when it takes longer than anybody waits.
func soon(t *testing.T, about string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: it hangs", about)
	}
}

func TestLockRefusesWhatIsNoFile(t *testing.T) {
	// What stands in a lock's place and is no file of ours must be an error with its path, at once, and stay as it is.
	for about, c := range map[string]struct {
		make func(path string) error
		says string
	}{
		"directory": {func(p string) error { return os.Mkdir(p, 0o700) }, "is a directory"},
		"fifo":      {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "not a regular file"},
		"link":      {func(p string) error { return os.Symlink("precious", p) }, "not a regular file"},
		"dangling":  {func(p string) error { return os.Symlink("nowhere", p) }, "not a regular file"},
		"loop":      {func(p string) error { return os.Symlink(p, p) }, "not a regular file"},
		"socket": {func(p string) error {
			l, err := net.Listen("unix", p)
			if err == nil {
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		}, "no such device or address"},
	} {
		for _, shared := range []bool{false, true} {
			a, path := lockingApp(t)
			if shared {
				path = filepath.Join(a.dirs.State, engine.LocalHost, ".locks", "subnets")
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			precious := filepath.Join(filepath.Dir(path), "precious")
			if err := errors.Join(os.WriteFile(precious, []byte("precious"), 0o600), c.make(path)); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			soon(t, about, func() {
				if shared {
					_, err = a.waitLock(t.Context(), "subnets")
				} else {
					_, err = a.lock(t.Context(), "web")
				}
			})
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.says) || asFailure(err).code != exitFailed {
				t.Errorf("%s, shared %t: %v", about, shared, err)
			}
			if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() || !os.SameFile(before, after) {
				t.Errorf("%s, shared %t: it was replaced: %v", about, shared, err)
			}
			if b, err := os.ReadFile(precious); err != nil || string(b) != "precious" {
				t.Errorf("%s, shared %t: the link's target holds %q, %v", about, shared, b, err)
			}
			if _, err := os.Lstat(filepath.Join(filepath.Dir(path), "nowhere")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, shared %t: the link's target was made: %v", about, shared, err)
			}
		}
	}
}

func TestLockWhateverItHolds(t *testing.T) {
	// A lock file's text must not matter: the lock is had whatever it is, and whoever finds it held is told so on a short line, without a text that is too long for a note.
	for about, content := range map[string]string{"empty": "", "cut": "pid 1", "garbage": "\xff\x00\x1b[2J\n\n", "long": strings.Repeat("x", 1<<20)} {
		a, path := lockingApp(t)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		release, err := a.lock(t.Context(), "web")
		if err != nil {
			t.Errorf("%s: %v", about, err)
			continue
		}
		if note, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(note), "pid ") || strings.Count(string(note), "\n") != 1 {
			t.Errorf("%s: the note is %.100q, %v", about, note, err)
		}
		// Somebody scribbles over it while it is held.
		if err := errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Truncate(path, 100<<20)); err != nil {
			t.Fatal(err)
		}
		soon(t, about, func() { _, err = a.lock(t.Context(), "web") })
		var busy *busyError
		if !errors.As(err, &busy) || busy.holder != "" || len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\x1b\n\x00") {
			t.Errorf("%s: while held: %.400q", about, err)
		}
		release()
		again, err := a.lock(t.Context(), "web")
		if err != nil {
			t.Errorf("%s: after the release: %v", about, err)
			continue
		}
		again()
	}
}
