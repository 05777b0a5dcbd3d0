package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// busyError says that another process holds a deployment.
type busyError struct {
	name   string
	holder string // "pid 42 since 2026-01-02T15:04:05Z", or empty
}

func (e *busyError) Error() string {
	if e.holder == "" {
		return fmt.Sprintf("another operation on %s is in progress", e.name)
	}
	return fmt.Sprintf("another operation on %s is in progress: %s", e.name, e.holder)
}

// lock holds a deployment until release; it is the kernel's, so a killed
// process leaves none behind. It returns a *busyError at once when it is held.
func (a *app) lock(name string) (release func(), err error) {
	dir := a.dirs.Deployment(engine.LocalHost, name)
	if err := settings.MakePrivate(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "lock")
	l := flock.New(path, flock.SetPermissions(0o600))
	held, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if held && !sameFile(l, path) {
		// A purge removed the file between our opening and our locking it.
		_ = l.Unlock()
		return a.lock(name)
	}
	if !held {
		holder, _ := os.ReadFile(path) // for the message only
		return nil, &busyError{name, strings.TrimSpace(spec.Printable(string(holder), 200))}
	}
	// The file's text is for whoever finds it held; the lock itself is flock's.
	note := fmt.Sprintf("pid %d since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	if err := os.WriteFile(path, []byte(note), 0o600); err != nil {
		_ = l.Unlock()
		return nil, err
	}
	return func() { _ = l.Unlock() }, nil
}

// waitLock holds a lock that is shared by deployments, such as an image's,
// waiting for it as long as ctx lives.
func (a *app) waitLock(ctx context.Context, name string) (release func(), err error) {
	dir := filepath.Join(a.dirs.State, engine.LocalHost, ".locks")
	if err := settings.MakePrivate(dir); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(dir, name), flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return func() { _ = l.Unlock() }, nil
}

// absent reports whether err says that a file does not exist.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// sameFile reports whether a locked file is still what its path names.
func sameFile(l *flock.Flock, path string) bool {
	open, err := l.Stat()
	named, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(open, named)
}
