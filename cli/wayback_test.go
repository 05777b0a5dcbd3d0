package cli

import (
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func TestRestore(t *testing.T) {
	// The command that brings a deployment back must undo what was typed, in words that redeploy takes, and leave what files say.
	base := spec.Spec{Name: "web", Agent: "claude", Mode: spec.Interactive, Workspace: spec.Persistent, Limits: spec.Limits{Pids: 2048}}
	const a, b = "https://example.com/a", "https://example.com/b"
	for _, row := range []struct {
		was, next func(s *spec.Spec)
		want      string
	}{
		{func(s *spec.Spec) {}, func(s *spec.Spec) { s.Repo, s.Depth = a, 5 }, "--no-repo"},
		{func(s *spec.Spec) { s.Repo = a }, func(s *spec.Spec) { s.Repo, s.Depth = b, 5 }, "--repo " + a},
		{func(s *spec.Spec) { s.Repo = a }, func(s *spec.Spec) { s.Repo, s.Depth = a, 5 }, "--repo " + a},
		{func(s *spec.Spec) { s.Repo, s.Depth = a, 5 }, func(s *spec.Spec) { s.Repo = b }, "--repo " + a + " --depth 5"},
		{func(s *spec.Spec) {}, func(s *spec.Spec) { s.Mounts = []spec.Mount{{Source: "/a", Path: "/mnt/a"}} }, "--mount none"},
		{func(s *spec.Spec) { s.Mounts = []spec.Mount{{Source: "/a", Path: "/mnt/a"}} }, func(s *spec.Spec) {}, "--mount /a:/mnt/a"},
		{nil, nil, ""},
		{nil, func(s *spec.Spec) { s.Agent, s.Mode = "codex", spec.Idle }, "--agent claude --mode interactive"},
		{func(s *spec.Spec) { s.Mode = spec.Headless }, func(s *spec.Spec) { s.Mode = spec.Idle }, "--mode headless --task ..."},
		{func(s *spec.Spec) { s.Workspace, s.WorkspaceDir = spec.Bind, "/a b" }, nil, "--workspace bind --workspace-dir '/a b'"},
		{nil, func(s *spec.Spec) { s.Workspace, s.WorkspaceDir = spec.Bind, "/src" }, "--workspace persistent"},
		{func(s *spec.Spec) { s.EnvFiles, s.EnvNames = []string{"/a", "/b"}, []string{"A"} }, func(s *spec.Spec) { s.EnvFiles = []string{"/c"} }, "--env-file /a --env-file /b"},
		{nil, func(s *spec.Spec) { s.EnvNames, s.AccessFiles = []string{"A"}, []string{"/k"} }, "--authorized-key none"},
		{nil, func(s *spec.Spec) { s.SSH = true }, "--ssh=false"},
		{nil, func(s *spec.Spec) {
			s.Typed, s.Limits = []string{"cpus", "memory", "pids"}, spec.Limits{Pids: 1, CPUs: 2, MemoryBytes: 1 << 30}
		}, "--memory none --cpus none --pids 2048"},
		{func(s *spec.Spec) { s.Typed, s.Limits.MemoryBytes, s.Limits.CPUs = []string{"memory"}, 1<<30, 1.5 }, nil, "--memory 1g"},
		{func(s *spec.Spec) {
			s.Mode, s.Typed, s.Limits.Run, s.Restart = spec.Headless, []string{"headless-restart", "timeout"}, spec.Duration(5*60e9), spec.Restart{OnFailure: true, Max: 3}
		}, func(s *spec.Spec) { s.Mode = spec.Headless }, "--headless-restart on-failure:3 --timeout 5m0s --task ..."},
		{nil, func(s *spec.Spec) { s.BaseImage, s.RecordTask, s.Timezone = "x", true, "UTC" }, ""}, // of files
	} {
		was, next := base, base
		if row.was != nil {
			row.was(&was)
		}
		if row.next != nil {
			row.next(&next)
		}
		want := row.want
		if want != "" {
			want = "agent-container redeploy web " + want
		}
		r := &redeployment{was: was, next: &deployment{spec: next}}
		if got := r.restore(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
