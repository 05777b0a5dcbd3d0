package gateway

import (
	"bytes"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/agent-container/agent-container/spec"
)

// Names of what is in the namespace must be answered with its loopback, to every
// kind of question, and be no refusal for the journal; a declared one of the same
// name must win.
func TestLocalNames(t *testing.T) {
	policy := &spec.Policy{Enforcement: spec.Strict, Rules: []spec.Rule{{Name: "cache", Port: 1, Private: true, From: "test"}}}
	var log bytes.Buffer
	g := &gateway{policy: policy, local: []string{"db", "cache"}, addresses: newAddresses(policy), journal: newJournal(&log, time.Now)}
	r := g.newResolver()
	for name, want := range map[string]string{"db.": "127.0.0.1", "DB.": "127.0.0.1", "cache.": "198.18.0.1"} {
		m := r.answer(new(dns.Msg).SetQuestion(name, dns.TypeA))
		if a, ok := m.Answer[0].(*dns.A); !ok || len(m.Answer) != 1 || a.A.String() != want {
			t.Errorf("%s: %v, want %s", name, m, want)
		}
		if m := r.answer(new(dns.Msg).SetQuestion(name, dns.TypeAAAA)); m.Rcode != dns.RcodeSuccess || len(m.Answer) != 0 {
			t.Errorf("AAAA of %s: %v", name, m)
		}
	}
	if log.Len() != 0 {
		t.Errorf("the journal has %s", log.String())
	}
	if m := r.answer(new(dns.Msg).SetQuestion("x.db.", dns.TypeA)); m.Rcode != dns.RcodeRefused || log.Len() == 0 {
		t.Errorf("a name below one of them: %v, the journal has %q", m, log.String())
	}
}

// The canary must be refused whatever is declared, let through, or called so: else
// nobody would ever take the gateway for proved.
func TestCanaryIsAlwaysRefused(t *testing.T) {
	for _, enforcement := range []spec.Enforcement{spec.Strict, spec.Advisory} {
		policy := &spec.Policy{Enforcement: enforcement, Rules: []spec.Rule{{Name: spec.GatewayCanary, Port: 443, From: "test"}}}
		var log bytes.Buffer
		g := &gateway{policy: policy, local: []string{spec.GatewayCanary}, addresses: newAddresses(policy), journal: newJournal(&log, time.Now)}
		if m := g.newResolver().answer(new(dns.Msg).SetQuestion(spec.GatewayCanary+".", dns.TypeA)); m.Rcode != dns.RcodeRefused || log.Len() != 0 {
			t.Errorf("%s: %v, the journal has %q", enforcement, m, log.String())
		}
	}
}
