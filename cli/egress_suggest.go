package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"

	ucli "github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"

	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

// suggestAnswer is what to declare so that refusals pass. Nothing is changed.
type suggestAnswer struct {
	Name     string     `json:"name"`
	Run      string     `json:"run,omitempty"`
	Watched  bool       `json:"watched"`
	Entries  []string   `json:"entries"`
	Unmended []unmended `json:"unmended"`
	Provider string     `json:"provider,omitempty"` // an entry that would do in their place
	Next     string     `json:"next,omitempty"`     // the command that declares them
	LeftOut  int        `json:"left_out,omitempty"` // lines of the journal, or refusals, that are not known
	Why      string     `json:"why,omitempty"`      // nothing was watched
}

func (a *app) egressSuggest(ctx context.Context, c *ucli.Context) (any, error) {
	refused, s, err := a.refused(ctx, c)
	if err != nil {
		return nil, err
	}
	answer := suggestAnswer{
		Name: refused.Name, Run: refused.Run, Watched: refused.Watched, Entries: []string{}, Unmended: []unmended{},
		LeftOut: refused.More + refused.LeftOut + refused.Unreadable, Why: refused.Why,
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
	others, within, err := a.ownNetwork(ctx, s, refused.Refusals)
	if err != nil {
		return nil, err
	}
	var mended []spec.Refusal
	answer.Entries, mended, answer.Unmended = suggest(policy, outsideOf(declared), others, c.Bool("wildcards"))
	answer.Unmended = append(answer.Unmended, within...)
	if len(answer.Entries) > 1 {
		answer.Provider = providerFor(policy, agent, mended)
	}
	if len(answer.Entries) > 0 && s != nil {
		answer.Next = declareCommand(*s, answer.Entries)
	}
	return answer, nil
}

// ownNetwork takes out of refusals those of addresses of the deployment's own
// network: the engine gives them anew at every deploy, perhaps to another service.
func (a *app) ownNetwork(ctx context.Context, s *spec.Spec, refusals []spec.Refusal) (others []spec.Refusal, within []unmended, err error) {
	if s == nil || s.Egress == nil {
		return refusals, nil, nil
	}
	own, _, err := a.openEngine.Subnets(ctx, s.Name)
	for _, r := range refusals {
		if addr, wrong := netip.ParseAddr(r.Address); wrong == nil && own.Contains(addr.Unmap()) {
			within = append(within, unmended{r, "an address of the deployment's own network, which may be another service's after a redeploy; declare the service: service:NAME:PORT"})
			continue
		}
		others = append(others, r)
	}
	return others, within, err
}

func outsideOf(e *spec.Egress) []string {
	if e == nil {
		return nil
	}
	return e.Outside
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
		note("%s", t.Why)
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
	} else if len(t.Unmended) > 0 {
		note("no entry mends what was refused")
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
