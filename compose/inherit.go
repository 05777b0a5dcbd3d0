package compose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-container/agent-container/spec"
)

// Deployed is what inspecting an agent container says of how it was deployed.
type Deployed struct {
	Labels map[string]string
	Env    []string // NAME=VALUE, as the model gave it
	Mounts []Mount
	Limits spec.Limits // what the engine holds it to; zero where it holds it to nothing
	SSH    bool        // whether an sshd of its is published
}

// Mount is one mount of a container.
type Mount struct {
	Type   string // volume, bind, tmpfs
	Source string // of a bind: the host's path
	Target string

	ReadOnly bool
}

// Inherited is the spec of a deployment as far as its container tells it.
type Inherited struct {
	Spec spec.Spec
	// Bare is whether the container has no spec of ours, so that Spec was put
	// together from its environment, mounts and limits.
	Bare bool
	// Unreadable are the fields, of a bare container, that have their default
	// because nothing readable says what they were.
	Unreadable []string
}

// Inherit reads the spec of a deployment back from its container. The error
// says that it has a spec which this version does not understand: what that
// says may be a restriction, so it is not gone without.
func Inherit(d Deployed) (Inherited, error) {
	s, err := SpecOf(d.Labels)
	if err == nil && s.Name == d.Labels[LabelName] {
		return Inherited{Spec: s}, nil
	}
	var document map[string]json.RawMessage
	if json.Unmarshal([]byte(d.Labels[LabelSpec]), &document) != nil || document == nil {
		return InheritBare(d), nil
	}
	if err == nil {
		err = fmt.Errorf("spec label: is of %q", s.Name)
	}
	return Inherited{}, err
}

// InheritBare puts the spec of a deployment together without the label: mode, agent
// and repository from the environment, the workspace from the mounts, which are it, and of the
// limits those that the engine keeps.
func InheritBare(d Deployed) Inherited {
	i := Inherited{Bare: true, Spec: spec.Spec{
		Name: d.Labels[LabelName], Agent: variable(d.Env, spec.EnvAgent), Mode: spec.Mode(variable(d.Env, spec.EnvMode)),
		Workspace: spec.Ephemeral, Limits: d.Limits,
	}}
	if !slices.Contains(spec.AgentNames(), i.Spec.Agent) {
		i.Spec.Agent = spec.Agents[0].Name
		i.Unreadable = append(i.Unreadable, "agent")
	}
	if !slices.Contains(spec.Modes, i.Spec.Mode) {
		i.Spec.Mode = spec.Modes[0]
		i.Unreadable = append(i.Unreadable, "mode")
	}
	for _, m := range d.Mounts {
		switch {
		case m.Target == spec.ContainerWorkspace && m.Type == "volume":
			i.Spec.Workspace = spec.Persistent
		case m.Target == spec.ContainerWorkspace && m.Type == "bind":
			i.Spec.Workspace, i.Spec.WorkspaceDir = spec.Bind, m.Source
		case m.Type == "bind":
			with := append(slices.Clone(i.Spec.Mounts), spec.Mount{Source: m.Source, Path: m.Target})
			slices.SortFunc(with, func(a, b spec.Mount) int { return strings.Compare(a.Path, b.Path) })
			if !m.ReadOnly || spec.ValidateMounts(with) != nil { // not one of ours
				i.Unreadable = append(i.Unreadable, "the mount at "+m.Target)
				continue
			}
			i.Spec.Mounts = with
		}
	}
	if text := variable(d.Env, spec.EnvCloneURL); text != "" && i.Spec.Workspace != spec.Bind {
		if repo, dropped, err := spec.ParseRepo(text); err == nil && !dropped {
			i.Spec.Repo = repo.String()
		} else {
			i.Unreadable = append(i.Unreadable, "repo")
		}
	}
	i.Spec.SSH = d.SSH && i.Spec.Mode != spec.Interactive
	return i
}

// variable returns the value of name, the last one, or "".
func variable(env []string, name string) string {
	prefix, value := name+"=", ""
	for _, e := range env {
		if len(e) >= len(prefix) && e[:len(prefix)] == prefix {
			value = e[len(prefix):]
		}
	}
	return value
}
