package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/agent-container/agent-container/guest/gateway"
	"github.com/agent-container/agent-container/spec"
)

// How long the gateway may be away before the container is ended, and how often it is
// asked.
const (
	gatewayLost = 5 * time.Second
	gatewayPace = time.Second
)

// awaitGateway lets nothing of the set-up happen before the namespace is closed
// but for what was declared. It waits for a gateway that works, not for one that
// was started: the order of starts is nobody's promise after a restart.
func (g *guest) awaitGateway() error {
	if g.egress == "" {
		return nil
	}
	key, err := os.ReadFile(g.fill(spec.FillKey))
	if err != nil {
		return err
	}
	over := time.Now().Add(spec.GatewayStart)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		err := gateway.Prove(g.ctx, key)
		if err == nil {
			return nil
		}
		if time.Now().After(over) {
			return fmt.Errorf("no proof of the gateway in %s: %w; see: agent-container egress show %s", spec.GatewayStart, err, g.name)
		}
		g.progressed("")
		select {
		case <-g.ctx.Done():
			return context.Cause(g.ctx)
		case <-time.After(pause):
		}
	}
}

// lookForGateway notes at the end of an agent that ended by itself when its gateway
// was lost by then: sooner than the watch ends it, an agent gives up by itself, and
// what it tried last is in no journal.
func (g *guest) lookForGateway(end *ending) {
	if g.egress == "" || end.cause != spec.CauseExit && end.cause != spec.CauseSignal {
		return
	}
	key, err := os.ReadFile(g.fill(spec.FillKey))
	if err == nil {
		err = gateway.Prove(context.Background(), key)
	}
	if err != nil {
		end.alone = true
		end.note = fmt.Sprintf("the gateway was lost before the agent ended (%s): from then on nothing could leave, and what was tried is in no journal", spec.Printable(err.Error(), 300))
		say("error: %s", end.note)
	}
}

// watchGateway returns a channel that says once why the gateway counts as lost,
// nil where there is none. The namespace stays closed without it; a container
// that nobody tells would wait in it for ever.
func (g *guest) watchGateway() <-chan string {
	if g.egress == "" {
		return nil
	}
	lost := make(chan string, 1)
	key, err := os.ReadFile(g.fill(spec.FillKey))
	if err != nil {
		lost <- "its key is gone: " + err.Error()
		return lost
	}
	go func() {
		seen, failed := time.Now(), 0
		for range time.Tick(gatewayPace) {
			err := gateway.Prove(context.Background(), key)
			if err == nil {
				seen, failed = time.Now(), 0
				continue
			}
			// Not by the ticks alone: who hangs takes its time to fail. Nor by the time
			// alone: on a machine that stands still it passes without a question.
			if failed++; failed >= 3 && time.Since(seen) >= gatewayLost {
				lost <- fmt.Sprintf("the gateway was lost (%s): nothing can leave the container any more, and it is ended; the exit code is that of the forced stop", spec.Printable(err.Error(), 300))
				return
			}
		}
	}()
	return lost
}
