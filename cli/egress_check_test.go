package cli

import (
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agent-container/agent-container/spec"
)

// Every way in which people write where something is must be read as host and
// port, and what is none be refused without repeating a password.
func TestParseTarget(t *testing.T) {
	for text, want := range map[string]target{
		"https://a.test/x?y#z": {name: "a.test", port: 443}, "https://a.test:8443": {name: "a.test", port: 8443}, "http://A.Test./": {name: "a.test", port: 80},
		"https://user:secret@a.test/": {name: "a.test", port: 443}, "ssh://git@a.test/x.git": {name: "a.test", port: 22}, "ssh://git@a.test:2222/x": {name: "a.test", port: 2222},
		"git@a.test:you/x.git": {name: "a.test", port: 22}, "git@a.test:22/x": {name: "a.test", port: 22}, "git@a.test": {name: "a.test", port: 22},
		"a.test": {name: "a.test", port: 443}, "a.test:22": {name: "a.test", port: 22}, "a.test/path": {name: "a.test", port: 443}, "a.test:22/path": {name: "a.test", port: 22},
		"bücher.example": {name: "xn--bcher-kva.example", port: 443}, "db:5432": {name: "db", port: 5432}, "tcp://db:5432": {name: "db", port: 5432},
		"10.0.0.1": {address: netip.MustParseAddr("10.0.0.1"), port: 443}, "http://10.0.0.1:8080/": {address: netip.MustParseAddr("10.0.0.1"), port: 8080},
		"[2001:db8::1]:22": {address: netip.MustParseAddr("2001:db8::1"), port: 22}, "2001:db8::1": {address: netip.MustParseAddr("2001:db8::1"), port: 443},
		"https://[::ffff:10.0.0.1]/": {address: netip.MustParseAddr("10.0.0.1"), port: 443},
	} {
		if got, err := parseTarget(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "https://", "://a", "https://user:secret@", "tcp://user:secret@a.test", "https://user:secret@a.test:0/", "https://user:secret@a b/", "a.test:65536", "a.test:022", "a.test:x",
		"*.a.test", "127.1", "0x7f000001", "a..test", "user:secret@a.test", "[::1]:0", "fe80::1%eth0", "a.test\x00.b", "-a.test",
	} {
		got, err := parseTarget(text)
		if err == nil {
			t.Errorf("%q is %+v", text, got)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParseTarget: whatever is typed, what is read must be canonical, and an error
// be printable.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"https://a.test:1/x", "git@a.test:x", "a.test:22", "[::1]:22", "://", "\x1b[2J://\x9b", "https://[::1%25eth0]/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseTarget(text)
		if err != nil {
			if s := err.Error(); strings.ContainsFunc(s, obeyed) || !utf8.ValidString(s) || len(s) > 1000 {
				t.Errorf("%q: %q", text, s)
			}
			return
		}
		if got.port < 1 || got.port > 65535 || (got.name == "") != got.address.IsValid() {
			t.Errorf("%q: %+v", text, got)
		}
		if again, err := spec.CanonicalName(got.name); got.name != "" && (err != nil || again != got.name) {
			t.Errorf("%q: %+v", text, got)
		}
	})
}

// A check must say what the gateway would do, by which rule, and why not.
func TestCheckTarget(t *testing.T) {
	p := strictly(t, "a.test", "*.wild.test:8443", "private:10.0.0.1:5432", "service:db:5432", "provider:agent")
	advisory := *p
	advisory.Enforcement = spec.Advisory
	for _, c := range []struct {
		policy *spec.Policy
		text   string
		want   checked
	}{
		{p, "https://a.test/", checked{Passes: true, Rule: "a.test:443", Entry: "a.test"}},
		{p, "x.wild.test:8443", checked{Passes: true, Rule: "*.wild.test:8443", Entry: "*.wild.test:8443"}},
		{p, "x.wild.test", checked{Why: "declared, but not at this port: 8443"}},
		{p, "a.test:22", checked{Why: "declared, but not at this port: 443, 80"}},
		{p, "evil.test", checked{Why: "not declared"}},
		{p, "10.0.0.1:5432", checked{Passes: true, Rule: "10.0.0.1:5432", Entry: "private:10.0.0.1:5432"}},
		{p, "10.0.0.2:5432", checked{Why: "no entry declares this address"}},
		{p, "[2001:db8::1]:443", checked{Why: "IPv6 is closed"}},
		{p, "db:5432", checked{Passes: true, Rule: "db:5432", Entry: "service:db:5432"}},
		{p, "api.anthropic.com", checked{Passes: true, Rule: "api.anthropic.com:443", Entry: "provider:agent"}},
		{&advisory, "evil.test", checked{Passes: true, Advised: true, Why: "not declared; advisory lets it through"}},
		{&advisory, "127.0.0.1", checked{Passes: true, Why: "in the agent's own network"}},
		{p, "cache:6379", checked{Passes: true, Why: "in the agent's own network"}},
		{p, "[::1]:6379", checked{Passes: true, Why: "in the agent's own network"}},
		{&advisory, "224.0.0.1", checked{Why: "no entry declares this address"}},
		{&advisory, "[2001:db8::1]:443", checked{Why: "IPv6 is closed"}},
		{nil, "evil.test", checked{Passes: true, Why: "unrestricted"}},
		{strictly(t), "a.test", checked{Why: "not declared"}},
	} {
		to, err := parseTarget(c.text)
		if err != nil {
			t.Fatal(err)
		}
		c.want.Host, c.want.Port = to.host(), to.port
		if got := checkTarget(c.policy, []string{"localhost", "cache"}, to); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.text, got, c.want)
		}
	}
}
