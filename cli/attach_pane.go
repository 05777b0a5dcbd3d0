package cli

import (
	"context"
	"os"
	"time"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/panes"
	"github.com/agent-container/agent-container/spec"
)

// showInPane tells whoever watches the panes of the user's tmux whose screen this one
// shows from now on, until the returned function is called. A pane without its marks is
// no reason not to attach.
func (a *app) showInPane(ctx context.Context, e *engine.Engine, s spec.Spec) (leave func()) {
	pane := a.env("TMUX_PANE")
	if a.env("TMUX") == "" || !a.terminal || !panes.ValidID(pane) {
		return func() {}
	}
	err := a.tmux().Attach(ctx, pane, panes.Found{Agent: s.Agent, Runtime: e.Runtime}, os.Getpid())
	if err != nil {
		a.say("warning: the tmux pane %s gets no marks: %v", pane, err)
		return func() {}
	}
	return func() {
		// Left behind, it would count for nothing without this process.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = a.tmux().Detach(last, pane)
	}
}
