package cli

import (
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/spec"
)

// source is where a field of the spec comes from on a redeploy: the container,
// unless its flag is typed, or with a key a setting, which is read again.
type source struct{ flag, key string }

// sources are the fields that are not called like their flag, and those that a
// setting gives.
var sources = map[string]source{
	"mounts":          {flag: "mount"},
	"env_names":       {flag: "env"},
	"env_files":       {flag: "env-file"},
	"authorized_keys": {flag: "authorized-key"},
	"record_task":     {key: "record_task"},
	"base_image":      {key: "base_image"},
	"ca_bundle":       {key: "ca_bundle"},
	"ssh_bind":        {key: "ssh_bind"},
	"timezone":        {key: "timezone"}, // no setting: the host's
	"project":         {},                // no flag: where you stand, and what it brings
}

func sourceOf(field string) source {
	for _, l := range limits {
		if l.field == field {
			return source{l.flag, l.key}
		}
	}
	if s, ok := sources[field]; ok {
		return s
	}
	return source{flag: strings.ReplaceAll(field, "_", "-")}
}

// origin says why a redeploy changes a field of the spec, or "".
func (a *app) origin(c *ucli.Context, field string) string {
	if ofEgress(field) {
		return a.egressOrigin(c, field)
	}
	s := sourceOf(field)
	switch {
	case s.flag != "" && c.IsSet(s.flag):
		return "--" + s.flag
	case s.flag != "" && c.IsSet("no-"+s.flag):
		return "--no-" + s.flag
	case field == "timezone":
		return "the host's time zone"
	case field == "project":
		return "what the project here brings"
	case s.key != "":
		return a.settings.Get(s.key).Origin
	case field == "workspace_dir":
		return a.origin(c, "workspace")
	}
	return ""
}

// kept lists what the deployment was given and keeps, as "agent codex" and by the
// names of flags: what no file says and has no default.
func (r *redeployment) kept() []string {
	next := r.next.spec
	plain := spec.Spec{Name: next.Name, Agent: spec.Agents[0].Name, Mode: spec.Modes[0], Workspace: spec.Workspaces[0]}
	changed := spec.Changes(r.was, next)
	var list []string
	for _, c := range spec.Changes(plain, next) {
		if ofEgress(c.Field) {
			continue
		}
		s := sourceOf(c.Field)
		fromFile := s.key != "" && !slices.Contains(next.Typed, s.flag)
		if fromFile || slices.ContainsFunc(changed, func(other spec.Change) bool { return other.Field == c.Field }) {
			continue
		}
		name := s.flag
		if name == "" {
			name = c.Field
		}
		list = append(list, name+" "+strings.Trim(c.To, "[]"))
	}
	return append(list, r.keptEgress()...)
}
