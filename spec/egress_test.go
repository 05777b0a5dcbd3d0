package spec

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func rules(texts ...string) *Policy {
	p := &Policy{Enforcement: Strict}
	for _, t := range texts {
		r := Rule{Name: t, Port: 443, From: "test"}
		if below, ok := strings.CutPrefix(t, "*."); ok {
			r.Name, r.Below = below, true
		}
		p.Rules = append(p.Rules, r)
	}
	return p
}

// A name must be permitted by itself or by a wildcard above it, by nothing that
// only looks like it, and at the declared port alone.
func TestPolicyMatch(t *testing.T) {
	p := rules("allowed.test", "*.wild.test", "*.deep.wild.test", "x.wild.test")
	for name, want := range map[string]string{
		"allowed.test": "allowed.test:443", "a.wild.test": "*.wild.test:443", "a.b.wild.test": "*.wild.test:443",
		"a.deep.wild.test": "*.deep.wild.test:443", "deep.wild.test": "*.wild.test:443", "x.wild.test": "x.wild.test:443",
		"wild.test": "", "evil.test": "", "notallowed.test": "", "allowed.test.evil.test": "", "xwild.test": "", "test": "", "": "", ".wild.test": "*.wild.test:443",
	} {
		r, ok := p.Match(name, 443)
		if ok != (want != "") || ok && r.String() != want {
			t.Errorf("%q: %v %t, want %q", name, r, ok, want)
		}
		if _, ok := p.Match(name, 80); ok {
			t.Errorf("%q is permitted at another port", name)
		}
	}
}

// Among the rules for a name one that permits private addresses must count, in
// whatever order they stand: otherwise a rule less would permit more.
func TestPolicyMatchPrivate(t *testing.T) {
	p := rules("x.wild.test", "*.wild.test", "*.a.wild.test", "x.wild.test")
	p.Rules[1].Private = true
	for _, reversed := range []bool{false, true} {
		if reversed {
			slices.Reverse(p.Rules)
		}
		for _, name := range []string{"x.wild.test", "y.a.wild.test", "y.wild.test"} {
			if r, ok := p.Match(name, 443); !ok || !r.Private {
				t.Errorf("%s: %v %t", name, r, ok)
			}
		}
	}
}

// A sign that Unicode makes a letter of ASCII of must not be taken for one: what is
// passed on untouched would be another name than the one that was compared.
func TestCanonicalNameIsASCII(t *testing.T) {
	for _, name := range []string{"\u212aelvin.test", "kelvin.te\u017ft", "\u0130.test", "b\xfccher.test"} {
		if got, err := CanonicalName(name); err == nil {
			t.Errorf("%q is taken for %s", name, got)
		}
	}
}

// Nothing may be permitted by a policy without rules.
func FuzzEmptyPolicy(f *testing.F) {
	f.Add("allowed.test", 443)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, name string, port int) {
		p := &Policy{Enforcement: Strict}
		_, match := p.Match(name, port)
		address, _ := netip.ParseAddr(name)
		_, byAddress := p.MatchAddress(address, port)
		if match || byAddress || p.Knows(name) {
			t.Errorf("%q:%d is permitted by nothing", name, port)
		}
	})
}

// slowMatch says by comparing label by label from the end what Match must say.
func slowMatch(pattern, name string) bool {
	below, wild := strings.CutPrefix(pattern, "*.")
	p, n := strings.Split(below, "."), strings.Split(name, ".")
	if wild && len(n) <= len(p) || !wild && len(n) != len(p) {
		return false
	}
	for i := 1; i <= len(p); i++ {
		if p[len(p)-i] != n[len(n)-i] {
			return false
		}
	}
	return true
}

// A canonical name must stay as it is when it is read again, hold nothing but
// what a name may, and match as the slow comparison says.
func FuzzCanonicalName(f *testing.F) {
	for _, seed := range []string{"allowed.test", "ALLOWED.TEST.", "a..b", ".a", "-a.b", "a-.b", "127.1", "0x7f.1", "1.2.3.4", "[::1]", "a\x00.test", "ä.test", "xn--4ca.test", strings.Repeat("a", 64) + ".test", "*.test"} {
		f.Add(seed, "*.test")
	}
	f.Fuzz(func(t *testing.T, text, pattern string) {
		name, err := CanonicalName(text)
		if err != nil {
			if name != "" {
				t.Errorf("%q: %q beside %v", text, name, err)
			}
			return
		}
		if again, err := CanonicalName(name); err != nil || again != name {
			t.Errorf("%q is read again as %q, %v", name, again, err)
		}
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || len(name) > 253 {
			t.Errorf("%q has %q", text, name)
		}
		if _, err := netip.ParseAddr(name); err == nil {
			t.Errorf("%q is an address", name)
		}
		canonical, err := CanonicalName(strings.TrimPrefix(pattern, "*."))
		if err != nil {
			return
		}
		if strings.HasPrefix(pattern, "*.") {
			canonical = "*." + canonical
		}
		if _, got := rules(canonical).Match(name, 443); got != slowMatch(canonical, name) {
			t.Errorf("%s against %s: %t", name, canonical, got)
		}
	})
}

// Only addresses that anybody may have must count as public, whatever form they
// come in.
func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "198.51.100.10": true, "2001:db8::1": true, "2606:4700::1": true, "172.32.0.1": true,
		"10.1.2.3": false, "172.17.0.1": false, "192.168.0.1": false, "127.0.0.1": false, "169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false,
		"198.18.0.1": false, "198.19.255.255": false, "224.0.0.1": false, "255.255.255.255": false, "::1": false, "::": false, "fe80::1": false, "fd00:ec2::254": false,
		"::ffff:8.8.8.8": false, "::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "fe80::1%eth0": false,
	} {
		if got := Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// A policy that could not have been declared must not be taken.
func TestPolicyValidate(t *testing.T) {
	for about, change := range map[string]func(*Policy){
		"no enforcement": func(p *Policy) { p.Enforcement = "" }, "another enforcement": func(p *Policy) { p.Enforcement = "off" },
		"port 0": func(p *Policy) { p.Rules[0].Port = 0 }, "a large port": func(p *Policy) { p.Rules[0].Port = 65536 }, "no origin": func(p *Policy) { p.Rules[0].From = "" },
		"upper case": func(p *Policy) { p.Rules[0].Name = "Allowed.test" }, "a dot": func(p *Policy) { p.Rules[0].Name = "allowed.test." }, "no name": func(p *Policy) { p.Rules[0].Name = "" },
		"a wildcard": func(p *Policy) { p.Rules[0].Name = "*.test" }, "a whole domain": func(p *Policy) { p.Rules[0].Name, p.Rules[0].Below = "test", true },
		"an address and a name": func(p *Policy) { p.Rules[0].Address, p.Rules[0].Private = netip.MustParseAddr("10.0.0.1"), true },
		"a public address":      func(p *Policy) { p.Rules[0].Name, p.Rules[0].Address = "", netip.MustParseAddr("8.8.8.8") },
	} {
		p := rules("allowed.test")
		change(p)
		if p.Validate() == nil {
			t.Errorf("%s: not refused", about)
		}
	}
	p := rules("allowed.test", "*.wild.test")
	p.Rules = append(p.Rules, Rule{Address: netip.MustParseAddr("10.0.0.1"), Port: 5432, Private: true, From: "test"})
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if err := (&Policy{Enforcement: Advisory}).Validate(); err != nil {
		t.Error(err)
	}
}
