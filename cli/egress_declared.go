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
	if d.services == nil {
		e.Outside = nil // there is nobody to stay there
	}
	if err := d.checkServices(e); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.fill.env)) {
		if compose.ProxyVariable(name) {
			return refuse("leave it out; where everything goes through a proxy, declare that one's host", "environment: %s: where egress is declared programs connect directly, and the gateway decides; "+
				"a proxy would be asked for every host in its place, and those who heed no such variable would fail", name)
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

// checkServices refuses entries and names of services that say nothing, and
// services that cannot be in the gateway's namespace.
func (d *deployment) checkServices(e *spec.Egress) error {
	var names []string
	where := "there is no services file"
	if d.services != nil {
		names, where = d.services.Names(), d.services.File+" has "+strings.Join(d.services.Names(), ", ")
	}
	for _, name := range e.Outside {
		if !slices.Contains(names, name) {
			return refuse("correct egress.outside, which is taken with --egress "+string(e.Enforcement), "egress.outside: no service is called %s: %s", name, where)
		}
	}
	for _, text := range e.Allow {
		a, err := spec.ParseAllow("egress", text)
		switch {
		case err != nil:
			return err
		case a.Service == "":
		case !slices.Contains(names, a.Service):
			return refuse("take the entry out", "egress: %s: no service is called so: %s", text, where)
		case !slices.Contains(e.Outside, a.Service):
			return refuse("take the entry out, or list "+a.Service+" in egress.outside", "egress: %s: %s is in the agent's own network, reached at localhost or by its name, and needs no entry", text, a.Service)
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
	if e.Enforcement == spec.Advisory || d.spec.Mode == spec.Idle && !strings.HasPrefix(problem, "--repo") {
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

// sayNeeds says what the agent's makers have it reach, and what of it may leave.
func (a *app) sayNeeds(d *deployment, p *spec.Policy) {
	a.say("%s: egress is %s", d.spec.Name, d.spec.Egress)
	for _, need := range []struct {
		what  string
		hosts []string
	}{{"its API", d.agent.API}, {"a login", d.agent.Login}, {"telemetry", d.agent.Telemetry}} {
		var may, not []string
		for _, host := range need.hosts {
			if spec.Covered(host+":443", ruleTexts(p)) {
				may = append(may, host)
			} else {
				not = append(not, host)
			}
		}
		text := strings.Join(may, ", ")
		if len(may) > 0 {
			text += " permitted"
		}
		if len(may) > 0 && len(not) > 0 {
			text += ", "
		}
		if len(not) > 0 {
			text += strings.Join(not, ", ") + " not permitted"
		}
		if text != "" {
			a.say("%s: %s uses for %s: %s", d.spec.Name, d.agent.Name, need.what, text)
		}
	}
	if len(d.spec.Egress.Outside) > 0 {
		a.say("NOTE: outside of it, and not held to anything: %s", strings.Join(d.spec.Egress.Outside, ", "))
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
