package panes

import (
	"context"
	"errors"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// sayOption holds a text while it is shown: tmux reads what stands in its arguments as a
// format, which can run commands, but not what stands in an option.
const sayOption = "@agent_container_says"

// clientTime is how long Say waits for a client: a program that tmux.conf has started is
// there before the first one.
const clientTime = 10 * time.Second

// Say shows a line on a client, or, with client "", on every one. Where there is none it
// waits for one, for a while.
func (t Tmux) Say(ctx context.Context, client, text string) error {
	ctx, cancel := context.WithTimeout(ctx, clientTime)
	defer cancel()
	clients, err := t.clients(ctx)
	for err == nil && len(clients) == 0 {
		select {
		case <-ctx.Done():
			return errors.New("no client of tmux is there to show it")
		case <-time.After(lookEvery):
		}
		clients, err = t.clients(ctx)
	}
	if err == nil {
		_, err = t.call(ctx, "set-option", "-g", sayOption, spec.Printable(text, 500))
	}
	for _, c := range clients {
		if client != "" && c.Name != client {
			continue
		}
		_, one := t.call(ctx, "display-message", "-d", "10000", "-c", c.Name, "#{"+sayOption+"}")
		err = errors.Join(err, one)
	}
	_, last := t.call(ctx, "set-option", "-gu", sayOption)
	return errors.Join(err, last)
}
