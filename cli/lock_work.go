package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/agent-container/agent-container/process"
)

// Killed with its command, docker tells a plugin that has just been started nothing,
// and Compose goes on without both (docker 28.2, Compose 2.26: 2 of 8 that got TERM
// within 100 ms). It would work against the next command, so it holds a lock that the
// next one waits for.

// workTime is how long that is waited for: Compose gives what it stops 15 s.
const workTime = 30 * time.Second

// holdWork takes the work lock, which what is started until release has too. The
// caller holds the deployment's lock: whoever has this one was started by a command
// that is no more. It is waited for; a command that stops what is billed goes on then
// without it, as it does where there is no room for the file.
func (a *app) holdWork(ctx context.Context, name string, hold func(*os.File)) (release func(), err error) {
	path := a.operationPath(name, workLock)
	f, err := openLock(path)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EROFS):
		return func() {}, nil
	case err != nil:
		return nil, err
	}
	taken, err := a.takeWork(ctx, name, f)
	if err != nil || !taken {
		_ = f.Close()
		return func() {}, err
	}
	open, _ := f.Stat() // nil is the same as nothing
	if named, _ := os.Stat(path); !os.SameFile(open, named) {
		_ = f.Close() // a purge removed it meanwhile
		return a.holdWork(ctx, name, hold)
	}
	hold(f)
	return func() {
		hold(nil)
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // what still runs has the same lock
		_ = f.Close()
	}, nil
}

// takeWork locks f, and waits for it. It returns false when the command is one to go
// on without it.
func (a *app) takeWork(ctx context.Context, name string, f *os.File) (bool, error) {
	for began, told := time.Now(), false; ; {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch waited := time.Since(began); {
		case err == nil:
			return true, nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return false, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		case a.orphaned:
			return false, nil
		case waited > workTime && a.ends:
			a.orphaned = true
			a.say("NOTE: what a killed command has started on %s is still at work after %s; going on without waiting for it", name, workTime)
			return false, nil
		case waited > workTime:
			return false, fail(exitBusy, "see what it is, and end it: fuser -v "+process.Quote([]string{f.Name()})+"; then run the command again",
				"what a killed command has started on %s is still at work after %s", name, workTime)
		case waited > time.Second && !told:
			a.say("waiting for what a killed command has started on %s", name)
			told = true
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// openLock opens a lock of ours, and nothing but a file: for writing, without which
// NFS locks nothing.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, fail(exitFailed, "remove it", "lock %s: not a regular file", path)
	}
	return f, nil
}

// awaitOrphans waits until nothing that a killed command has started is at work on the
// deployment, before it is looked at. A command that lives is another matter: whoever
// wants its lock is told so.
func (a *app) awaitOrphans(ctx context.Context, name string) error {
	if !a.atWork(name) {
		return nil
	}
	// Other questions are asked of the engine meanwhile: they inherit nothing.
	release, err := a.lockWith(ctx, name, func(*os.File) {})
	var busy *busyError
	if errors.As(err, &busy) {
		return nil
	}
	if err == nil {
		release()
	}
	return err
}

// atWork reports whether a command, or what one has started, changes the deployment
// now. It is in nobody's way: the work lock is waited for, not tried once.
func (a *app) atWork(name string) bool {
	f, err := os.OpenFile(a.operationPath(name, workLock), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false // nobody has ever held it; what else is wrong is told where it is wanted
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
