package cli

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/agent-container/agent-container/spec"
)

// unmended is a refusal that no entry mends, or none that is written for anybody.
type unmended struct {
	spec.Refusal
	Why string `json:"why"`
}

// suggest returns the fewest entries that, beside p, permit the refusals that
// entries can permit, those refusals, and the others with the reason. What p
// permits by now is neither.
func suggest(p *spec.Policy, outside []string, refusals []spec.Refusal, wildcards bool) (entries []string, mended []spec.Refusal, others []unmended) {
	others = []unmended{}
	hosts := map[string]*wantedHost{}
	for _, r := range refusals {
		if p != nil && permitted(p.Rules, r) {
			continue
		}
		entry, why := entryFor(r, outside)
		switch {
		case why != "":
			others = append(others, unmended{r, why})
			continue
		case entry != "":
			entries = append(entries, entry)
		case hosts[r.Name] == nil: // a host, whose refusals are one matter
			hosts[r.Name] = &wantedHost{name: r.Name}
			fallthrough
		default:
			hosts[r.Name].want(r.Port)
		}
		mended = append(mended, r)
	}
	entries = needed(p, append(entries, hostEntries(hosts, wildcards)...), mended)
	rules := rulesOf(p, entries)
	others = slices.DeleteFunc(others, func(u unmended) bool { // one service is asked for by name, and at a port
		also := permitted(rules, u.Refusal)
		if also {
			mended = append(mended, u.Refusal)
		}
		return also
	})
	return entries, mended, others
}

// hostEntries are the entries for hosts, in no order.
func hostEntries(hosts map[string]*wantedHost, wildcards bool) []string {
	var allow []spec.Allow
	for _, h := range hosts {
		allow = append(allow, h.entries()...)
	}
	if wildcards {
		allow = grouped(allow)
	}
	var entries []string
	for _, a := range allow {
		entries = append(entries, a.String())
	}
	return entries
}

// rulesOf are the rules of p and of entries, which name no provider.
func rulesOf(p *spec.Policy, entries []string) []spec.Rule {
	var rules []spec.Rule
	if p != nil {
		rules = slices.Clone(p.Rules)
	}
	for _, text := range entries {
		if a, err := spec.ParseAllow("egress", text); err == nil {
			rules = append(rules, a.Rules(spec.Agent{}, nil)...)
		}
	}
	return rules
}

// wantedHost is a name and the ports at which it was refused.
type wantedHost struct {
	name  string
	web   bool // 443 or 80
	ports []int
}

// want adds a port; 0 says that only the name was asked for.
func (h *wantedHost) want(port int) {
	switch {
	case port == 443 || port == 80:
		h.web = true
	case port != 0 && !slices.Contains(h.ports, port):
		h.ports = append(h.ports, port)
	}
}

func (h *wantedHost) entries() []spec.Allow {
	var list []spec.Allow
	if h.web || len(h.ports) == 0 {
		list = append(list, spec.Allow{Host: h.name})
	}
	for _, p := range h.ports {
		list = append(list, spec.Allow{Host: h.name, Port: p})
	}
	return list
}

// unmendable says why an entry does not mend a refusal of a stage.
var unmendable = map[spec.Stage]string{
	spec.StageTLS:     "the name is declared; what was sent is no TLS for it",
	spec.StageHTTP:    "the name is declared; the request was for another host",
	spec.StageResolve: "the name is declared; it leads nowhere, or to an address that is not public: if that is your own network, declare private:HOST",
	spec.StageDial:    "the name is declared; the host does not answer",
	spec.StageLimit:   "there was too much at a time",
}

// entryFor is the entry that mends a refusal, "" for that of its name, or why
// there is none.
func entryFor(r spec.Refusal, outside []string) (entry, why string) {
	if r.Stage == spec.StageResolve && slices.Contains(outside, r.Name) { // declared as a host of the internet
		return "", "a service of yours; declare " + spec.Allow{Service: r.Name, Port: r.Port}.String()
	}
	if why := unmendable[r.Stage]; why != "" {
		return "", why
	}
	if r.Name == "" {
		return addressEntry(r)
	}
	name, err := spec.CanonicalName(r.Name)
	switch {
	case err != nil || name != r.Name:
		return "", "no name that can be declared"
	case strings.HasSuffix(name, ".arpa"):
		return "", "a question for the name of an address; programs do without the answer"
	case slices.Contains(outside, name) && r.Port == 0:
		return "", "a service of yours; declare service:" + name + ":PORT"
	case slices.Contains(outside, name):
		return spec.Allow{Service: name, Port: r.Port}.String(), ""
	case !strings.Contains(name, "."):
		return "", "no host of the internet; if it is one of your own network, declare private:" + name
	}
	return "", ""
}

// addressEntry is the entry for an address, if it is one of the user's own network.
func addressEntry(r spec.Refusal) (entry, why string) {
	addr, err := netip.ParseAddr(r.Address)
	if err != nil || r.Port == 0 {
		return "", "it is not known where it went"
	}
	a := spec.Allow{Host: addr.Unmap().String(), Private: true}
	if r.Port != 443 && r.Port != 80 {
		a.Port = r.Port
	}
	var wrong *spec.Error
	if _, err := spec.ParseAllow("egress", a.String()); errors.As(err, &wrong) {
		_, why, _ = strings.Cut(wrong.Problem, `": `)
		return "", why
	}
	return a.String(), ""
}

// permitted reports whether rules would let pass what was refused.
func permitted(rules []spec.Rule, r spec.Refusal) bool {
	p := &spec.Policy{Enforcement: spec.Strict, Rules: rules}
	if r.Name == "" {
		addr, err := netip.ParseAddr(r.Address)
		_, ok := p.MatchAddress(addr.Unmap(), r.Port)
		return err == nil && ok
	}
	if r.Stage != spec.StageDNS && r.Stage != spec.StagePort {
		return false
	}
	if r.Port == 0 {
		return p.Knows(r.Name)
	}
	_, ok := p.Match(r.Name, r.Port)
	return ok
}

// needed sorts entries and drops each without which everything passes all the same.
func needed(p *spec.Policy, entries []string, mended []spec.Refusal) []string {
	entries = append([]string{}, entries...)
	slices.Sort(entries)
	entries = slices.Compact(entries)
	for _, leave := range entries {
		less := slices.DeleteFunc(slices.Clone(entries), func(e string) bool { return e == leave })
		rules := rulesOf(p, less)
		if !slices.ContainsFunc(mended, func(r spec.Refusal) bool { return !permitted(rules, r) }) {
			entries = less
		}
	}
	return entries
}

// grouped writes several hosts at one port, below one domain that somebody can
// register, as one entry for all names below what they have in common.
func grouped(hosts []spec.Allow) []spec.Allow {
	type key struct {
		domain string
		port   int
	}
	groups := map[key][]spec.Allow{}
	var list []spec.Allow
	for _, h := range hosts {
		domain, err := publicsuffix.EffectiveTLDPlusOne(h.Host)
		if err != nil || domain == h.Host {
			list = append(list, h)
			continue
		}
		k := key{domain, h.Port}
		groups[k] = append(groups[k], h)
	}
	for k, group := range groups {
		if len(group) < 2 {
			list = append(list, group...)
			continue
		}
		list = append(list, spec.Allow{Host: "*." + commonParent(group, k.domain), Port: k.port})
	}
	return list
}

// commonParent is the longest name below or at domain that all hosts are below.
func commonParent(hosts []spec.Allow, domain string) string {
	_, parent, _ := strings.Cut(hosts[0].Host, ".")
	for parent != domain && slices.ContainsFunc(hosts, func(h spec.Allow) bool { return !strings.HasSuffix(h.Host, "."+parent) }) {
		_, parent, _ = strings.Cut(parent, ".")
	}
	return parent
}

// providerFor is the first provider that permits all of what was refused, or "".
func providerFor(p *spec.Policy, agent spec.Agent, mended []spec.Refusal) string {
	for _, name := range spec.ProviderNames() {
		a := spec.Allow{Provider: name}
		rules := a.Rules(agent, nil)
		if p != nil {
			rules = append(slices.Clone(p.Rules), rules...)
		}
		if !slices.ContainsFunc(mended, func(r spec.Refusal) bool { return !permitted(rules, r) }) {
			return a.String()
		}
	}
	return ""
}
