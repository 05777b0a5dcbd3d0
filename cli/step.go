package cli

import (
	"context"
	"sync"
	"time"
)

// step is one part of a command that changes something. It is named for what is
// done when it returns; a build with the tag failpoints can end the command there.
type step struct {
	done string
	do   func() error
}

// take does the steps in order, until one fails.
func take(ctx context.Context, steps ...step) error {
	for _, s := range steps {
		if err := s.do(); err != nil {
			return err
		}
		if err := reached(ctx, s.done); err != nil {
			return err
		}
	}
	return nil
}

// together does what does not depend on each other at the same time, since each
// is a process that mostly waits. It returns when all have ended; the first to
// fail ends the others, and its error is returned.
func together(ctx context.Context, list ...func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, do := range list {
		all.Go(func() {
			if err := do(ctx); err != nil {
				cancel(failed{err}) // the first one's stays
			}
		})
	}
	all.Wait()
	switch cause := context.Cause(ctx).(type) {
	case failed:
		return cause.error
	default:
		return cause
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// failed is why together ended early: the error of one, not the end of the
// context that it was given.
type failed struct{ error }
