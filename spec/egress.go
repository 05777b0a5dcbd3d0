package spec

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Enforcement says what happens to what a policy does not permit.
type Enforcement string

// The enforcements.
const (
	Strict   Enforcement = "strict"   // it is refused
	Advisory Enforcement = "advisory" // it is let through, and kept as what strict would have refused
)

// Policy is what may leave the containers of a deployment. It is a type of its
// own beside "no policy", which is a nil *Policy: a policy without rules permits
// nothing.
type Policy struct {
	Enforcement Enforcement `json:"enforcement"`
	Rules       []Rule      `json:"rules"`
}

// Rule permits connections to one port of one name or address.
type Rule struct {
	Name    string     `json:"name,omitempty"`    // canonical; empty with Address
	Below   bool       `json:"below,omitempty"`   // the names below Name, and not Name itself
	Address netip.Addr `json:"address,omitzero"`  // a private address that was declared as one
	Port    int        `json:"port"`              // TCP
	Private bool       `json:"private,omitempty"` // the name may lead to an address that is not public
	From    string     `json:"from"`              // what declared it, for people
}

// String is the rule as people declare it.
func (r Rule) String() string {
	host := r.Name
	switch {
	case r.Address.IsValid():
		host = r.Address.String()
		if r.Address.Is6() {
			host = "[" + host + "]"
		}
	case r.Below:
		host = "*." + host
	}
	return host + ":" + strconv.Itoa(r.Port)
}

// Match returns the rule that permits name, which must be canonical, at port.
// One for private addresses wins, so that a rule less never permits more; then an
// exact name over one with a wildcard, and a longer one over a shorter.
func (p *Policy) Match(name string, port int) (Rule, bool) {
	var best Rule
	for _, r := range p.Rules {
		if r.Port == port && r.covers(name) && (best.From == "" || r.closer(best)) {
			best = r
		}
	}
	return best, best.From != ""
}

// closer reports whether r counts before other, where both cover a name.
func (r Rule) closer(other Rule) bool {
	switch {
	case r.Private != other.Private:
		return r.Private
	case r.Below != other.Below:
		return other.Below
	}
	return len(r.Name) > len(other.Name)
}

// Knows reports whether any rule covers name, at whatever port.
func (p *Policy) Knows(name string) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool { return r.covers(name) })
}

// MatchAddress returns the rule that permits an address that was declared.
func (p *Policy) MatchAddress(address netip.Addr, port int) (Rule, bool) {
	i := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.Address.IsValid() && r.Address == address && r.Port == port })
	if i < 0 {
		return Rule{}, false
	}
	return p.Rules[i], true
}

func (r Rule) covers(name string) bool {
	switch {
	case r.Name == "":
		return false
	case r.Below:
		return strings.HasSuffix(name, "."+r.Name)
	}
	return name == r.Name
}

// Validate returns an error unless every rule of p could have been declared:
// the gateway reads p from a file and trusts nothing else.
func (p *Policy) Validate() error {
	if p.Enforcement != Strict && p.Enforcement != Advisory {
		return fmt.Errorf("enforcement %q is neither strict nor advisory", Printable(string(p.Enforcement), 40))
	}
	for i, r := range p.Rules {
		name, err := CanonicalName(r.Name)
		switch {
		case r.Port < 1 || r.Port > 65535:
			return fmt.Errorf("rule %d: port %d", i+1, r.Port)
		case r.From == "":
			return fmt.Errorf("rule %d: nothing declares it", i+1)
		case r.Address.IsValid() && (r.Name != "" || r.Below || !r.Private):
			return fmt.Errorf("rule %d: an address is no name, and private", i+1)
		case r.Address.IsValid() && !Dialable(r.Address):
			return fmt.Errorf("rule %d: %s cannot be opened", i+1, r.Address)
		case !r.Address.IsValid() && err != nil:
			return fmt.Errorf("rule %d: %w", i+1, err)
		case !r.Address.IsValid() && name != r.Name:
			return fmt.Errorf("rule %d: %q is not canonical", i+1, Printable(r.Name, 80))
		case r.Below && !strings.Contains(r.Name, "."):
			return fmt.Errorf("rule %d: everything below %s is too much", i+1, r.Name)
		}
	}
	return nil
}

// maxName is the longest name that DNS can carry, without the dot at its end.
const maxName = 253

// CanonicalName returns name in the one form in which it is matched, resolved,
// dialled and logged: lower case, no dot at its end, letters, digits, "-" and "_"
// in labels of at most 63. What is not a name of that kind is an error, and so is
// what some programs read as an address: 127.1, 0x7f000001.
func CanonicalName(name string) (string, error) {
	lower := asciiLower(strings.TrimSuffix(name, "."))
	wrong := func(why string) (string, error) {
		return "", fmt.Errorf("%q is not a host's name: %s", Printable(name, 80), why)
	}
	if lower == "" || len(lower) > maxName {
		return wrong("its length")
	}
	labels := strings.Split(lower, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 {
			return wrong("a part of it is empty or longer than 63")
		}
		if label[0] == '-' || label[len(label)-1] == '-' {
			return wrong("a part of it begins or ends with -")
		}
		for i := range len(label) {
			if c := label[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
				return wrong("it holds other characters than letters, digits, - and _")
			}
		}
	}
	if last := labels[len(labels)-1]; numeric(last) {
		return wrong("it may be read as an address")
	}
	return lower, nil
}

// asciiLower is text with its letters A to Z small, and no other: Unicode knows
// signs that become a letter of ASCII by that, as the Kelvin sign does.
func asciiLower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// numeric reports whether inet_aton would take label for a number.
func numeric(label string) bool {
	_, err := strconv.ParseUint(label, 10, 64)
	return err == nil || strings.Trim(label, "0123456789") == "" || strings.HasPrefix(label, "0x") && strings.Trim(label[2:], "0123456789abcdef") == ""
}

// nonPublic are the networks that are nobody's on the internet, or lead to
// another one: RFC 6890 and its updates. The documentation networks are not among
// them: nobody has them, so a name that leads there reaches nothing.
var nonPublic = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.88.99.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4",
	"::/128", "::1/128", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/32", "2002::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		list[i] = netip.MustParsePrefix(t)
	}
	return list
}

// Public reports whether address is one that anybody on the internet may have.
func Public(address netip.Addr) bool {
	return address.IsValid() && address.Zone() == "" && !slices.ContainsFunc(nonPublic, func(p netip.Prefix) bool { return p.Contains(address) })
}

// Dialable reports whether a gateway may dial address for a rule that says so:
// an IPv4 address, and not the namespace itself, what a machine keeps for its
// guests alone, or the gateway's own pool.
func Dialable(address netip.Addr) bool {
	return address.Is4() && !address.IsLoopback() && !address.IsUnspecified() && !address.IsMulticast() && !address.IsLinkLocalUnicast() &&
		!slices.ContainsFunc([]netip.Prefix{GatewayPool, netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("240.0.0.0/4")}, func(p netip.Prefix) bool { return p.Contains(address) })
}

// The networks and ports of the gateway's own.
var (
	// GatewayPool is where permitted names get an address of their own
	// (RFC 2544: for benchmarks, routed nowhere).
	GatewayPool = netip.MustParsePrefix("198.18.0.0/15")
	// GatewayProof is an address that nobody has (RFC 5737): who connects to it
	// and is answered, is behind our gateway.
	GatewayProof = netip.MustParseAddrPort("192.0.2.1:1")
)

// GatewayCanary is a name that no policy permits: a gateway refuses it.
const GatewayCanary = "canary.invalid"
