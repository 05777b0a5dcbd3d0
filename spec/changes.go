package spec

import (
	"fmt"
	"reflect"
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
// of limits one by one.
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
		list = append(list, Change{prefix + name, render(from), render(to)})
	}
	return list
}

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
	}
	return fmt.Sprint(v)
}
