package panes

import (
	"context"
	"slices"
	"sync"
)

// calls are the panes of which somebody is still to be told, each once, with its
// newest state.
type calls struct {
	mu      sync.Mutex
	waiting []Pane
	more    chan struct{}
}

// drop takes back the call for a pane, which is not news any more.
func (c *calls) drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = slices.DeleteFunc(c.waiting, func(w Pane) bool { return w.ID == id })
}

// put adds a pane; it never waits.
func (c *calls) put(p Pane) {
	c.drop(p.ID)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = append(c.waiting, p)
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *calls) take() (Pane, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return Pane{}, false
	}
	p := c.waiting[0]
	c.waiting = c.waiting[1:]
	return p, true
}

// answer calls tell for each pane, until the returned function is called; that cuts
// off a call that goes on, and waits for its end.
func (c *calls) answer(ctx context.Context, tell func(context.Context, Pane)) (stop func()) {
	c.more = make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			for p, ok := c.take(); ok && ctx.Err() == nil; p, ok = c.take() {
				tell(ctx, p)
			}
			select {
			case <-ctx.Done():
				return
			case <-c.more:
			}
		}
	}()
	return func() { cancel(); <-done }
}
