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

// Changes lists the fields in which to differs from from, in field order.
func Changes(from, to Spec) []Change {
	var list []Change
	a, b := reflect.ValueOf(from), reflect.ValueOf(to)
	for i := range a.NumField() {
		if reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			continue
		}
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		list = append(list, Change{name, render(a.Field(i).Interface()), render(b.Field(i).Interface())})
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
	case Limits:
		return fmt.Sprintf("memory=%d cpus=%g pids=%d", v.MemoryBytes, v.CPUs, v.Pids)
	}
	return fmt.Sprint(v)
}
