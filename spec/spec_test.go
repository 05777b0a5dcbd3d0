package spec

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// names is every kind of deployment name with the hint for it; "" means valid.
var names = []struct{ name, hint string }{
	{"a", ""},
	{"7", ""},
	{"web-2_x", ""},
	{"a-", ""},
	{strings.Repeat("a", 40), ""},
	{"My.App", `use "my-app"`},
	{"Web", `use "web"`},
	{"-web", `use "web"`},
	{"_web", `use "web"`},
	{"web.", `use "web"`},
	{"../../etc", `use "etc"`},
	{"feature/login form", `use "feature-login-form"`},
	{"naïve", `use "na-ve"`},
	{"a\n", `use "a"`},
	{"a\nb", `use "a-b"`},
	{strings.Repeat("a", 41), `use "` + strings.Repeat("a", 40) + `"`},
	{strings.Repeat("a", 39) + ".b", `use "` + strings.Repeat("a", 39) + `"`},
	{"", "none"},
	{"...", "none"},
	{"日本", "none"},
	{"\x00", "none"},
}

func TestValidateName(t *testing.T) {
	// A name must be usable for containers, volumes, files and hosts, and one that is not must be refused with the nearest that is.
	for _, row := range names {
		err := ValidateName(row.name)
		if row.hint == "" {
			if err != nil {
				t.Errorf("ValidateName(%q) = %v, want no error", row.name, err)
			}
			continue
		}
		hint := strings.TrimPrefix(row.hint, "none")
		if e := asError(t, err); e.Field != "NAME" || e.Hint != hint {
			t.Errorf("ValidateName(%q) = %q, hint %q; want field NAME, hint %q", row.name, e, e.Hint, hint)
		}
	}
}

func FuzzValidateName(f *testing.F) {
	// A refusal must be printable on one line, and its suggestion must itself be a valid name.
	for _, row := range names {
		f.Add(row.name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := ValidateName(name)
		if err == nil {
			if len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
				t.Errorf("%q was accepted", name)
			}
			return
		}
		e := asError(t, err)
		if strings.ContainsFunc(e.Error()+e.Hint, obeyed) || len(e.Error()) > 200+10*len(name) {
			t.Errorf("unsafe refusal %q, hint %q", e, e.Hint)
		}
		if s := suggestName(name); s != "" && ValidateName(s) != nil {
			t.Errorf("suggestion %q for %q is not valid", s, name)
		}
	})
}

func asError(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %T %v, want *Error", err, err)
	}
	return e
}

// valid is a spec with every field set.
func valid() Spec {
	return Spec{
		Name: "web", Agent: "claude", Mode: Headless, Workspace: Bind, WorkspaceDir: "/src", Mounts: []Mount{{"/lib", "/mnt/lib"}},
		EnvNames: []string{"A", "B"}, EnvFiles: []string{"/e/one.env"}, Restart: Restart{OnFailure: true, Max: 3},
		Limits: Limits{MemoryBytes: 1 << 30, CPUs: 1.5, Pids: 100, Run: Duration(time.Hour), Idle: Duration(time.Minute), Start: Duration(time.Minute)}, RecordTask: true,
		Typed: []string{"timeout"}, SSH: true, SSHBind: "127.0.0.1", AccessFiles: []string{"/k.pub"},
		BaseImage: "debian:trixie-slim", CABundle: "auto", Egress: &Egress{Enforcement: Strict, Allow: []string{"example.com"}},
		Project: "/project", Timezone: "Europe/Berlin",
	}
}

func TestValidate(t *testing.T) {
	// Validate must name the first field that cannot be deployed, and the way out where there is one.
	for _, row := range []struct {
		about       string
		change      func(*Spec)
		field, hint string
	}{
		{"all set", func(*Spec) {}, "", ""},
		{"persistent", func(s *Spec) { s.Workspace, s.WorkspaceDir = Persistent, "" }, "", ""},
		{"a repository", func(s *Spec) {
			s.Workspace, s.WorkspaceDir, s.Repo, s.Depth = Persistent, "", "https://example.com/a#main", 1
		}, "", ""},
		{"a repository into a bind", func(s *Spec) { s.Repo = "https://example.com/a" }, "--repo", "drop --repo, or --workspace persistent; on a redeploy --no-repo"},
		{"a depth of nothing", func(s *Spec) { s.Depth = 1 }, "--depth", "add --repo URL, or drop --depth"},
		{"no URL", func(s *Spec) { s.Workspace, s.WorkspaceDir, s.Repo = Persistent, "", "x" }, "--repo", repoForms + "; a directory of this machine is --workspace bind --workspace-dir DIR"},
		{"a URL with a token", func(s *Spec) { s.Workspace, s.WorkspaceDir, s.Repo = Persistent, "", "https://t@example.com/a" }, "--repo", ""},
		{"no limits but pids", func(s *Spec) { s.Limits = Limits{Pids: 1} }, "", ""},
		{"typed limits of another mode", func(s *Spec) { s.Mode = Idle }, "--timeout", "add --mode headless, or drop --timeout"},
		{"limits from settings in another mode", func(s *Spec) { s.Mode, s.Typed = Idle, nil }, "", ""},
		{"least memory", func(s *Spec) { s.Limits.MemoryBytes = 6 << 20 }, "", ""},
		{"name", func(s *Spec) { s.Name = "My.App" }, "NAME", `use "my-app"`},
		{"agent, near", func(s *Spec) { s.Agent = "clade" }, "--agent", `did you mean "claude"?`},
		{"agent, far", func(s *Spec) { s.Agent = "emacs" }, "--agent", ""},
		{"agent, none", func(s *Spec) { s.Agent = "" }, "--agent", ""},
		{"mode", func(s *Spec) { s.Mode = "headles" }, "--mode", `did you mean "headless"?`},
		{"workspace", func(s *Spec) { s.Workspace = "Bind" }, "--workspace", `did you mean "bind"?`},
		{"bind without directory", func(s *Spec) { s.WorkspaceDir = "" }, "--workspace-dir", "add --workspace-dir DIR"},
		{"directory without bind", func(s *Spec) { s.Workspace = Ephemeral }, "--workspace-dir", "add --workspace bind, or drop --workspace-dir"},
		{"no pids", func(s *Spec) { s.Limits.Pids = 0 }, "limits.pids", ""},
		{"negative memory", func(s *Spec) { s.Limits.MemoryBytes = -1 }, "limits.memory", ""},
		{"too little memory", func(s *Spec) { s.Limits.MemoryBytes = 6<<20 - 1 }, "limits.memory", ""},
		{"negative cpus", func(s *Spec) { s.Limits.CPUs = -0.5 }, "limits.cpus", ""},
	} {
		s := valid()
		row.change(&s)
		err := s.Validate()
		if row.field == "" {
			if err != nil {
				t.Errorf("%s: %v, want no error", row.about, err)
			}
			continue
		}
		if e := asError(t, err); e.Field != row.field || e.Hint != row.hint {
			t.Errorf("%s: %q, hint %q; want field %s, hint %q", row.about, e, e.Hint, row.field, row.hint)
		}
	}
}

func TestLabel(t *testing.T) {
	// A spec must come back from its label unchanged, and the label must hold every field by name.
	for _, s := range []Spec{valid(), {Name: "a"}, {Name: "q", WorkspaceDir: `/a "b" $HOME ${X} é` + "\n", Workspace: Bind}} {
		got, err := FromLabel(s.Label())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(s, got); d != "" {
			t.Errorf("%s: %s", s.Name, d)
		}
	}
	want := `{"name":"web","agent":"claude","mode":"headless","workspace":"bind","workspace_dir":"/src","mounts":[{"source":"/lib","path":"/mnt/lib"}],"env_names":["A","B"],` +
		`"env_files":["/e/one.env"],"restart":"on-failure:3","limits":{"memory_bytes":1073741824,"cpus":1.5,"pids":100,"timeout":"1h0m0s","idle_timeout":"1m0s","start_timeout":"1m0s"},` +
		`"record_task":true,"base_image":"debian:trixie-slim","ca_bundle":"auto","ssh":true,"ssh_bind":"127.0.0.1","authorized_keys":["/k.pub"],"typed":["timeout"],"egress":{"enforcement":"strict","allow":["example.com"]},"project":"/project","timezone":"Europe/Berlin"}`
	if d := cmp.Diff(want, valid().Label()); d != "" {
		t.Error(d)
	}
}

func TestFromLabelRefuses(t *testing.T) {
	// A label that this version does not fully understand must be refused, because acting on half a spec could drop a limit.
	for _, text := range []string{
		"", "{", "[]", `"web"`,
		`{"name":"web","egress":[]}`,
		`{"name":"web","limits":{"pids":1,"swap":1}}`,
		`{"name":"web","restart":"always"}`,
		`{"name":"web","restart":null}`,
		`{"name":1}`,
	} {
		if s, err := FromLabel(text); err == nil {
			t.Errorf("FromLabel(%s) = %+v, want an error", text, s)
		}
	}
}
