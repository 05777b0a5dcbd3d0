package cli

import "context"

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
