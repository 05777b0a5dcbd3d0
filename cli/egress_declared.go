package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/spec"
)

// checkEgress refuses a declaration under which d could not work, and says what
// its agent needs. It comes last of what is checked before anything is created.
func (a *app) checkEgress(ctx context.Context, c *ucli.Context, d *deployment) error {
	e := d.spec.Egress
	if e == nil {
		return nil
	}
	a.leaveOut(d, e)
	if err := d.checkServices(e); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.fill.env)) {
		if compose.ProxyVariable(name) {
			return refuse("leave it out", "environment: %s: where egress is declared programs connect directly, and the gateway decides by the host; with a proxy that would be the proxy's", name)
		}
	}
	if err := a.readManagers(ctx, e); err != nil {
		return err
	}
	p, err := e.Policy(d.agent)
	if err != nil {
		return refuse("see: agent-container up --help", "egress: %v", err)
	}
	if err := a.checkRepo(c, d, p); err != nil {
		return err
	}
	if err := a.checkAPI(c, d, p); err != nil {
		return err
	}
	if c.Command.Name != "plan" {
		a.sayNeeds(d, p)
	}
	return nil
}

// leaveOut takes out of e what settings say of services that d does not have: they
// are for every deployment.
func (a *app) leaveOut(d *deployment, e *spec.Egress) {
	var names []string
	if d.services != nil {
		names = d.services.Names()
	}
	others := map[string]bool{}
	other := func(name string) bool {
		if slices.Contains(names, name) {
			return false
		}
		others[name] = true
		return true
	}
	e.Outside = slices.DeleteFunc(slices.Clone(e.Outside), other)
	if d.services != nil && d.services.Brought && len(e.Outside) > 0 {
		a.say("NOTE: %s stay behind the gateway: egress.outside is for your own services, and these are a project's", strings.Join(e.Outside, ", "))
		e.Outside = nil
	}
	e.Allow = slices.DeleteFunc(slices.Clone(e.Allow), func(text string) bool {
		entry, err := spec.ParseAllow("egress", text)
		return err == nil && entry.Service != "" && !slices.Contains(e.Typed, text) && other(entry.Service)
	})
	if len(others) > 0 && d.services != nil { // without any there is nothing to mistype
		a.say("NOTE: settings speak of services that %s does not have: %s", d.services.File, strings.Join(slices.Sorted(maps.Keys(others)), ", "))
	}
}

// checkServices refuses entries of services that say nothing, and services that
// cannot be in the gateway's namespace.
func (d *deployment) checkServices(e *spec.Egress) error {
	var names []string
	where := "there is no services file"
	if d.services != nil {
		names, where = d.services.Names(), d.services.File+" has "+strings.Join(d.services.Names(), ", ")
	}
	for _, text := range e.Allow {
		a, err := spec.ParseAllow("egress", text)
		if err != nil {
			return err
		}
		name, asHost := a.Service, a.Service == "" && !a.Private && slices.Contains(names, a.Host)
		if asHost {
			name = a.Host
		}
		switch {
		case name == "":
		case !slices.Contains(names, name):
			return refuse("take the entry out", "egress: %s: no service is called so: %s", text, where)
		case !slices.Contains(e.Outside, name):
			return refuse("take the entry out, or list "+name+" in egress.outside", "egress: %s: %s is in the agent's own network, reached at localhost or by its name, and needs no entry", text, name)
		case asHost:
			return refuse("write service:"+name+":PORT", "egress: %s: %s is a service of yours, not a host of the internet", text, name)
		}
	}
	if d.services == nil {
		return nil
	}
	return d.services.CheckInside(e.Outside)
}

// checkRepo refuses a repository that could not be cloned.
func (a *app) checkRepo(c *ucli.Context, d *deployment, p *spec.Policy) error {
	at, ok := d.repoAt()
	if !ok || d.permitted(p, at) {
		return nil
	}
	return a.uncovered(c, d, d.entry(at), "--repo: "+at.String()+" is not among what may leave "+d.spec.Name)
}

// checkAPI refuses an agent without a model. Where there may be several, one is
// enough.
func (a *app) checkAPI(c *ucli.Context, d *deployment, p *spec.Policy) error {
	apis, known := d.modelAPIs()
	if !known {
		a.say("NOTE: which API %s will use is not known here; it has to be among what may leave", d.agent.Name)
		return nil
	}
	var missing []string
	for _, api := range apis {
		if d.permitted(p, api.at) {
			return nil
		}
		missing = append(missing, api.at.String())
	}
	return a.uncovered(c, d, apis[0].entry, "the API of "+d.agent.Name+" is not among what may leave "+d.spec.Name+": "+strings.Join(slices.Compact(missing), ", "))
}

// uncovered refuses d for what entry would permit, or says it where that does not
// stop the work: nothing is refused by advisory, and idle begins none.
func (a *app) uncovered(c *ucli.Context, d *deployment, entry, problem string) error {
	e := d.spec.Egress
	switch {
	case e.Enforcement == spec.Advisory:
		a.say("NOTE: strict would refuse this: %s (--egress-allow %s)", problem, entry)
		return nil
	case d.spec.Mode == spec.Idle && !strings.HasPrefix(problem, "--repo"):
		a.say("NOTE: %s (--egress-allow %s)", problem, entry)
		return nil
	}
	var flags []string
	for _, typed := range append(slices.Clone(e.Typed), entry) { // what is typed takes the place of what was
		if typed == entry || !c.IsSet("egress-allow") {
			flags = append(flags, valueFlag("egress-allow", typed)...)
		}
	}
	return refuse("add "+strings.Join(flags, " "), "%s", problem)
}

// sayNeeds says what is declared, and what of that which the agent reaches by its
// makers' defaults is among it.
func (a *app) sayNeeds(d *deployment, p *spec.Policy) {
	name, agent := d.spec.Name, d.agent.Name
	a.say("%s: egress: %s", name, d.spec.Egress)
	var can, cannot []string
	for _, n := range d.needs(p) {
		if len(n.declared) > 0 {
			can = append(can, n.what+" ("+strings.Join(n.declared, ", ")+")")
		}
		if len(n.others) > 0 {
			cannot = append(cannot, n.what+" ("+strings.Join(n.others, ", ")+")")
		}
	}
	if len(can) > 0 {
		a.say("%s: %s can reach its %s", name, agent, strings.Join(can, ", its "))
	}
	switch {
	case len(cannot) == 0:
	case p.Enforcement == spec.Advisory:
		a.say("%s: let through, and noted: %s's %s", name, agent, strings.Join(cannot, ", "))
	default:
		a.say("%s: %s cannot reach its %s", name, agent, strings.Join(cannot, ", its "))
	}
	if len(d.spec.Egress.Outside) > 0 {
		a.say("NOTE: not behind the gateway, so that nothing limits them: %s", strings.Join(d.spec.Egress.Outside, ", "))
	}
}

// ruleTexts are the rules of p as entries.
func ruleTexts(p *spec.Policy) []string {
	var list []string
	for _, r := range p.Rules {
		list = append(list, r.String())
	}
	return list
}
