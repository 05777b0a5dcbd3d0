package cli

import (
	"errors"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// egressModes are the words of --egress.
var egressModes = []string{string(spec.Strict), string(spec.Advisory), spec.EgressOff}

func egressFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "egress", Usage: "what happens to what is not declared: `MODE` strict refuses it, advisory records it, off lets everything out; a redeploy takes the settings of now with it"},
		&ucli.StringSliceFlag{Name: "egress-allow", KeepSpace: true, Usage: "let out to `ENTRY`: HOST[:PORT], *.DOMAIN[:PORT], private:HOST[:PORT], provider:NAME or service:NAME:PORT, beside the settings'; none for none"},
	}
}

// egressEntryWords are the entries that can be completed.
func egressEntryWords() []string {
	words := []string{spec.NoEntry}
	for _, name := range spec.ProviderNames() {
		words = append(words, "provider:"+name)
	}
	return words
}

// ofEgress reports whether a change is one of egress.
func ofEgress(field string) bool { return field == "egress" || strings.HasPrefix(field, "egress.") }

// declareEgress gives s its declaration: what is typed, what was, the spec that
// is deployed, has, and what settings say. It returns the entries of settings
// that are not taken.
func (a *app) declareEgress(s *spec.Spec, c *ucli.Context, was *spec.Spec) (left []string, err error) {
	return declareTyped(s, c, was, spec.EgressWish{Settings: a.settings.Egress(), Outside: a.settings.Outside()})
}

// declareTyped is declareEgress with w, which holds what settings say.
func declareTyped(s *spec.Spec, c *ucli.Context, was *spec.Spec, w spec.EgressWish) (left []string, err error) {
	if was != nil {
		w.Deployed, w.Was, w.Held = true, was.Egress, slices.Contains(was.Typed, "egress")
	}
	if c.IsSet("egress") {
		w.Mode = c.String("egress")
		if !slices.Contains(egressModes, w.Mode) {
			return nil, refuse("write --egress "+strings.Join(egressModes, ", ")+"; entries are --egress-allow", "--egress: %q is not one of %s", w.Mode, strings.Join(egressModes, ", "))
		}
	}
	if w.Typed, err = typedEntries(c); err != nil {
		return nil, err
	}
	if w.Mode == spec.EgressOff && w.Typed != nil {
		return nil, refuse("leave one of them out", "--egress off and --egress-allow contradict each other")
	}
	s.Egress, left = w.Declare()
	s.Typed = slices.DeleteFunc(slices.Clone(s.Typed), func(flag string) bool {
		return flag == "egress" && w.Was == nil && w.Typed != nil // it was off, and is over
	})
	if w.Mode != "" && !slices.Contains(s.Typed, "egress") {
		s.Typed = append(s.Typed, "egress")
		slices.Sort(s.Typed)
	}
	return left, nil
}

// typedEntries reads --egress-allow: nil when it was not typed, empty for none.
func typedEntries(c *ucli.Context) ([]string, error) {
	if !c.IsSet("egress-allow") {
		return nil, nil
	}
	typed := c.StringSlice("egress-allow")
	if slices.Equal(typed, []string{spec.NoEntry}) {
		typed = nil
	}
	e, err := spec.NewEgress("--egress-allow", spec.Strict, typed)
	if err != nil {
		return nil, err
	}
	return e.Allow, nil
}

// declareEgressAgain is declareEgress of a redeploy. What settings permit beyond
// what was deployed is named with the command that takes it.
func (a *app) declareEgressAgain(next *spec.Spec, c *ucli.Context, was spec.Spec) error {
	left, err := a.declareEgress(next, c, &was)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		a.say("NOTE: settings would let %s out to %s too, and it was deployed without: agent-container redeploy %s --egress %s", next.Name, strings.Join(left, " "), next.Name, next.Egress.Enforcement)
	}
	var refusal *spec.Error
	if err := next.Validate(); errors.As(err, &refusal) && refusal.Field == "egress" {
		return refuse("type it: --egress strict takes what settings say", "what may leave %s is not readable from its container: %v", next.Name, refusal.Problem)
	}
	return nil
}

// needsEgress refuses a redeploy of a container whose network was held to
// something, and nobody knows to what.
func needsEgress(c *ucli.Context, old *engine.Container, was spec.Spec) error {
	held := slices.ContainsFunc(old.Config.Env, func(e string) bool { return strings.HasPrefix(e, spec.EnvEgress+"=") })
	if !held || was.Egress != nil || c.IsSet("egress") {
		return nil
	}
	return refuse("type it: --egress strict takes what settings say; add --egress-allow ENTRY for more", "what might leave %s was restricted, and its container does not say to what", was.Name)
}

// egressOrigin says why a redeploy changes what is declared.
func (a *app) egressOrigin(c *ucli.Context, field string) string {
	switch {
	case c.IsSet("egress"):
		return "--egress"
	case field != "egress.enforcement" && field != "egress.outside" && c.IsSet("egress-allow"):
		return "--egress-allow"
	case field == "egress.enforcement" || field == "egress.outside":
		return a.settings.Get(field).Origin
	}
	v := a.settings.Get("egress.allow")
	if v.Text == "" {
		v = a.settings.Get("egress.enforcement")
	}
	return v.Origin
}

// keptEgress lists what of egress was typed and stays so.
func (r *redeployment) keptEgress() []string {
	var list []string
	next := r.next.spec
	if slices.Contains(r.was.Typed, "egress") && slices.Contains(next.Typed, "egress") && egressMode(r.was.Egress) == egressMode(next.Egress) {
		list = append(list, "egress "+egressMode(next.Egress))
	}
	if r.was.Egress != nil && next.Egress != nil && len(next.Egress.Typed) > 0 && slices.Equal(r.was.Egress.Typed, next.Egress.Typed) {
		list = append(list, "egress-allow "+strings.Join(next.Egress.Typed, " "))
	}
	return list
}

// egressMode is the word of --egress for e.
func egressMode(e *spec.Egress) string {
	if e == nil {
		return spec.EgressOff
	}
	return string(e.Enforcement)
}

// undoEgress are the flags that give was its declaration back after next, as far
// as flags can: the entries that were typed, and what settings no longer say.
func undoEgress(was, next spec.Spec) []string {
	if !slices.ContainsFunc(spec.Changes(was, next), func(c spec.Change) bool { return ofEgress(c.Field) }) {
		return nil
	}
	if was.Egress == nil {
		return valueFlag("egress", spec.EgressOff)
	}
	var argv []string
	if egressMode(was.Egress) != egressMode(next.Egress) {
		argv = valueFlag("egress", egressMode(was.Egress))
	}
	entries := slices.Clone(was.Egress.Typed)
	for _, entry := range was.Egress.Allow {
		if next.Egress == nil || !spec.Covered(entry, next.Egress.Allow) {
			entries = append(entries, entry)
		}
	}
	slices.Sort(entries)
	entries = slices.Compact(entries)
	if len(entries) == 0 {
		entries = []string{spec.NoEntry}
	}
	return append(argv, eachFlag("egress-allow", entries)...)
}
