package gateway

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/agent-container/agent-container/spec"
)

// fuzzed is a gateway with the rules of the lab's strict place that writes to out
// and asks nobody.
func fuzzed(out *bytes.Buffer) *gateway {
	p, at := placements("strict").Policy, time.Unix(1, 0)
	hours := func() time.Time { at = at.Add(time.Hour); return at } // so that no line is left out
	return &gateway{policy: p, addresses: newAddresses(p), journal: newJournal(out, hours)}
}

// slowlyKnown says, label by label, whether a name as miekg/dns writes it is one
// that the fuzzed policy has rules for, and what it is then.
func slowlyKnown(p *spec.Policy, asked string) (string, bool) {
	labels := dns.SplitDomainName(strings.ToLower(asked))
	for _, r := range p.Rules {
		declared := strings.Split(r.Name, ".")
		if len(labels) < len(declared) || len(labels) == len(declared) == r.Below {
			continue
		}
		if slices.Equal(labels[len(labels)-len(declared):], declared) {
			name := strings.Join(labels, ".")
			_, err := spec.CanonicalName(name) // which a declared name is, and below a wildcard must be
			return name, err == nil
		}
	}
	return "", false
}

// Whatever question comes, the answer must be one that fits into a datagram:
// REFUSED, or, for a name that a rule covers, its own address and nothing else. Each
// line of the journal must be printable.
func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"allowed.test.", "ALLOWED.test.", "a.wild.test.", "wild.test.", "evil.test.", ".", "a\\000b.wild.test.", "canary.invalid.", strings.Repeat(strings.Repeat("a", 60)+".", 4) + "test.", strings.Repeat(strings.Repeat("a", 48)+".", 4) + strings.Repeat("b", 40) + ".wild.test."} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeANY, dns.TypeTXT} {
			b, err := new(dns.Msg).SetQuestion(name, qtype).Pack()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte{0, 1, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1})
	var out bytes.Buffer
	g := fuzzed(&out)
	r := g.newResolver()
	f.Fuzz(func(t *testing.T, wire []byte) {
		q := new(dns.Msg)
		if q.Unpack(wire) != nil {
			return // the server does not hand it on
		}
		out.Reset()
		packed, err := r.answer(q).Pack()
		if err != nil {
			t.Fatalf("%v has an answer that is none: %v", q, err)
		}
		m := new(dns.Msg)
		if err := m.Unpack(packed); err != nil || len(packed) > dns.MinMsgSize || !m.Response || m.Id != q.Id {
			t.Fatalf("%v: %d bytes, %v: %v", q, len(packed), err, m)
		}
		checkAnswer(t, g, q, m)
		printableLines(t, out.Bytes())
	})
}

func checkAnswer(t *testing.T, g *gateway, q, m *dns.Msg) {
	t.Helper()
	if len(m.Ns)+len(m.Extra) != 0 || m.Rcode == dns.RcodeRefused && len(m.Answer) != 0 {
		t.Errorf("%v is told more than an address: %v", q, m)
	}
	if m.Rcode == dns.RcodeRefused {
		return
	}
	if m.Rcode != dns.RcodeSuccess || len(q.Question) != 1 {
		t.Fatalf("%v: %v", q, m)
	}
	name, known := slowlyKnown(g.policy, q.Question[0].Name)
	if !known {
		t.Errorf("%q is answered and not declared: %v", q.Question[0].Name, m)
	}
	for _, rr := range m.Answer {
		a, ok := rr.(*dns.A)
		if !ok || len(m.Answer) > 1 || !strings.EqualFold(a.Hdr.Name, q.Question[0].Name) {
			t.Fatalf("%v: %v", q, m)
		}
		addr, _ := netip.AddrFromSlice(a.A)
		if of, ok := g.addresses.name(addr.Unmap()); !ok || of != name || !spec.GatewayPool.Contains(addr.Unmap()) {
			t.Errorf("%s is given the address %s, which is %q's", name, addr, of)
		}
	}
}

// printableLines fails unless text is lines of JSON in printable ASCII.
func printableLines(t *testing.T, text []byte) {
	t.Helper()
	for line := range bytes.Lines(text) {
		if i := bytes.IndexFunc(line[:len(line)-1], func(r rune) bool { return r < ' ' || r > '~' }); i >= 0 || line[len(line)-1] != '\n' || !json.Valid(line) {
			t.Errorf("a line is not printable JSON: %q", line)
		}
	}
}

// A line of the journal must be one line of JSON in printable ASCII, and say what
// the decision says, whatever is in it.
func FuzzJournalLine(f *testing.F) {
	for _, s := range []string{"evil.test", "a\nb\r\x1b[31m", "\u202egnp.exe", "ä\u2028\x9b", "\U0001f600", "\xff\xc0", `"},{"`, "</script>"} {
		f.Add(s, s, 443)
	}
	f.Fuzz(func(t *testing.T, name, reason string, port int) {
		var out bytes.Buffer
		want := Decision{Verdict: spec.Denied, Stage: spec.StageTLS, Name: name, Reason: reason, Address: reason, Rule: name, Port: port}
		newJournal(&out, func() time.Time { return time.Unix(1, 0) }).write(want)
		printableLines(t, out.Bytes())
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != 1 {
			t.Errorf("%+v makes %d lines", want, n)
		}
		var got Decision
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		want.Time = time.Unix(1, 0).UTC()
		for _, s := range []*string{&want.Name, &want.Reason, &want.Address, &want.Rule} {
			*s = string([]rune(*s)) // JSON has no bytes that are no character
		}
		if got != want {
			t.Errorf("%+v is read again as %+v", want, got)
		}
	})
}
