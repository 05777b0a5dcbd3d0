package cli

import (
	"fmt"
	"strings"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// unrestricted is the word for a deployment without a declaration.
const unrestricted = "unrestricted"

// stateCutOff is the state of a deployment whose agent runs and whose gateway
// does not, or not for it.
const stateCutOff = "cut off"

// gatewayOf is the gateway of a deployment among its containers, or nil.
func gatewayOf(all []*engine.Container, name string) *engine.Container {
	for _, c := range all {
		if c.IsGateway() && c.Deployment() == name {
			return c
		}
	}
	return nil
}

// gatewayLost says why an agent that runs, and has egress declared, is cut off:
// its gateway does not run, or has been started after it, so that the namespace
// that the agent is in has gone. It returns "" when neither is so.
func gatewayLost(agent, gateway *engine.Container) (why string) {
	switch {
	case !agent.State.Alive():
		return ""
	case gateway == nil:
		return "its gateway has been removed"
	case gateway.State.Status != "running":
		return "its gateway is " + gateway.State.Status
	case agent.LeftBy(gateway):
		return "its gateway was started again: the network is gone"
	}
	return ""
}

// egressSummary is a declaration in a few words.
func egressSummary(e *spec.Egress) string {
	switch {
	case e == nil || len(e.Allow) == 0:
		return e.String()
	case len(e.Allow) == 1:
		return string(e.Enforcement) + ", 1 entry"
	}
	return fmt.Sprintf("%s, %d entries", e.Enforcement, len(e.Allow))
}

// egressLine is what deployment answers say of egress, in one line.
func egressLine(summary string, outside []string) string {
	if len(outside) > 0 {
		return summary + "; outside: " + strings.Join(outside, ", ")
	}
	return summary
}
