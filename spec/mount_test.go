package spec

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseMount(t *testing.T) {
	// HOSTDIR[:PATH] must be read as it is typed; the container's side absolute, and never writable.
	for text, want := range map[string]Mount{
		"/srv/lib":              {"/srv/lib", ""},
		"lib":                   {"lib", ""},
		"../a b":                {"../a b", ""},
		"/srv/lib:/opt/lib":     {"/srv/lib", "/opt/lib"},
		"/srv/lib:/opt/lib:ro":  {"/srv/lib", "/opt/lib"},
		"/srv/lib:ro":           {"/srv/lib", ""},
		"/srv/a:b:/mnt/x":       {"/srv/a:b", "/mnt/x"},
		"/srv/a:/b:/mnt/x y/$z": {"/srv/a:/b", "/mnt/x y/$z"},
	} {
		if got, err := ParseMount(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, problem := range map[string]string{
		"":                     "the host directory is missing",
		":/mnt/x":              "the host directory is missing",
		":ro":                  "the host directory is missing",
		"/srv/lib:":            "no absolute path",
		"/srv/lib:x":           "no absolute path",
		"/srv/lib:/x:rw,z":     "no absolute path",
		"/srv/a:b":             "no absolute path",
		"/srv/lib:rw":          "is an input, and read-only: what the container writes lives on volumes",
		"/srv/lib:/mnt/lib:rw": "is an input, and read-only",
	} {
		got, err := ParseMount(text)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Problem, problem) || e.Hint == "" {
			t.Errorf("%q is %+v, %v; want %q", text, got, err, problem)
		}
	}
}

// withMounts is a valid spec with mounts.
func withMounts(mounts ...Mount) Spec {
	return Spec{Name: "web", Agent: Agents[0].Name, Mode: Idle, Workspace: Persistent, Limits: Limits{Pids: 1}, Mounts: mounts}
}

func TestValidateMounts(t *testing.T) {
	// A mount must hide nothing that makes the container work, nor another mount.
	for _, p := range []string{"/mnt/x", "/mnt", "/srv/x", "/opt/x", "/data", "/tmp/x", "/var/cache/x", "/home/other", "/workspaces", "/usrx", "/mnt/a b$", "/mnt/日本"} {
		if err := withMounts(Mount{"/srv/x", p}).Validate(); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for _, p := range []string{
		"", "/", "x", "./x", "/mnt/", "/mnt//x", "/mnt/../etc", "/mnt/.", "/workspace", "/workspace/vendor", "/home", "/home/agent", "/home/agent/.claude/x", "/run", "/run/agent-container",
		"/etc", "/etc/passwd", "/proc/1", "/usr", "/usr/local/lib/x", "/bin", "/lib64", "/dev/x", "/sys", "/root/x", "/opt", "/opt/agent", "/opt/agent/x", "/var", "/var/lib", "/var/lib/agent-container/runs", "/tmp", "/var/tmp",
		"/mnt/a\nb", "/mnt/\x1b[2J",
	} {
		err := withMounts(Mount{"/srv/x", p}).Validate()
		var e *Error
		if !errors.As(err, &e) || e.Field != "--mount" || e.Hint == "" || e.Error() != Printable(e.Error(), 2000) {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, pair := range [][2]string{{"/mnt/x", "/mnt/x"}, {"/mnt", "/mnt/x"}, {"/mnt/x/y", "/mnt/x"}} {
		if err := withMounts(Mount{"/srv/a", pair[0]}, Mount{"/srv/b", pair[1]}).Validate(); err == nil || !strings.Contains(err.Error(), "/srv/a and /srv/b both want") {
			t.Errorf("%v: %v", pair, err)
		}
	}
	if err := withMounts(Mount{"/srv/a", "/mnt/a"}, Mount{"/srv/a", "/mnt/ab"}).Validate(); err != nil {
		t.Errorf("one directory at two places: %v", err)
	}
}

func TestNoVolumeIsMountedOver(t *testing.T) {
	// Whatever volume the table of agents or a later version adds, no mount may hide it.
	for _, v := range Volumes(Persistent) {
		for _, p := range []string{v.Path, v.Path + "/x", path.Dir(v.Path)} {
			if err := withMounts(Mount{"/srv/x", p}).Validate(); err == nil {
				t.Errorf("%s may be mounted over", p)
			}
		}
	}
}

func FuzzParseMount(f *testing.F) {
	// Whatever is typed must be refused on one printable line with a way out, or be a mount that hides nothing of the container's.
	for _, s := range []string{"/srv/lib", "/srv/lib:/mnt/x", "a:/mnt/x:ro", "a:/mnt/x:rw", "a:b:/c", ":", "::", "a:/", "a:/usr/../mnt", "a:/mnt/\x1b[2J", "\xff:/mnt/\xff", "a:/home", "a:/mnt/x/", "none", "a:/workspace"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMount(text)
		if err == nil && m.Path != "" {
			err = withMounts(m).Validate()
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Hint == "" || !utf8.ValidString(err.Error()) || strings.ContainsFunc(err.Error(), obeyed) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if m.Source == "" || strings.HasSuffix(text, ":rw") || !strings.HasPrefix(text, m.Source) {
			t.Errorf("%q is %+v", text, m)
		}
		if m.Path == "" {
			return
		}
		parts := strings.Split(m.Path, "/")[1:]
		forbidden := []string{"bin", "boot", "dev", "etc", "lib", "lib64", "proc", "root", "run", "sbin", "sys", "usr", "workspace"}
		if slices.Contains(parts, "..") || slices.Contains(parts, "") || slices.Contains(forbidden, parts[0]) || parts[0] == "home" && (len(parts) == 1 || parts[1] == "agent") {
			t.Errorf("%q may be mounted", text)
		}
	})
}
