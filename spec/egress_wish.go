package spec

import (
	"fmt"
	"maps"
	"slices"
)

// EgressOff is the word for no declaration, beside the enforcements.
const EgressOff = "off"

// EgressWish is all that decides about a declaration: what is deployed, what
// settings declare, and what is typed.
type EgressWish struct {
	Deployed bool     // there is a container that Was is read from
	Was      *Egress  // what it was deployed with
	Held     bool     // its --egress was typed then, so that settings do not change it
	Settings *Egress  // what they declare now, nil for nothing
	Outside  []string // the services that they leave outside, in order
	Typed    []string // --egress-allow: nil when it is not typed, empty for none
	Mode     string   // --egress, or empty
}

// Declare returns the declaration, and the entries of settings that it does not
// take. Where nothing is typed it permits nothing that was not deployed: entries
// that were typed stay, those of settings stay as far as settings still permit
// them, and what is not strict may become it.
func (w EgressWish) Declare() (next *Egress, left []string) {
	off := w.Deployed && w.Was == nil && w.Held && w.Typed == nil && w.Mode == ""
	if off || w.Mode == EgressOff || w.Mode == "" && w.Typed == nil && w.Settings == nil && w.Was == nil {
		return nil, nil
	}
	next = &Egress{Enforcement: w.enforcement(), Allow: []string{}, Managers: w.managers()}
	switch {
	case w.Settings == nil && w.Was == nil:
	case w.Settings == nil:
		next.Allow = w.Was.settled()
	case w.Was == nil || w.Mode != "":
		next.Allow = w.Settings.Allow
	default:
		next.Allow = meet(w.Was.settled(), w.Settings.Allow)
	}
	next.Outside = w.outside()
	next.Typed = slices.Clone(w.Typed)
	if w.Typed == nil && w.Was != nil {
		next.Typed = slices.Clone(w.Was.Typed)
	}
	slices.Sort(next.Typed)
	next.Allow = append(slices.Clone(next.Allow), next.Typed...)
	slices.Sort(next.Allow)
	next.Allow = slices.Compact(next.Allow)
	maps.DeleteFunc(next.Managers, func(m string, _ []string) bool { return !slices.Contains(next.Allow, allowProvider+m) })
	if w.Settings != nil {
		left = without(w.Settings.Allow, next.Allow)
	}
	return next, left
}

// outside are the services that stay outside: on a redeploy as few as before.
func (w EgressWish) outside() []string {
	switch {
	case w.Was == nil || w.Mode != "" && (w.Settings != nil || w.Outside != nil):
		return w.Outside
	case w.Settings == nil && w.Outside == nil:
		return w.Was.Outside
	}
	return slices.DeleteFunc(slices.Clone(w.Was.Outside), func(s string) bool { return !slices.Contains(w.Outside, s) })
}

func (w EgressWish) enforcement() Enforcement {
	switch {
	case w.Mode != "":
		return Enforcement(w.Mode)
	case w.Was == nil && w.Settings == nil:
		return Strict
	case w.Was == nil:
		return w.Settings.Enforcement
	case w.Settings != nil && w.Settings.Enforcement == Strict && !w.Held:
		return Strict
	}
	return w.Was.Enforcement
}

// managers are the hosts of package managers that are not read again: those that
// were deployed, unless what asks for them is typed.
func (w EgressWish) managers() map[string][]string {
	if w.Was == nil || w.Mode != "" {
		return nil
	}
	kept := map[string][]string{}
	for m, hosts := range w.Was.Managers {
		if !slices.Contains(w.Typed, allowProvider+m) {
			kept[m] = hosts
		}
	}
	return kept
}

// settled are the entries of e that came from settings.
func (e *Egress) settled() []string {
	return slices.DeleteFunc(slices.Clone(e.Allow), func(entry string) bool { return slices.Contains(e.Typed, entry) })
}

// meet are the entries of either list that the other one covers.
func meet(a, b []string) []string {
	list := slices.DeleteFunc(slices.Clone(a), func(entry string) bool { return !Covered(entry, b) })
	for _, entry := range b {
		if Covered(entry, a) {
			list = append(list, entry)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// without are the entries of list that entries do not cover.
func without(list, entries []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(entry string) bool { return Covered(entry, entries) })
}

// Covered reports whether entries permit all that entry does: it is one of them,
// or every rule of it is within one of theirs. What a deployment's agent, its
// package managers and its services stand for is known only where it is deployed,
// so those are covered by themselves alone.
func Covered(entry string, entries []string) bool {
	if slices.Contains(entries, entry) {
		return true
	}
	rules := fixedRules(entry)
	var wide []Rule
	for _, e := range entries {
		wide = append(wide, fixedRules(e)...)
	}
	return len(rules) > 0 && !slices.ContainsFunc(rules, func(r Rule) bool {
		return !slices.ContainsFunc(wide, func(w Rule) bool { return r.within(w) })
	})
}

// fixedRules are the rules of an entry that means the same everywhere.
func fixedRules(entry string) []Rule {
	a, err := ParseAllow("", entry)
	if err != nil || a.Service != "" || a.Provider == AgentProvider || slices.Contains(PackageManagers, a.Provider) {
		return nil
	}
	return a.Rules(Agent{}, nil)
}

// within reports whether w permits all that r does.
func (r Rule) within(w Rule) bool {
	switch {
	case r.Port != w.Port || r.Private && !w.Private || r.Address != w.Address:
		return false
	case r.Address.IsValid():
		return true
	case r.Below && (!w.Below || r.Name == w.Name):
		return w.Below
	}
	return w.covers(r.Name)
}

// validate returns an *Error unless e is such as was declared here: it may have
// been read from a label.
func (e *Egress) validate(agent Agent) error {
	if e == nil {
		return nil
	}
	if e.Enforcement != Strict && e.Enforcement != Advisory {
		return &Error{Field: "egress", Problem: fmt.Sprintf("enforcement %q is neither strict nor advisory", Printable(string(e.Enforcement), 40))}
	}
	again, err := NewEgress("egress", e.Enforcement, e.Allow)
	if err != nil {
		return err
	}
	for _, typed := range e.Typed {
		if !slices.Contains(again.Allow, typed) {
			return &Error{Field: "egress", Problem: fmt.Sprintf("%q was typed and is not there", Printable(typed, 300))}
		}
	}
	if !again.Equal(e) {
		return &Error{Field: "egress", Problem: "its entries are not written as they are read"}
	}
	if _, err := e.Policy(agent); err != nil {
		return &Error{Field: "egress", Problem: err.Error()}
	}
	return nil
}
