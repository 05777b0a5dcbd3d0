package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Change is one field that differs between two specs.
type Change struct {
	Field string // the JSON name
	From  string
	To    string
}

// String renders c as one line for people.
func (c Change) String() string { return fmt.Sprintf("%s: %s -> %s", c.Field, c.From, c.To) }

// Changes lists the fields in which to differs from from, in field order, those
// of limits and the entries of egress one by one.
func Changes(from, to Spec) []Change { return changes("", reflect.ValueOf(from), reflect.ValueOf(to)) }

func changes(prefix string, a, b reflect.Value) []Change {
	var list []Change
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		from, to := a.Field(i).Interface(), b.Field(i).Interface()
		if name == "typed" || reflect.DeepEqual(from, to) {
			continue // where a value came from is no change of what it is
		}
		if _, nested := from.(Limits); nested {
			list = append(list, changes(name+".", a.Field(i), b.Field(i))...)
			continue
		}
		if was, ok := from.(*Egress); ok {
			list = append(list, egressChanges(was, to.(*Egress))...)
			continue
		}
		if name == "memory_bytes" {
			from, to = memory(from.(int64)), memory(to.(int64))
		}
		list = append(list, Change{prefix + name, render(from), render(to)})
	}
	return list
}

// egressChanges tells of a declaration's parts; of all of it where there is none
// before or after. Which of the entries were typed is no change.
func egressChanges(from, to *Egress) []Change {
	if from == nil || to == nil {
		return []Change{{"egress", from.String(), to.String()}}
	}
	var list []Change
	if from.Enforcement != to.Enforcement {
		list = append(list, Change{"egress.enforcement", string(from.Enforcement), string(to.Enforcement)})
	}
	list = append(list, entryChanges("egress.allow", from.Allow, to.Allow)...)
	list = append(list, entryChanges("egress.outside", from.Outside, to.Outside)...)
	for _, m := range PackageManagers { // one that is read later is not known yet
		was, is := from.Managers[m], to.Managers[m]
		if was != nil && is != nil && !slices.Equal(was, is) {
			list = append(list, Change{"egress." + allowProvider + m, render(was), render(is)})
		}
	}
	return list
}

// entryChanges tells of every entry that is gone or new.
func entryChanges(field string, from, to []string) []Change {
	var list []Change
	for _, e := range from {
		if !slices.Contains(to, e) {
			list = append(list, Change{field, e, render("")})
		}
	}
	for _, e := range to {
		if !slices.Contains(from, e) {
			list = append(list, Change{field, render(""), e})
		}
	}
	return list
}

// memory is an amount of memory, written as a user types it where it is round.
type memory int64

// render gives a value the form in which a user types it.
func render(v any) string {
	switch v := v.(type) {
	case []string:
		return "[" + strings.Join(v, " ") + "]"
	case string:
		if v == "" {
			return "(none)"
		}
	case Duration:
		if v == 0 {
			return "(none)"
		}
	case float64:
		if v == 0 {
			return "(none)"
		}
	case memory:
		return v.String()
	}
	return fmt.Sprint(v)
}

func (m memory) String() string {
	if m == 0 {
		return "(none)"
	}
	n, unit := int64(m), ""
	for _, next := range []string{"k", "m", "g"} {
		if n%1024 != 0 {
			break
		}
		n, unit = n/1024, next
	}
	return fmt.Sprint(n) + unit
}
