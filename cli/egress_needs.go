package cli

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-container/agent-container/spec"
)

// reach is a host and a port, which is usual when there is none.
func reach(host, port string, usual int) (hostPort, bool) {
	at := hostPort{port: usual}
	if port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return at, false
		}
		at.port = n
	}
	var err error
	if at.address, err = netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		at.address = at.address.Unmap()
		return at, true
	}
	at.name, err = spec.CanonicalName(host)
	return at, err == nil
}

// String is HOST, or HOST:PORT where the port is not that of https.
func (h hostPort) String() string {
	host := h.name
	if h.address.IsValid() {
		host = h.address.String()
	}
	if h.port != 443 {
		host += ":" + strconv.Itoa(h.port)
	}
	return host
}

// entry is what --egress-allow takes for it.
func (h hostPort) entry() string {
	if h.address.IsValid() {
		return fmt.Sprintf("private:%s:%d", h.address, h.port)
	}
	return h.String()
}

// entry is what permits d to reach h.
func (d *deployment) entry(h hostPort) string {
	if d.services != nil && slices.Contains(d.services.Names(), h.name) {
		return fmt.Sprintf("service:%s:%d", h.name, h.port)
	}
	return h.entry()
}

// permitted reports whether h is reached under d's declaration: by a rule, or
// because it is in the same namespace.
func (d *deployment) permitted(p *spec.Policy, h hostPort) bool {
	if h.address.IsValid() {
		_, ok := p.MatchAddress(h.address, h.port)
		return ok || h.address.IsLoopback()
	}
	_, ok := p.Match(h.name, h.port)
	return ok || h.name == "localhost" || d.inside(h.name)
}

// inside reports whether name is a service in the agent's namespace.
func (d *deployment) inside(name string) bool {
	return d.services != nil && slices.Contains(d.services.Names(), name) && !slices.Contains(d.spec.Egress.Outside, name)
}

// api is one place where the agent may find its models, and the entry that
// permits it.
type api struct {
	at    hostPort
	entry string
}

// modelAPIs are the places of which d's agent needs one: those that a variable or
// its configuration names, else its row's, or those that the keys are for. known
// is false where nothing says it.
func (d *deployment) modelAPIs() (list []api, known bool) {
	isSet := func(name string) bool { return d.fill.env[name] != "" }
	if slices.ContainsFunc(d.agent.Elsewhere, isSet) {
		return nil, false
	}
	for _, u := range d.baseURLs() {
		if at, ok := hostOf(u); ok {
			list = append(list, api{at, d.entry(at)})
		}
	}
	switch {
	case d.agent.AnyProvider:
		for _, key := range d.agent.Keys {
			if p, ok := spec.ProviderOfKey(key); ok && isSet(key) {
				at, _ := reach(p.Hosts[0], "", 443)
				list = append(list, api{at, "provider:" + p.Name})
			}
		}
	case len(list) == 0:
		for _, host := range d.agent.API {
			at, _ := reach(host, "", 443)
			list = append(list, api{at, "provider:" + spec.AgentProvider})
		}
	}
	return list, len(list) > 0
}

// need is something that the agent reaches: the hosts that are declared, or need
// not be, and the others.
type need struct {
	what             string
	declared, others []string
}

// needs are the API that d's agent will use, and what else its makers have it
// reach.
func (d *deployment) needs(p *spec.Policy) []need {
	sort := func(what string, hosts []string) need {
		n := need{what: what}
		for _, host := range hosts {
			if spec.Covered(host+":443", ruleTexts(p)) {
				n.declared = append(n.declared, host)
			} else {
				n.others = append(n.others, host)
			}
		}
		return n
	}
	api := need{what: "API"}
	apis, _ := d.modelAPIs()
	for _, one := range apis {
		if d.permitted(p, one.at) {
			api.declared = append(api.declared, one.at.String())
		} else {
			api.others = append(api.others, one.at.String())
		}
	}
	list := []need{api, sort("login", d.agent.Login), sort("telemetry", d.agent.Telemetry)}
	if d.agent.AnyProvider { // its row's is beside the API that a key is for
		list = append(list, sort("list of models", d.agent.API))
	}
	return list
}

// baseURL finds an API's address in configuration, be it TOML or JSON.
var baseURL = regexp.MustCompile(`(?i)[a-z0-9_]*base_?url["']?\s*[:=]\s*["'](https?://[^"'\s]+)`)

// baseURLs are the addresses of APIs that d's environment and configuration name.
func (d *deployment) baseURLs() []string {
	var list []string
	for _, name := range d.agent.BaseURLs {
		if value := d.fill.env[name]; value != "" {
			list = append(list, value)
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, file := range d.fill.config {
		for line := range strings.Lines(string(file.content)) {
			if text := strings.TrimSpace(line); strings.HasPrefix(text, "#") || strings.HasPrefix(text, "//") {
				continue
			}
			for _, found := range baseURL.FindAllStringSubmatch(line, -1) {
				list = append(list, found[1])
			}
		}
	}
	return list
}

// repoAt is where d's repository is fetched from.
func (d *deployment) repoAt() (hostPort, bool) {
	r, _, err := spec.ParseRepo(d.spec.Repo)
	if d.spec.Repo == "" || err != nil {
		return hostPort{}, false
	}
	host, port, _ := strings.Cut(r.Host, ":")
	if strings.HasPrefix(r.Host, "[") {
		host, port, _ = strings.Cut(strings.TrimPrefix(r.Host, "["), "]")
		port = strings.TrimPrefix(port, ":")
	}
	usual := 443
	switch {
	case r.SSH:
		usual = 22
	case strings.HasPrefix(r.URL, "http://"):
		usual = 80
	}
	return reach(host, port, usual)
}
