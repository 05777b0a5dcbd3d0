package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

func bareContainer(env []string, mounts ...Mount) Deployed {
	return Deployed{Labels: map[string]string{LabelName: "web"}, Env: env, Mounts: mounts}
}

func TestInheritBare(t *testing.T) {
	// A container without a spec must be read from its environment, its mounts and what the engine holds it to; what nothing says has its default, and is named.
	full := []string{"PATH=/bin", "AGENT_CONTAINER_MODE=headless", "AGENT_CONTAINER_AGENT=codex"}
	volume := Mount{Type: "volume", Source: "/var/lib/v", Target: spec.ContainerWorkspace}
	other := Mount{Type: "bind", Source: "/etc", Target: "/workspace/etc"}
	for _, row := range []struct {
		d          Deployed
		want       spec.Spec
		unreadable string
	}{
		{bareContainer(full, other, volume), spec.Spec{Agent: "codex", Mode: spec.Headless, Workspace: spec.Persistent}, "the mount at /workspace/etc"},
		{bareContainer(append(slices.Clone(full), "AGENT_CONTAINER_CLONE_URL=https://example.com/a#b"), volume, Mount{Type: "bind", Source: "/src", Target: "/mnt/src", ReadOnly: true}),
			spec.Spec{Agent: "codex", Mode: spec.Headless, Workspace: spec.Persistent, Repo: "https://example.com/a#b", Mounts: []spec.Mount{{Source: "/src", Path: "/mnt/src"}}}, ""},
		{bareContainer(append(slices.Clone(full), "AGENT_CONTAINER_CLONE_URL=https://t@example.com/a"), volume, Mount{Type: "bind", Source: "/src", Target: "/mnt/src"}),
			spec.Spec{Agent: "codex", Mode: spec.Headless, Workspace: spec.Persistent}, "the mount at /mnt/src repo"},
		{bareContainer(full, Mount{Type: "bind", Source: "/src", Target: spec.ContainerWorkspace}), spec.Spec{Agent: "codex", Mode: spec.Headless, Workspace: spec.Bind, WorkspaceDir: "/src"}, ""},
		{bareContainer(full, other, Mount{Type: "tmpfs", Target: spec.ContainerWorkspace}), spec.Spec{Agent: "codex", Mode: spec.Headless, Workspace: spec.Ephemeral}, "the mount at /workspace/etc"},
		{bareContainer(nil, volume), spec.Spec{Agent: "claude", Mode: spec.Interactive, Workspace: spec.Persistent}, "agent mode"},
		{bareContainer([]string{"AGENT_CONTAINER_MODE=", "AGENT_CONTAINER_AGENT=emacs"}), spec.Spec{Agent: "claude", Mode: spec.Interactive, Workspace: spec.Ephemeral}, "agent mode"},
		{bareContainer([]string{"AGENT_CONTAINER_MODE=idle", "AGENT_CONTAINER_MODE=headless", "AGENT_CONTAINER_AGENTS=pi"}), spec.Spec{Agent: "claude", Mode: spec.Headless, Workspace: spec.Ephemeral}, "agent"},
	} {
		row.want.Name = "web"
		for _, label := range []string{"", "}{", "[1]", `"text"`, "null"} {
			row.d.Labels[LabelSpec] = label
			got, err := Inherit(row.d)
			if d := cmp.Diff(row.want, got.Spec); err != nil || !got.Bare || d != "" || strings.Join(got.Unreadable, " ") != row.unreadable {
				t.Errorf("label %q: %v, bare %t, unreadable %q: %s", label, err, got.Bare, got.Unreadable, d)
			}
		}
	}
	d := bareContainer(full)
	d.Limits, d.SSH = spec.Limits{MemoryBytes: 1 << 30, CPUs: 1.5, Pids: 99}, true
	if got := InheritBare(d).Spec; got.Limits != d.Limits || !got.SSH {
		t.Errorf("limits and ssh are %+v", got)
	}
	d.Env[1] = "AGENT_CONTAINER_MODE=interactive"
	if InheritBare(d).Spec.SSH {
		t.Error("a session has sshd by itself: nobody has typed --ssh")
	}
}

func TestInheritLabel(t *testing.T) {
	// A spec that is there must count alone, and one that this version does not understand be refused: it may hold a restriction.
	s := spec.Spec{Name: "web", Agent: "pi", Mode: spec.Idle, Workspace: spec.Bind, WorkspaceDir: "/src", Limits: spec.Limits{Pids: 1}}
	d := bareContainer([]string{"AGENT_CONTAINER_MODE=headless"})
	d.Labels[LabelSpec] = s.Label()
	if got, err := Inherit(d); err != nil || got.Bare || cmp.Diff(s, got.Spec) != "" {
		t.Errorf("%v, %+v", err, got)
	}
	for label, problem := range map[string]string{
		strings.Replace(s.Label(), `"limits"`, `"later":[],"limits"`, 1):  `unknown field "later"`,
		strings.Replace(s.Label(), `"limits"`, `"egress":[],"limits"`, 1): "cannot unmarshal",
		strings.Replace(s.Label(), `"pids":1`, `"pids":"many"`, 1):        "cannot unmarshal",
		strings.Replace(s.Label(), `"web"`, `"other"`, 1):                 `is of "other"`,
		"{}": `is of ""`,
	} {
		d.Labels[LabelSpec] = label
		if got, err := Inherit(d); err == nil || got.Bare || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v, %+v", label, err, got)
		}
	}
}

func FuzzInherit(f *testing.F) {
	// What a container says of itself must become a spec with a known agent, mode and workspace, or an error.
	f.Add("", "AGENT_CONTAINER_MODE=idle", "volume")
	f.Add(`{"name":"web"}`, "AGENT_CONTAINER_AGENT=pi", "bind")
	f.Add("null", "=", "")
	f.Fuzz(func(t *testing.T, label, env, mount string) {
		d := bareContainer([]string{env}, Mount{Type: mount, Source: "/src", Target: spec.ContainerWorkspace})
		d.Labels[LabelSpec] = label
		got, err := Inherit(d)
		if err != nil || !got.Bare {
			return
		}
		got.Spec.Limits.Pids = 1 // the settings always give one
		if err := got.Spec.Validate(); err != nil {
			t.Errorf("%q %q %q: %v", label, env, mount, err)
		}
	})
}
