package cli

import (
	"context"

	ucli "github.com/urfave/cli/v2"
)

// checkEgress refuses a declaration under which d could not work, and says what
// its agent needs. It comes last of what is checked before anything is created.
func (a *app) checkEgress(_ context.Context, _ *ucli.Context, _ *deployment) error { return nil }
