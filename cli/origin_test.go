package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

func TestEveryFieldHasASource(t *testing.T) {
	// Every field of a spec must have the flag that changes it, or a setting that gives it: a redeploy that changes one says why.
	var flags []string
	for _, f := range specFlags() {
		flags = append(flags, f.Names()[0])
	}
	var fields func(prefix string, typ reflect.Type) []string
	fields = func(prefix string, typ reflect.Type) (list []string) {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if typ.Field(i).Type == reflect.TypeFor[spec.Limits]() {
				list = append(list, fields(name+".", typ.Field(i).Type)...)
				continue
			}
			list = append(list, prefix+name)
		}
		return list
	}
	for _, field := range fields("", reflect.TypeFor[spec.Spec]()) {
		s := sourceOf(field)
		switch {
		case field == "name" || field == "typed" || field == "project" || s.key == "timezone":
		case slices.Contains(flags, s.flag) || slices.Contains(settings.Names(), s.key):
		default:
			t.Errorf("%s: neither a flag nor a setting: %+v", field, s)
		}
	}
	for field := range sources {
		if !slices.Contains(fields("", reflect.TypeFor[spec.Spec]()), field) {
			t.Errorf("sources has %s, which no spec has", field)
		}
	}
}
