package spec

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Egress is what a user declares about what may leave a deployment. A nil *Egress
// is no declaration: everything may. One without entries permits nothing.
type Egress struct {
	Enforcement Enforcement         `json:"enforcement"`
	Allow       []string            `json:"allow"`              // as Allow.String writes them, sorted
	Typed       []string            `json:"typed,omitempty"`    // those of Allow that were typed, sorted
	Outside     []string            `json:"outside,omitempty"`  // services that stay outside the gateway's namespace, sorted
	Managers    map[string][]string `json:"managers,omitempty"` // the hosts of the package managers in Allow, as they were configured where it was deployed
}

// Equal reports whether both permit the same.
func (e *Egress) Equal(o *Egress) bool {
	if e == nil || o == nil {
		return e == o
	}
	return e.Enforcement == o.Enforcement && slices.Equal(e.Allow, o.Allow)
}

// String is the declaration as one line for people.
func (e *Egress) String() string {
	switch {
	case e == nil:
		return "unrestricted"
	case len(e.Allow) == 0 && e.Enforcement == Advisory:
		return "advisory, no entries"
	case len(e.Allow) == 0:
		return string(e.Enforcement) + ", nothing"
	}
	return string(e.Enforcement) + ", " + strings.Join(e.Allow, " ")
}

// Allow is one entry of a declaration: exactly one of Host, Provider and Service.
type Allow struct {
	Host     string // canonical name, "*." and a canonical name, or an address
	Provider string // a row of Providers, "agent", or a package manager
	Service  string // a service of the user's, outside the namespace
	Port     int    // 0 for 443 and 80; a service needs one
	Private  bool   // the host may have an address that is not public
}

// Words that are no entry.
const (
	NoEntry        = "none"    // --egress-allow none: no entry is typed
	NothingAllowed = "nothing" // an empty list, where it is written as words
)

// The words before a colon that are no host.
const (
	allowProvider = "provider:"
	allowService  = "service:"
	allowPrivate  = "private:"
)

// String is the text that ParseAllow reads.
func (a Allow) String() string {
	text := a.Host
	switch {
	case a.Provider != "":
		return allowProvider + a.Provider
	case a.Service != "":
		text = allowService + a.Service
	case a.Private:
		text = allowPrivate + a.Host
	}
	if a.Port != 0 {
		text += ":" + strconv.Itoa(a.Port)
	}
	return text
}

// ParseAllow reads HOST, HOST:PORT, *.DOMAIN, private:HOST[:PORT],
// provider:NAME or service:NAME:PORT. An error is an *Error with field.
func ParseAllow(field, text string) (Allow, error) {
	refuse := func(problem, hint string) (Allow, error) {
		return Allow{}, &Error{Field: field, Problem: fmt.Sprintf("%q: %s", Printable(text, 300), problem), Hint: hint}
	}
	if name, ok := strings.CutPrefix(text, allowProvider); ok {
		if !slices.Contains(ProviderNames(), name) {
			hint := "the providers are " + strings.Join(ProviderNames(), ", ")
			if near := Nearest(name, ProviderNames()); near != "" {
				hint = fmt.Sprintf("did you mean %q?", allowProvider+near)
			}
			return refuse("no such provider", hint)
		}
		return Allow{Provider: name}, nil
	}
	rest, private := strings.CutPrefix(text, allowPrivate)
	rest, service := strings.CutPrefix(rest, allowService)
	if private && service {
		return refuse("a service is private anyway", "leave private: out")
	}
	if problem, hint := misread(rest); problem != "" {
		return refuse(problem, hint)
	}
	host, port, err := splitPort(rest)
	if err != nil {
		return refuse(err.Error(), "")
	}
	a := Allow{Port: port, Private: private}
	switch {
	case service && port == 0:
		return refuse("a service needs a port", "write "+text+":PORT")
	case service && servicePattern(host) && strings.Contains(host, "."):
		return refuse("a service whose name has a dot cannot be told from a host of that name", "give it another name")
	case service && !servicePattern(host):
		return refuse("not the name of a service", "it is one of the services file")
	case service:
		return Allow{Service: host, Port: port}, nil
	}
	if a.Host, err = allowedHost(host, private); err != nil {
		return refuse(err.Error(), "")
	}
	return a, nil
}

// misread says what is wrong with what people write in the place of a host, and
// what to write instead.
func misread(text string) (problem, hint string) {
	switch {
	case text == "":
		return "it names nothing", "write a host, or " + allowProvider + "NAME"
	case strings.ContainsAny(text, ", \t"):
		return "more than one entry", "write each by itself"
	case strings.Contains(text, "://"):
		return "a scheme does not belong here", "write the host and, behind a colon, its port"
	case strings.Contains(text, "@"):
		return "a user does not belong here", "write the host alone"
	case strings.ContainsAny(text, "/?#"):
		return "a path does not belong here: what is permitted is a host", "write the host alone"
	case text == NoEntry || text == NothingAllowed:
		return "a word of ours, and no host", "to let nothing out: --egress-allow " + NoEntry + " alone, or allow: [] in settings"
	}
	return "", ""
}

// splitPort takes the port off a host; an IPv6 address with one stands in
// brackets.
func splitPort(text string) (host string, port int, err error) {
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return addr.String(), 0, nil
	}
	host, digits, ok := strings.Cut(text, ":")
	if inside, rest, bracketed := strings.Cut(strings.TrimPrefix(text, "["), "]:"); bracketed && strings.HasPrefix(text, "[") {
		host, digits, ok = inside, rest, true
	}
	if !ok {
		return text, 0, nil
	}
	port, err = strconv.Atoi(digits)
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != digits {
		return "", 0, fmt.Errorf("%q is not a port, 1 to 65535", digits)
	}
	return host, port, nil
}

// allowedHost returns the canonical form of a host, or says why it is none.
func allowedHost(host string, private bool) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		switch addr = addr.Unmap(); {
		case !private:
			return "", fmt.Errorf("an address says nothing about whose it is tomorrow; name the host, or write %s%s if it is one of your own network", allowPrivate, host)
		case Public(addr):
			return "", fmt.Errorf("a public address says nothing about whose it is tomorrow; name the host")
		case !addr.Is4():
			return "", fmt.Errorf("IPv6 is closed")
		case addr.IsLoopback(), addr.IsLinkLocalUnicast(), addr.IsMulticast(), addr.IsUnspecified(), GatewayPool.Contains(addr):
			return "", fmt.Errorf("an address that no other machine has")
		}
		return addr.String(), nil
	}
	below, wild := strings.CutPrefix(host, "*.")
	if strings.Contains(below, "*") {
		return "", fmt.Errorf("a * stands for whole parts of a name, at its beginning: *.example.com")
	}
	if ascii, err := idna.Lookup.ToASCII(below); err == nil {
		below = ascii // a name in letters of any language
	}
	name, err := CanonicalName(below)
	switch {
	case err != nil:
		return "", err
	case wild && !strings.Contains(name, "."):
		return "", fmt.Errorf("everything below %s is too much", name)
	case wild:
		return "*." + name, nil
	}
	return name, nil
}

// servicePattern reports whether name can be a service's in a services file.
func servicePattern(name string) bool {
	return name != "" && len(name) <= 63 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// NewEgress checks and sorts the entries of a declaration. An error is an
// *Error with field.
func NewEgress(field string, enforcement Enforcement, entries []string) (*Egress, error) {
	e := &Egress{Enforcement: enforcement, Allow: []string{}}
	for _, text := range entries {
		a, err := ParseAllow(field, text)
		if err != nil {
			return nil, err
		}
		if slices.Contains(e.Allow, a.String()) {
			return nil, &Error{Field: field, Problem: fmt.Sprintf("%s is there twice", a)}
		}
		e.Allow = append(e.Allow, a.String())
	}
	slices.Sort(e.Allow)
	return e, nil
}

// Rules are what the entry permits. Providers of package managers are no table of
// ours: their hosts come from managers, by provider.
func (a Allow) Rules(agent Agent, managers map[string][]string) []Rule {
	from := a.String()
	switch {
	case a.Provider == AgentProvider:
		return hostRules(from, append(slices.Clone(agent.API), agent.Login...))
	case a.Provider != "":
		if p, ok := lookupProvider(a.Provider); ok {
			return hostRules(from, p.Hosts)
		}
		return hostRules(from, managers[a.Provider])
	case a.Service != "":
		return []Rule{{Name: a.Service, Port: a.Port, Private: true, From: from}}
	}
	ports := []int{a.Port}
	if a.Port == 0 {
		ports = []int{443, 80}
	}
	var list []Rule
	for _, port := range ports {
		r := Rule{Port: port, Private: a.Private, From: from}
		if addr, err := netip.ParseAddr(a.Host); err == nil {
			r.Address = addr
		} else {
			r.Name, r.Below = strings.CutPrefix(a.Host, "*.")
		}
		list = append(list, r)
	}
	return list
}

// hostRules are the rules of hosts as they stand in a table: HOST or HOST:PORT,
// 443 when there is none.
func hostRules(from string, hosts []string) []Rule {
	var list []Rule
	for _, h := range hosts {
		host, port, err := splitPort(h)
		if err != nil || port == 0 {
			port = 443
		}
		r := Rule{Port: port, From: from}
		r.Name, r.Below = strings.CutPrefix(host, "*.")
		list = append(list, r)
	}
	return list
}

// Policy is what the gateway enforces for e; nil for no declaration.
func (e *Egress) Policy(agent Agent) (*Policy, error) {
	if e == nil {
		return nil, nil
	}
	p := &Policy{Enforcement: e.Enforcement, Rules: []Rule{}}
	for _, text := range e.Allow {
		a, err := ParseAllow("egress", text)
		if err != nil {
			return nil, err
		}
		p.Rules = append(p.Rules, a.Rules(agent, e.Managers)...)
	}
	return p, p.Validate()
}
