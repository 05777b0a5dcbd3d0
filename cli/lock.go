package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
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

// Names of the locks in a deployment's state directory. The first is held by the
// command that changes the deployment, the second also by every program that it
// starts meanwhile.
const (
	deploymentLock = "lock"
	workLock       = "work.lock"
)

// lock holds a deployment until release; it is the kernel's, so a killed
// process leaves none behind. It returns a *busyError at once when it is held, and
// waits for what a killed command has left at work.
func (a *app) lock(ctx context.Context, name string) (release func(), err error) {
	return a.lockWith(ctx, name, a.runner.Hold)
}

// lockWith is lock; hold is given the file that children are to inherit, and nil at the
// end.
func (a *app) lockWith(ctx context.Context, name string, hold func(*os.File)) (release func(), err error) {
	if err := settings.MakePrivate(a.dirs.Deployment(engine.LocalHost, name)); err != nil {
		return nil, err
	}
	path := a.operationPath(name, deploymentLock)
	l := lockFile(path)
	held, err := l.TryLock()
	if err := lockError(l, err); err != nil {
		_ = l.Unlock()
		return nil, err
	}
	if held && !sameFile(l, path) {
		// A purge removed the file between our opening and our locking it.
		_ = l.Unlock()
		return a.lockWith(ctx, name, hold)
	}
	if !held {
		return nil, &busyError{name, lockHolder(ctx, path)}
	}
	// The file's text is for whoever finds it held; the lock itself is flock's.
	// Without the text it holds as well: to stop an agent must not need room on
	// a disk.
	note := fmt.Sprintf("pid %d since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	_ = os.WriteFile(path, []byte(note), 0o600)
	unlock := func() {
		if sameFile(l, path) {
			_ = os.Truncate(path, 0) // whoever holds it next is not us
		}
		_ = l.Unlock()
	}
	work, err := a.holdWork(ctx, name, hold)
	switch {
	case err != nil && !sameFile(l, path): // a purge, as above
		unlock()
		return a.lockWith(ctx, name, hold)
	case err != nil:
		unlock()
		return nil, err
	}
	return sync.OnceFunc(func() { work(); unlock() }), nil
}

// lockFile is a lock that opens nothing but a file: a FIFO would wait for
// another process, and through a link the note would go into another file.
func lockFile(path string) *flock.Flock {
	return flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK))
}

// lockError is what is wrong with a lock that was tried with err, nil when it
// was had or is another's.
func lockError(l *flock.Flock, err error) error {
	if err == nil {
		info, statErr := l.Stat()
		if statErr == nil && info.Mode().IsRegular() || errors.Is(statErr, fs.ErrNotExist) {
			return nil // of what is gone the caller knows better
		}
		err = statErr
	}
	if err == nil || errors.Is(err, syscall.ELOOP) {
		return fail(exitFailed, "remove it", "lock %s: not a regular file", l.Path())
	}
	return fmt.Errorf("lock %s: %w", l.Path(), err)
}

// lockHolder is what the holder of a lock has written into it, on one line. One
// that has just got it is given a second to write.
func lockHolder(ctx context.Context, path string) (text string) {
	for range 50 {
		note, _ := settings.ReadRegular(path, 1000) // for a message only
		text = strings.TrimSpace(spec.Printable(string(note), 200))
		if text != "" || pause(ctx, 20*time.Millisecond) != nil {
			break
		}
	}
	return text
}

// waitLock holds a lock that is shared by deployments, such as an image's,
// waiting for it as long as ctx lives.
func (a *app) waitLock(ctx context.Context, name string) (release func(), err error) {
	dir := filepath.Join(a.dirs.State, engine.LocalHost, ".locks")
	if err := settings.MakePrivate(dir); err != nil {
		return nil, err
	}
	l := lockFile(filepath.Join(dir, name))
	_, err = l.TryLockContext(ctx, 50*time.Millisecond)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	if err := lockError(l, err); err != nil {
		_ = l.Unlock()
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
