package spec

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// An entry must be read as what people mean by it, and written back as one form.
func TestParseAllow(t *testing.T) {
	for text, want := range map[string]Allow{
		"example.com": {Host: "example.com"}, "Example.COM.": {Host: "example.com"}, "example.com:8443": {Host: "example.com", Port: 8443}, "*.example.com": {Host: "*.example.com"},
		"*.example.com:22": {Host: "*.example.com", Port: 22}, "bücher.example": {Host: "xn--bcher-kva.example"}, "xn--bcher-kva.example": {Host: "xn--bcher-kva.example"},
		"private:db.corp.example:5432": {Host: "db.corp.example", Port: 5432, Private: true}, "private:10.1.2.3:5432": {Host: "10.1.2.3", Port: 5432, Private: true},
		"private:10.1.2.3": {Host: "10.1.2.3", Private: true}, "provider:agent": {Provider: "agent"}, "provider:github": {Provider: "github"}, "service:db:5432": {Service: "db", Port: 5432},
		"host_1.example.com": {Host: "host_1.example.com"}, "localhost": {Host: "localhost"},
	} {
		got, err := ParseAllow("f", text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
			continue
		}
		if again, err := ParseAllow("f", got.String()); err != nil || again != got {
			t.Errorf("%s is written %s, which is %+v, %v", text, got, again, err)
		}
	}
}

// What permits too much, or means something else to some program, must be
// refused with the reason.
func TestParseAllowRefuses(t *testing.T) {
	for text, reason := range map[string]string{
		"https://example.com": "a scheme", "example.com/path": "a path", "example.com?x": "a path", "me@example.com": "a user", "10.1.2.3": "private:10.1.2.3", "8.8.8.8": "an address",
		"private:8.8.8.8": "a public address", "private:127.0.0.1": "no other machine", "private:169.254.169.254": "no other machine", "private:198.18.0.1": "no other machine", "private:fd00::1": "IPv6", "[::1]:80": "an address",
		"*": "a *", "*.com": "too much", "a.*.b": "a *", "*a.example.com": "a *", "**.example.com": "a *", "*.": "length", "example.com:0": "not a port", "example.com:65536": "not a port", "example.com:080": "not a port", "example.com:": "not a port",
		"example.com:http": "not a port", strings.Repeat("a", 64) + ".example": "longer than 63", "a..b": "empty", "-a.example": "begins or ends", "127.1": "address", "0x7f.1": "address", "2130706433": "address",
		"": "names nothing", "private:": "names nothing", " ": "more than one", "a b": "each by itself", "a.test,b.test": "each by itself", "none": "--egress-allow none alone", "nothing": "a word of ours", "a\x00.example": "characters", "provider:githab": "no such provider", "provider:": "no such provider", "service:db": "needs a port", "service::1": "not the name", "private:service:db:1": "private anyway", "service:DB:1": "not the name", "x]:443": "characters", "[x:443": "characters", "service:db.example.com:1": "told from a host",
	} {
		a, err := ParseAllow("f", text)
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Field != "f" || !strings.Contains(err.Error()+" "+refusal.Hint, reason) {
			t.Errorf("%q: %+v, %v, want %q", text, a, err, reason)
		}
	}
	if _, err := NewEgress("f", Strict, []string{"example.com", "EXAMPLE.com."}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("duplicates: %v", err)
	}
}

// No declaration, an empty one and a list must be three things: everything,
// nothing, and what is listed.
func TestEgressPolicy(t *testing.T) {
	agent, err := LookupAgent("claude")
	if err != nil {
		t.Fatal(err)
	}
	var none *Egress
	if p, err := none.Policy(agent); p != nil || err != nil || none.String() != "unrestricted" {
		t.Errorf("no declaration: %v, %v", p, err)
	}
	empty, err := NewEgress("f", Strict, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := empty.Policy(agent); err != nil || p == nil || len(p.Rules) != 0 || empty.String() != "strict, nothing" {
		t.Errorf("an empty one: %v, %v", p, err)
	}
	list, err := NewEgress("f", Advisory, []string{"provider:agent", "*.example.com:22", "service:db:5432", "provider:npm", "private:10.0.0.1:1", "a.example"})
	if err != nil {
		t.Fatal(err)
	}
	list.Managers = map[string][]string{"npm": {"packages.example:8443"}}
	p, err := list.Policy(agent)
	if err != nil {
		t.Fatal(err)
	}
	want := &Policy{Enforcement: Advisory, Rules: []Rule{
		{Name: "example.com", Below: true, Port: 22, From: "*.example.com:22"}, {Name: "a.example", Port: 443, From: "a.example"}, {Name: "a.example", Port: 80, From: "a.example"},
		{Address: netip.MustParseAddr("10.0.0.1"), Port: 1, Private: true, From: "private:10.0.0.1:1"},
		{Name: "api.anthropic.com", Port: 443, From: "provider:agent"}, {Name: "claude.ai", Port: 443, From: "provider:agent"}, {Name: "claude.com", Port: 443, From: "provider:agent"}, {Name: "platform.claude.com", Port: 443, From: "provider:agent"},
		{Name: "packages.example", Port: 8443, From: "provider:npm"}, {Name: "db", Port: 5432, Private: true, From: "service:db:5432"},
	}}
	if diff := cmp.Diff(want, p, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
}

// Every host of the tables must be one that could be declared.
func TestProviderTables(t *testing.T) {
	check := func(where string, hosts []string) {
		for _, r := range hostRules(where, hosts) {
			if err := (&Policy{Enforcement: Strict, Rules: []Rule{r}}).Validate(); err != nil {
				t.Errorf("%s: %v", where, err)
			}
		}
	}
	for _, p := range Providers {
		check(p.Name, p.Hosts)
		if p.Doc == "" || len(p.Hosts) == 0 {
			t.Errorf("%s says nothing", p.Name)
		}
	}
	for _, a := range Agents {
		check(a.Name, append(append(append([]string{}, a.API...), a.Login...), a.Telemetry...))
	}
}

// Whatever entry is accepted must be read again as the same, and its rules be
// such as the gateway takes.
func FuzzParseAllow(f *testing.F) {
	for _, seed := range []string{"example.com:443", "*.example.com", "private:10.0.0.1:5432", "provider:github", "service:db:1", "bücher.example", "[fd00::1]:80", "private:private:a", "a:b:c", "xn--a.example"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAllow("f", text)
		if err != nil {
			return
		}
		again, err := ParseAllow("f", a.String())
		if err != nil || again != a {
			t.Errorf("%q is written %q, read again as %+v, %v", text, a.String(), again, err)
		}
		p := &Policy{Enforcement: Strict, Rules: a.Rules(Agents[0], nil)}
		if err := p.Validate(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}
