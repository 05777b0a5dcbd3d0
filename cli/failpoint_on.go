//go:build failpoints

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// reached kills the command ("NAME kill"), interrupts it ("NAME int") or gives
// it an error ("NAME error") when AGENT_CONTAINER_FAILPOINT names the step that
// was just done, so that tests see every command finish that is run again.
func reached(ctx context.Context, name string) error {
	place, kind, _ := strings.Cut(os.Getenv("AGENT_CONTAINER_FAILPOINT"), " ")
	if place != name {
		return nil
	}
	fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", name, kind)
	switch kind {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it comes at once
	case "int":
		_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Second):
			return errors.New("the interrupt did not arrive")
		}
	}
	return errors.New("an error of the engine at " + name)
}
