package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

// EgressLimits are what a gateway does not cover, in short. docs/egress.md has
// each of them.
var EgressLimits = []string{
	"what is sent to a declared host is not looked at: who may reach it can send it anything",
	"behind TLS only the name in the first bytes is compared, so another site behind the same name is not told apart",
	"ports other than 443 and 80 are passed as raw bytes to the declared host",
	"which declared names are asked for is seen by the resolver of the engine's host",
	"services outside are not limited, and an agent may reach them where they are declared",
	"a socket in a directory that is mounted leads to whoever listens at it, and a volume that a service outside has too leads to that one",
	"whoever may connect to the published ssh port is answered, and an agent can put another program behind it",
	"in advisory what is not listed is let through, and only noted",
	"the journal is bounded: beyond 20 lines a second they are counted, and the engine keeps the newest 50 MB",
	"a fault in the kernel or the engine that lets an agent out of its container lets it out of this too",
}

func egressCommand() command {
	one := func(name, usage string, run func(*app, context.Context, *ucli.Context) (any, error), flags ...ucli.Flag) command {
		return command{name: name, args: "NAME", usage: usage, min: 1, max: 1, run: run, flags: flags}
	}
	runFlag := &ucli.StringFlag{Name: "run", Usage: "of the run `ID`, from its record; the beginning of its id suffices"}
	check := one("check", "say whether connections would pass, and by which rule", (*app).egressCheck)
	check.args, check.min, check.max = "NAME URL...", 2, -1
	check.detail = `A URL, HOST (port 443), HOST:PORT, or git's user@HOST:PATH (port 22). Nothing is
connected or looked up: a name that leads to an address that is not public is
refused when it is dialled.`
	suggest := one("suggest", "print the entries with which what was refused would pass", (*app).egressSuggest, runFlag,
		&ucli.BoolFlag{Name: "wildcards", Usage: "write *.DOMAIN for several hosts below one domain"})
	suggest.detail = "Nothing is changed: what it prints is for you to review."
	return command{
		name: "egress", group: groupEgress, usage: "see what may leave a deployment, and what was refused",
		sub: []command{
			one("show", "show what is declared, whether it is enforced right now, and what it does not cover", (*app).egressShow),
			check,
			one("denied", "list what was refused since the container's start", (*app).egressDenied, runFlag),
			suggest,
		},
	}
}

// egressAnswer is a deployment's egress as it is now.
type egressAnswer struct {
	Name        string       `json:"name"`
	Declared    *spec.Egress `json:"declared"`    // null without a declaration
	Enforcement string       `json:"enforcement"` // unrestricted, strict or advisory
	Enforced    bool         `json:"enforced"`    // as probed now
	Why         string       `json:"why"`
	Rules       []egressRule `json:"rules"`
	Outside     []string     `json:"outside"`
	Limits      []string     `json:"limits"`
}

// egressRule is a rule and the entry that it comes from.
type egressRule struct {
	Entry   string `json:"entry"`
	Rule    string `json:"rule"`
	Raw     bool   `json:"raw,omitempty"`     // neither TLS nor HTTP is looked at
	Private bool   `json:"private,omitempty"` // it may lead to an address that is not public
}

func (a *app) egressShow(ctx context.Context, c *ucli.Context) (any, error) {
	e, found, s, err := a.named(ctx, c)
	if err != nil {
		return nil, err
	}
	answer := egressAnswer{
		Name: s.Name, Declared: s.Egress, Enforcement: unrestricted, Why: "nothing is declared: everything may leave",
		Rules: []egressRule{}, Outside: []string{}, Limits: EgressLimits,
	}
	if s.Egress == nil {
		return answer, nil
	}
	policy, err := policyOf(s)
	if err != nil {
		return nil, err
	}
	answer.Enforcement, answer.Outside = string(s.Egress.Enforcement), append(answer.Outside, s.Egress.Outside...)
	for _, r := range policy.Rules {
		answer.Rules = append(answer.Rules, egressRule{r.From, r.String(), r.Address.IsValid() || r.Port != 443 && r.Port != 80, r.Private})
	}
	if answer.Why, err = a.unenforced(ctx, e, found); err != nil {
		return nil, err
	}
	if answer.Why != "" {
		return a.negative(answer, fail(exitFailed, mendEgress(found, s), "the egress of %s is not enforced now: %s", s.Name, answer.Why))
	}
	answer.Enforced, answer.Why = true, "the kernel's rules are the gateway's, and it answers from inside"
	return answer, nil
}

// mendEgress is the command after which the egress of a deployment is enforced
// again, "" where there is none: a job is not run again.
func mendEgress(c *engine.Container, s spec.Spec) string {
	switch {
	case s.Mode == spec.Headless || c.State.Status == "created":
		return ""
	case c.State.Alive():
		return "start it behind its gateway again: agent-container up " + s.Name + "; or make both anew: agent-container redeploy " + s.Name
	}
	return "start it: agent-container start " + s.Name
}

// policyOf is what the gateway of a deployment enforces, nil for none.
func policyOf(s spec.Spec) (*spec.Policy, error) {
	agent, err := spec.LookupAgent(s.Agent)
	if err != nil {
		return nil, err
	}
	return s.Egress.Policy(agent)
}

// negative is an answer that is no: it is printed, and the command fails all the
// same.
func (a *app) negative(answer texter, f *failure) (any, error) {
	f.data = answer
	if !a.json {
		if err := a.answer(answer); err != nil {
			return nil, err
		}
	}
	return nil, f
}

// unenforced says why a declaration is not enforced now, "" when it is. The
// gateway is asked, in its own container; only the loss of the engine is an error.
func (a *app) unenforced(ctx context.Context, e *engine.Engine, agent *engine.Container) (string, error) {
	name := agent.Deployment()
	gateway, err := e.Inspect(ctx, compose.GatewayContainer(name))
	switch {
	case err != nil:
		return "", err
	case gateway != nil && !compose.Owned(gateway.Config.Labels, name):
		return "", &engine.ForeignError{Kind: "container", Name: gateway.Name}
	case !agent.State.Alive():
		return "nothing runs: the agent's container is " + agent.State.Status, nil
	}
	if why := gatewayLost(agent, gateway); why != "" {
		return why + lastWords(ctx, e, gateway), nil
	}
	probe, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	_, err = e.Probe(probe, gateway.ID, spec.GatewayGuest, "gateway", "check")
	var lost *engine.UnreachableError
	var exit *process.ExitError
	switch {
	case ctx.Err() != nil || errors.As(err, &lost):
		return "", err
	case probe.Err() != nil:
		return fmt.Sprintf("the gateway gave no answer within %s", lookTime), nil
	case errors.As(err, &exit) && strings.TrimSpace(exit.Stderr) != "":
		lines := strings.Split(strings.TrimSpace(exit.Stderr), "\n")
		return spec.Printable(strings.TrimPrefix(lines[len(lines)-1], "agent-container: error: "), 500), nil
	case err != nil:
		return spec.Printable(oneLine(err.Error()), 500), nil
	}
	return "", nil
}

// lastWords are what a gateway that has ended said last beside its journal, such as
// the rule that it could not install.
func lastWords(ctx context.Context, e *engine.Engine, gateway *engine.Container) string {
	if gateway == nil || gateway.State.Alive() {
		return ""
	}
	var said bytes.Buffer
	err := e.Logs(ctx, gateway.ID, false, "", "20", engine.Streams{Out: io.Discard, Err: &said}) // a few lines, of our own program
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := lines[len(lines)-1]; err == nil && last != "" {
		return ": " + spec.Printable(strings.TrimPrefix(last, "agent-container: error: "), 500)
	}
	return ""
}

// text is one fact a line.
func (t egressAnswer) text(w io.Writer) {
	line := func(key, format string, args ...any) { fmt.Fprintf(w, key+": "+format+"\n", args...) }
	line("name", "%s", t.Name)
	line("egress", "%s", t.Enforcement)
	switch {
	case t.Declared == nil:
		line("enforced", "no: %s", t.Why)
		return
	case !t.Enforced:
		line("enforced", "no: %s", t.Why)
	case t.Enforcement == string(spec.Advisory):
		line("enforced", "as advice, probed now: what no entry permits is let through and noted")
	default:
		line("enforced", "yes, probed now: %s", t.Why)
	}
	t.entries(line)
	for _, s := range t.Outside {
		line("outside", "%s: the gateway does not limit it", s)
	}
	for _, l := range t.Limits {
		line("not covered", "%s", l)
	}
}

// entries is a line for each entry, whether or not it stands for a host here.
func (t egressAnswer) entries(line func(key, format string, args ...any)) {
	var raw []string
	for _, entry := range t.Declared.Allow {
		var rules []string
		for _, r := range t.Rules {
			if r.Entry == entry {
				rules = append(rules, r.Rule)
			}
			if r.Entry == entry && r.Raw {
				raw = append(raw, r.Rule)
			}
		}
		line("entry", "%s permits %s", entry, cmp.Or(strings.Join(rules, " "), "nothing: it stands for no host here"))
	}
	switch {
	case len(t.Declared.Allow) > 0:
	case t.Enforcement == string(spec.Advisory):
		line("entry", "none: all that leaves is noted")
	default:
		line("entry", "none: nothing may leave")
	}
	for _, r := range raw {
		line("raw", "%s: bytes are passed as they are", r)
	}
}
