package cli

import (
	"testing"
	"time"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// An agent must count as cut off when its gateway does not run, or began after
// it, and only while it runs itself.
func TestGatewayLost(t *testing.T) {
	at := func(status string, second int) *engine.Container {
		return &engine.Container{State: engine.State{Status: status, StartedAt: time.Unix(int64(second), 0)}}
	}
	for _, c := range []struct {
		agent, gateway *engine.Container
		want           string
	}{
		{at("running", 2), at("running", 1), ""},
		{at("running", 2), at("running", 2), ""},
		{at("running", 2), at("running", 3), "its gateway was started again: the network is gone"},
		{at("running", 2), at("exited", 1), "its gateway is exited"},
		{at("running", 2), at("paused", 1), "its gateway is paused"},
		{at("restarting", 2), nil, "its gateway has been removed"},
		{at("exited", 2), at("exited", 1), ""},
		{at("exited", 2), nil, ""},
		{at("created", 0), at("running", 1), ""},
	} {
		if got := gatewayLost(c.agent, c.gateway); got != c.want {
			t.Errorf("%+v, %+v: %q, want %q", c.agent.State, c.gateway, got, c.want)
		}
	}
}

// None, one that permits nothing, and a list must read as three things.
func TestEgressLine(t *testing.T) {
	for want, e := range map[string]*spec.Egress{
		"unrestricted": nil, "strict, nothing": {Enforcement: spec.Strict}, "advisory, no entries": {Enforcement: spec.Advisory}, "advisory, 1 entry": {Enforcement: spec.Advisory, Allow: []string{"a.test"}},
		"strict, 2 entries; outside: db, web": {Enforcement: spec.Strict, Allow: []string{"a.test", "b.test"}, Outside: []string{"db", "web"}},
	} {
		var outside []string
		if e != nil {
			outside = e.Outside
		}
		if got := egressLine(egressSummary(e), outside); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
