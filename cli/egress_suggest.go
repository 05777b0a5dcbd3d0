package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/net/publicsuffix"
	"gopkg.in/yaml.v3"

	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

// unmended is a refusal that no entry mends, or none that is written for anybody.
type unmended struct {
	spec.Refusal
	Why string `json:"why"`
}

// suggestAnswer is what to declare so that refusals pass. Nothing is changed.
type suggestAnswer struct {
	Name      string     `json:"name"`
	Run       string     `json:"run,omitempty"`
	Watched   bool       `json:"watched"`
	Entries   []string   `json:"entries"`
	Unmended  []unmended `json:"unmended"`
	Provider  string     `json:"provider,omitempty"` // an entry that would do in their place
	Next      string     `json:"next,omitempty"`     // the command that declares them
	LeftOut   int        `json:"left_out,omitempty"` // lines of the journal, or refusals, that are not known
	unwatched string
}

func (a *app) egressSuggest(ctx context.Context, c *ucli.Context) (any, error) {
	refused, s, err := a.refused(ctx, c)
	if err != nil {
		return nil, err
	}
	answer := suggestAnswer{
		Name: refused.Name, Run: refused.Run, Watched: refused.Watched, Entries: []string{}, Unmended: []unmended{},
		LeftOut: refused.More + refused.LeftOut + refused.Unreadable, unwatched: refused.Why,
	}
	if !refused.Watched {
		return answer, nil
	}
	var policy *spec.Policy
	var declared *spec.Egress
	var agent spec.Agent
	if s != nil && s.Egress != nil {
		declared = s.Egress
		if agent, err = spec.LookupAgent(s.Agent); err == nil {
			policy, err = policyOf(*s)
		}
		if err != nil {
			return nil, err
		}
	}
	var mended []spec.Refusal
	answer.Entries, mended, answer.Unmended = suggest(policy, outsideOf(declared), refused.Refusals, c.Bool("wildcards"))
	if len(answer.Entries) > 1 {
		answer.Provider = providerFor(policy, agent, mended)
	}
	if len(answer.Entries) > 0 && s != nil {
		answer.Next = declareCommand(*s, answer.Entries)
	}
	return answer, nil
}

func outsideOf(e *spec.Egress) []string {
	if e == nil {
		return nil
	}
	return e.Outside
}

// suggest returns the fewest entries that, beside p, permit the refusals that
// entries can permit, those refusals, and the others with the reason. What p
// permits by now is neither.
func suggest(p *spec.Policy, outside []string, refusals []spec.Refusal, wildcards bool) (entries []string, mended []spec.Refusal, others []unmended) {
	entries, others = []string{}, []unmended{}
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
		case entry == "": // a host, whose refusals are one matter
			h := hosts[r.Name]
			if h == nil {
				h = &wantedHost{name: r.Name}
				hosts[r.Name] = h
			}
			h.want(r.Port)
		default:
			entries = append(entries, entry)
		}
		mended = append(mended, r)
	}
	var allow []spec.Allow
	for _, h := range hosts {
		allow = append(allow, h.entries()...)
	}
	if wildcards {
		allow = grouped(allow)
	}
	for _, e := range allow {
		entries = append(entries, e.String())
	}
	slices.Sort(entries)
	entries = needed(p, slices.Compact(entries), mended)
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

// needed drops each entry without which everything passes all the same.
func needed(p *spec.Policy, entries []string, mended []spec.Refusal) []string {
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

// declareCommand is the redeploy that declares entries beside those that were
// typed before, which typing others would drop.
func declareCommand(s spec.Spec, entries []string) string {
	argv := []string{"agent-container", "redeploy", s.Name}
	if s.Egress != nil {
		entries = append(slices.Clone(s.Egress.Typed), entries...)
	}
	for _, e := range entries {
		argv = append(argv, "--egress-allow", e)
	}
	text := process.Quote(argv)
	if s.Mode == spec.Headless {
		text += " --task ..."
	}
	return text
}

// text is YAML to review; everything but the entries is a comment.
func (t suggestAnswer) text(w io.Writer) {
	note := func(format string, args ...any) {
		fmt.Fprintln(w, "# "+spec.Printable(fmt.Sprintf(format, args...), maxSaid))
	}
	if !t.Watched {
		note("%s", t.unwatched)
		return
	}
	if len(t.Entries) > 0 {
		note("nothing has been changed; with these entries what was refused would pass")
		var document struct {
			Egress struct {
				Allow []string `yaml:"allow"`
			} `yaml:"egress"`
		}
		document.Egress.Allow = t.Entries
		b, err := yaml.Marshal(document)
		if err != nil { // strings always marshal
			panic(err)
		}
		_, _ = w.Write(b)
	} else {
		note("no entry is needed")
	}
	if t.Provider != "" {
		note("%s would do in their place", t.Provider)
	}
	for _, u := range t.Unmended {
		note("not mended by an entry: %s, stage %s: %s", cmp.Or(unmendedHost(u.Refusal), "a connection"), u.Stage, u.Why)
	}
	if t.LeftOut > 0 {
		note("%d more lines are not known: the journal is not whole", t.LeftOut)
	}
	if t.Next != "" {
		note("to declare them: %s", t.Next)
	}
}

func unmendedHost(r spec.Refusal) string {
	if r.Port == 0 {
		return r.Host()
	}
	return fmt.Sprintf("%s port %d", r.Host(), r.Port)
}
