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
		if name == "memory_bytes" {
			from, to = memory(from.(int64)), memory(to.(int64))
		}
		list = append(list, Change{prefix + name, render(from), render(to)})
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
