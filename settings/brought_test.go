package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

// project makes a project with files below its folder, by path and content.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for rel, content := range files {
		put(t, dir, rel, content)
	}
	return dir
}

func put(t *testing.T, project, rel, content string) {
	t.Helper()
	full := filepath.Join(project, ProjectDir, rel)
	if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func pathsOf(files []Brought) (list []string) {
	for _, f := range files {
		list = append(list, f.Path)
	}
	return list
}

func TestReadBrought(t *testing.T) {
	// What a project brings must be read by the names of deployments, and what is of no kind be told apart.
	dir := project(t, map[string]string{
		"web.env": "A=1", "web.services.yaml": "x", "web.config/claude/deep/a": "1", "web.config/pi/b": "2", "job.env": "", "settings.yaml": "",
		"authorized_keys": "k", ".env": "x", "Web.env": "x", "a.b.env": "x", "services.yaml": "x", "web.config.bak": "x", "sub/web.env": "x", "web.envs": "x",
	})
	all, unused, err := ReadBrought(dir, "")
	if d := cmp.Diff([]string{"job.env", "web.config/claude/deep/a", "web.config/pi/b", "web.env", "web.services.yaml"}, pathsOf(all)); err != nil || d != "" {
		t.Errorf("%v: %s", err, d)
	}
	if d := cmp.Diff([]string{".env", "Web.env", "a.b.env", "authorized_keys", "services.yaml", "sub", "web.config.bak", "web.envs"}, unused); d != "" {
		t.Error(d)
	}
	job, _, err := ReadBrought(dir, "job")
	if d := cmp.Diff([]string{"job.env"}, pathsOf(job)); err != nil || d != "" {
		t.Errorf("%v: %s", err, d)
	}
	if files, _, err := ReadBrought(t.TempDir(), ""); err != nil || len(files) > 0 {
		t.Errorf("a directory without the folder brings %v, %v", files, err)
	}
}

func TestReadBroughtRefuses(t *testing.T) {
	// What is no regular file of the project must be refused by its name, at once, and nothing of it be read.
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for about, row := range map[string]struct {
		make    func(dir string) error
		problem string
	}{
		"an absolute link out":   {func(d string) error { return os.Symlink(outside, filepath.Join(d, "web.env")) }, "web.env: a link that leads out"},
		"a relative link out":    {func(d string) error { return os.Symlink("../../../../etc/passwd", filepath.Join(d, "web.env")) }, "web.env: a link that leads out"},
		"a link to nothing":      {func(d string) error { return os.Symlink("nothing", filepath.Join(d, "web.env")) }, "web.env: a link"},
		"a link to itself":       {func(d string) error { return os.Symlink("web.env", filepath.Join(d, "web.env")) }, "web.env: a link"},
		"a linked directory out": {func(d string) error { return os.Symlink(filepath.Dir(outside), filepath.Join(d, "web.config")) }, "web.config: a link that leads out"},
		"a linked agent": {func(d string) error {
			return errors.Join(os.Mkdir(filepath.Join(d, "web.config"), 0o755), os.Symlink("..", filepath.Join(d, "web.config/claude")))
		}, "web.config/claude: a link"},
		"a FIFO":                     {func(d string) error { return syscall.Mkfifo(filepath.Join(d, "web.env"), 0o600) }, "web.env: not a regular file"},
		"a FIFO for a directory":     {func(d string) error { return syscall.Mkfifo(filepath.Join(d, "web.config"), 0o600) }, "web.config: not a directory"},
		"a directory":                {func(d string) error { return os.Mkdir(filepath.Join(d, "web.services.yaml"), 0o755) }, "web.services.yaml: not a regular file"},
		"more than anybody looks at": {func(d string) error { return os.Truncate(touch(d, "web.env"), maxBrought+1) }, "no more than"},
		"together more than they may": {func(d string) error {
			return errors.Join(os.Truncate(touch(d, "a.env"), maxBrought/2+1), os.Truncate(touch(d, "b.env"), maxBrought/2+1))
		}, "b.env: a project may bring no more than"},
	} {
		dir := project(t, map[string]string{"settings.yaml": ""})
		if err := row.make(filepath.Join(dir, ProjectDir)); err != nil {
			t.Fatal(err)
		}
		files, _, err := ReadBrought(dir, "")
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), row.problem) || !strings.HasPrefix(err.Error(), dir) || len(files) > 0 {
			t.Errorf("%s: %v, %v", about, pathsOf(files), err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, ProjectDir)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadBrought(dir, ""); err == nil || !strings.Contains(err.Error(), "a link that leads out") {
		t.Errorf("the folder itself is a link out: %v", err)
	}
}

func touch(dir, name string) string {
	full := filepath.Join(dir, name)
	_ = os.WriteFile(full, nil, 0o600) // Truncate says so
	return full
}

func TestLinkWithinTheProject(t *testing.T) {
	// A link within the project must be followed, and its target's content be what is trusted.
	dir := project(t, map[string]string{"settings.yaml": ""})
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "shared"), []byte("A=1"), 0o600), os.Symlink("../shared", filepath.Join(dir, ProjectDir, "web.env"))); err != nil {
		t.Fatal(err)
	}
	files, _, err := ReadBrought(dir, "web")
	if err != nil || len(files) != 1 || string(files[0].Content) != "A=1" {
		t.Fatalf("%v, %v", files, err)
	}
	trust := Trust{Dir: t.TempDir()}
	if err := trust.Allow(dir, files, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shared"), []byte("A=2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := judgedAs(t, trust, dir, "web"); got != "web.env changed" {
		t.Error(got)
	}
}

// judgedAs reads a project again and says what trust makes of it.
func judgedAs(t *testing.T, trust Trust, dir, name string) string {
	t.Helper()
	files, _, err := ReadBrought(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	judged, err := trust.Judge(dir, name, files)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, j := range judged {
		words = append(words, j.Path+" "+j.State)
	}
	return strings.Join(words, ", ")
}

func TestTrust(t *testing.T) {
	// A file must be trusted as it was and where it was, and every change, move, new mode or removal be seen; other deployments of the project are not meant.
	dir := project(t, map[string]string{"web.env": "A=1", "job.env": "B=1", "web.config/claude/hook.sh": "x"})
	trust := Trust{Dir: filepath.Join(t.TempDir(), "new", "trust")}
	is := func(about, name, want string) {
		t.Helper()
		if got := judgedAs(t, trust, dir, name); got != want {
			t.Errorf("%s: %q, want %q", about, got, want)
		}
	}
	is("before", "", "job.env new, web.config/claude/hook.sh new, web.env new")
	files, _, err := ReadBrought(dir, "")
	if err := errors.Join(err, trust.Allow(dir, files, time.Now())); err != nil {
		t.Fatal(err)
	}
	is("allowed", "", "job.env trusted, web.config/claude/hook.sh trusted, web.env trusted")
	if info, err := os.Stat(trust.path(dir)); err != nil || info.Mode() != 0o600 {
		t.Errorf("the document: %v, %v", info, err)
	}
	put(t, dir, "job.env", "B=2")
	is("another deployment's change", "web", "web.config/claude/hook.sh trusted, web.env trusted")
	is("its own", "job", "job.env changed")
	if err := os.Chmod(filepath.Join(dir, ProjectDir, "web.config/claude/hook.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	is("executable", "web", "web.config/claude/hook.sh changed, web.env trusted")
	if err := os.Rename(filepath.Join(dir, ProjectDir, "web.env"), filepath.Join(dir, ProjectDir, "web.config/claude/moved")); err != nil {
		t.Fatal(err)
	}
	is("moved", "web", "web.config/claude/hook.sh changed, web.config/claude/moved new, web.env removed")
	other := project(t, map[string]string{"web.env": "A=1"})
	if got := judgedAs(t, trust, other, "web"); got != "web.env new" {
		t.Errorf("the same file of another project: %s", got)
	}
	if was, err := trust.Revoke(dir); err != nil || !was {
		t.Errorf("revoke: %t, %v", was, err)
	}
	is("revoked", "job", "job.env new")
	if was, err := trust.Revoke(dir); err != nil || was {
		t.Errorf("revoke of nothing: %t, %v", was, err)
	}
}

func TestDamagedTrust(t *testing.T) {
	// A document of trust that cannot be read, or is of another project, must be an error and trust nothing.
	dir := project(t, map[string]string{"web.env": "A=1"})
	files, _, err := ReadBrought(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	trust := Trust{Dir: t.TempDir()}
	if err := trust.Allow(dir, files, time.Now()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(trust.path(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"", "{", "[]", strings.Replace(string(whole), dir, "/other", 1), strings.Replace(string(whole), `"files": {`, `"files": [`, 1)} {
		if err := os.WriteFile(trust.path(dir), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var e *Error
		if judged, err := trust.Judge(dir, "web", files); !errors.As(err, &e) || judged != nil {
			t.Errorf("%q: %v, %v", content, judged, err)
		}
	}
}

func FuzzBroughtFor(f *testing.F) {
	// The deployment that a path is for must be a valid name, and the path begin with it and a dot.
	for _, s := range []string{"web.env", "web.config/claude/a", "web.config/", "web.config", ".env", "../x.env", "a.services.yaml/b", "web.services.yaml"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rel string) {
		if name := BroughtFor(rel); name != "" && (spec.ValidateName(name) != nil || !strings.HasPrefix(rel, name+".")) {
			t.Errorf("%q is for %q", rel, name)
		}
	})
}
