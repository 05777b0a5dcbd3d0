package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/net/idna"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// target is where a connection would go: a canonical name or an address, and a
// port.
type target struct {
	name    string
	address netip.Addr
	port    int
}

func (t target) host() string {
	if t.address.IsValid() {
		return t.address.String()
	}
	return t.name
}

// schemePorts are the ports of the schemes that need not name one.
var schemePorts = map[string]int{"https": 443, "wss": 443, "http": 80, "ws": 80, "ssh": 22, "git+ssh": 22, "git": 9418}

// parseTarget reads a URL, HOST, HOST:PORT, or git's USER@HOST:PATH. Its errors do
// not repeat the text: a URL may hold a password.
func parseTarget(text string) (target, error) {
	host, port := text, 443
	var err error
	if strings.Contains(text, "://") {
		host, port, err = urlTarget(text)
	} else {
		host, port, err = plainTarget(text)
	}
	if err != nil {
		return target{}, err
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		return target{address: addr.Unmap(), port: port}, nil
	}
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii // as in a declaration
	}
	name, err := spec.CanonicalName(host)
	return target{name: name, port: port}, err
}

func urlTarget(text string) (host string, port int, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", 0, errors.New("not a URL")
	}
	port = schemePorts[strings.ToLower(u.Scheme)]
	if u.Port() != "" {
		port, err = parsePort(u.Port())
	} else if port == 0 {
		err = fmt.Errorf("the port of %s is not known; write HOST:PORT", spec.Printable(u.Scheme, 40))
	}
	return u.Hostname(), port, err
}

// plainTarget reads what is no URL: after a colon, a number is a port, unless a
// user stands before the host, as git has it.
func plainTarget(text string) (host string, port int, err error) {
	if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return addr.String(), 443, nil
	}
	user, rest, withUser := strings.Cut(text, "@")
	if !withUser || strings.ContainsAny(user, ":/") {
		withUser, rest = false, text
	}
	if withUser {
		host, _, _ = strings.Cut(rest, ":")
		return host, 22, nil
	}
	rest, _, _ = strings.Cut(rest, "/")
	if i := strings.LastIndex(rest, "]:"); i >= 0 {
		port, err = parsePort(rest[i+2:])
		return strings.Trim(rest[:i], "["), port, err
	}
	host, digits, withPort := strings.Cut(rest, ":")
	if !withPort {
		return host, 443, nil
	}
	port, err = parsePort(digits)
	return host, port, err
}

func parsePort(digits string) (int, error) {
	port, err := strconv.Atoi(digits)
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != digits {
		return 0, errors.New("what stands where a port would is none, 1 to 65535")
	}
	return port, nil
}

// checked says whether a connection would pass.
type checked struct {
	Host    string `json:"host"`
	Port    int    `json:"port"`
	Passes  bool   `json:"passes"`
	Advised bool   `json:"advised,omitempty"` // it passes where strict would refuse it
	Rule    string `json:"rule,omitempty"`
	Entry   string `json:"entry,omitempty"` // that the rule comes from
	Why     string `json:"why,omitempty"`
}

// checkTarget decides as the gateway does, which has p; nil is no gateway. What is
// reached by the names in local is in the gateway's namespace, and leaves nothing.
func checkTarget(p *spec.Policy, local []string, t target) checked {
	c := checked{Host: t.host(), Port: t.port}
	if p == nil {
		c.Passes, c.Why = true, unrestricted
		return c
	}
	if slices.Contains(local, t.name) || t.address.IsLoopback() {
		c.Passes, c.Why = true, "in the agent's own network"
		return c
	}
	rule, ok := p.MatchAddress(t.address, t.port)
	if t.name != "" {
		rule, ok = p.Match(t.name, t.port)
	}
	if ok {
		c.Passes, c.Rule, c.Entry = true, rule.String(), rule.From
		return c
	}
	switch {
	case t.address.Is6():
		c.Why = "IPv6 is closed"
		return c
	case t.address.IsValid():
		c.Why = "no entry declares this address"
	case p.Knows(t.name):
		c.Why = "declared, but not at this port: " + knownPorts(p, t.name)
	default:
		c.Why = "not declared"
	}
	if p.Enforcement == spec.Advisory && (t.name != "" || spec.Dialable(t.address)) {
		c.Passes, c.Advised, c.Why = true, true, c.Why+"; advisory lets it through"
	}
	return c
}

// knownPorts are the ports at which name is permitted.
func knownPorts(p *spec.Policy, name string) string {
	var ports []string
	for _, r := range p.Rules {
		if _, ok := p.Match(name, r.Port); ok && !slices.Contains(ports, strconv.Itoa(r.Port)) {
			ports = append(ports, strconv.Itoa(r.Port))
		}
	}
	return strings.Join(ports, ", ")
}

// checkAnswer is what would become of connections.
type checkAnswer struct {
	Name        string    `json:"name"`
	Enforcement string    `json:"enforcement"`
	Checked     []checked `json:"checked"`
}

func (a *app) egressCheck(ctx context.Context, c *ucli.Context) (any, error) {
	var targets []target
	for i, text := range c.Args().Slice()[1:] {
		t, err := parseTarget(text)
		if err != nil {
			return nil, refuse("write a URL, HOST, HOST:PORT or USER@HOST:PATH", "argument %d: %w", i+2, err)
		}
		targets = append(targets, t)
	}
	e, _, s, err := a.named(ctx, c)
	if err != nil {
		return nil, err
	}
	policy, err := policyOf(s)
	if err != nil {
		return nil, err
	}
	local, err := localNames(ctx, e, s.Name)
	if err != nil {
		return nil, err
	}
	answer := checkAnswer{Name: s.Name, Enforcement: unrestricted}
	if policy != nil {
		answer.Enforcement = string(policy.Enforcement)
	}
	refused := 0
	for _, t := range targets {
		one := checkTarget(policy, local, t)
		if !one.Passes {
			refused++
		}
		answer.Checked = append(answer.Checked, one)
	}
	if refused > 0 {
		return a.negative(answer, fail(exitFailed, "see what is declared: agent-container egress show "+s.Name, "%d of %d would not pass", refused, len(targets)))
	}
	return answer, nil
}

// localNames are the names that lead to the agent's own network: its own, and
// those of the services beside it there.
func localNames(ctx context.Context, e *engine.Engine, name string) ([]string, error) {
	all, err := e.Containers(ctx, name)
	if err != nil {
		return nil, err
	}
	names := []string{"localhost", name}
	for _, c := range all {
		if service, ok := strings.CutPrefix(c.Name, compose.ServiceContainer(name, "")); ok && c.Behind() {
			names = append(names, strings.ToLower(service))
		}
	}
	return names, nil
}

func (t checkAnswer) text(w io.Writer) {
	var rows [][]string
	for _, c := range t.Checked {
		passes := "no"
		switch {
		case c.Advised:
			passes = "advised"
		case c.Passes:
			passes = "yes"
		}
		rows = append(rows, []string{c.Host, strconv.Itoa(c.Port), passes, c.Rule, c.Entry, c.Why})
	}
	table(w, []string{"HOST", "PORT", "PASSES", "RULE", "ENTRY", "WHY"}, rows)
}
