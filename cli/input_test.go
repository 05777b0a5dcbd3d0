package cli

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/spec"
)

// typed is the context of "up demo" with flags.
func typed(t *testing.T, flags ...string) *ucli.Context {
	t.Helper()
	var got *ucli.Context
	up := command{name: "up", flags: specFlags(), max: -1, run: func(_ *app, _ context.Context, c *ucli.Context) (any, error) {
		got = c
		return nil, nil
	}}
	a := &app{out: io.Discard, err: io.Discard}
	if err := a.program([]command{up}).Run(reorder([]command{up}, append([]string{"agent-container", "up"}, flags...))); err != nil {
		t.Fatal(err)
	}
	return got
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEnvFile(t *testing.T) {
	// An env file must be read as people write them, and nothing in it be expanded.
	t.Setenv("FROM_HERE", "here")
	for name, c := range map[string]struct {
		content string
		want    environment
	}{
		"empty":            {"", environment{}},
		"plain":            {"A=1\nB=two words\nC=\n", environment{"A": "1", "B": "two words", "C": ""}},
		"no last newline":  {"A=1", environment{"A": "1"}},
		"comments":         {"# A=0\n\n   # B=0\nA=1 # not a comment\n", environment{"A": "1 # not a comment"}},
		"quotes":           {`A="x y"` + "\n" + `B='x "y"'` + "\n" + `C="` + "\n" + `D="x'` + "\n" + `E=""` + "\n" + `F="a" b` + "\n", environment{"A": "x y", "B": `x "y"`, "C": `"`, "D": `"x'`, "E": "", "F": `"a" b`}},
		"export":           {"export A=1\nexport FROM_HERE\nexportB=2\n", environment{"A": "1", "FROM_HERE": "here", "exportB": "2"}},
		"from here":        {"FROM_HERE\n", environment{"FROM_HERE": "here"}},
		"BOM and CRLF":     {"\uFEFFA=1\r\nB=\"2\"\r\n\r\n", environment{"A": "1", "B": "2"}},
		"spaces":           {"  A = 1  \n\tB=\t2\n", environment{"A": "1", "B": "2"}},
		"not expanded":     {"A=$HOME ${X} $(id) `id` $$ \\n\n", environment{"A": "$HOME ${X} $(id) `id` $$ \\n"}},
		"equals in value":  {"A=b=c==\n", environment{"A": "b=c=="}},
		"the last wins":    {"A=1\nA=2\n", environment{"A": "2"}},
		"unusual names":    {"_=1\na_B9=2\n", environment{"_": "1", "a_B9": "2"}},
		"beyond a screen":  {"A=" + strings.Repeat("x", 100_000), environment{"A": strings.Repeat("x", 100_000)}},
		"not only letters": {"A=é 🦊\n", environment{"A": "é 🦊"}},
	} {
		got := environment{}
		if err := (&app{}).readEnvFile(got, file(t, c.content)); err != nil || !maps.Equal(got, c.want) {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestEnvFileErrors(t *testing.T) {
	// A line that cannot be taken must be refused with file and line, and never be shown.
	for name, content := range map[string]string{
		"a bare secret":   "A=1\ncanary-secret\n",
		"not a name":      "A=1\ncanary+secret/x==\n",
		"a dashed line":   "A=1\n-----BEGIN canary=x\n",
		"no name":         "A=1\n=canary\n",
		"our own":         "A=1\nAGENT_CONTAINER_MODE=canary\n",
		"NUL":             "A=1\nB=canary\x00more\n",
		"a name not here": "A=1\nCANARY_NOT_SET\n",
	} {
		path := file(t, content)
		err := (&app{}).readEnvFile(environment{}, path)
		if err == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		f := asFailure(err)
		if f.code != exitRefused || !strings.Contains(f.message, path+":2: ") || strings.Contains(strings.ToLower(f.message+f.hint), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (&app{}).readEnvFile(environment{}, "/no/such/file"); asFailure(err).code != exitRefused {
		t.Errorf("a missing file: %v", err)
	}
}

func TestEnvironmentOrder(t *testing.T) {
	// What is typed must win over what is kept, that over files, and later files over earlier; commas split nothing.
	t.Setenv("FROM_HERE", "here")
	s := spec.Spec{EnvFiles: []string{file(t, "A=file1\nB=file1\nC=file1\nD=file1\n"), file(t, "B=file2\nC=file2\nD=file2")}}
	got, err := (&app{}).readEnvironment(s, brought{}, environment{"C": "kept", "D": "kept"}, typed(t, "--env", "D=x,y=z", "-e", "FROM_HERE"))
	want := environment{"A": "file1", "B": "file2", "C": "kept", "D": "x,y=z", "FROM_HERE": "here"}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if text := string(got.encode()); text != "A=file1\x00B=file2\x00C=kept\x00D=x,y=z\x00FROM_HERE=here\x00\x00" {
		t.Errorf("encoded as %q", text)
	}
	for _, bad := range []string{"NOT_SET_HERE", "1A=canary", "A B=canary", "=canary", "AGENT_CONTAINER_X=canary", "A=canary\x00"} {
		_, err := (&app{}).typedEnvironment(typed(t, "--env", bad))
		if err == nil || asFailure(err).code != exitRefused || strings.Contains(err.Error(), "canary") {
			t.Errorf("--env %q: %v", bad, err)
		}
	}
}

func TestReadTask(t *testing.T) {
	// A task must be taken byte for byte from where it is said to be; NUL, a missing file and a missing task are refused.
	content := "line\r\n$HOME `id` \xff\n"
	path := file(t, content)
	for _, c := range []struct {
		name  string
		mode  spec.Mode
		flags []string
		want  string // "none" for no task, "refused" for exit code 2
	}{
		{"text", spec.Headless, []string{"--task", "do it"}, "do it"},
		{"option", spec.Headless, []string{"--task", "--version"}, "--version"},
		{"joined option", spec.Headless, []string{"--task=-x"}, "-x"},
		{"empty", spec.Headless, []string{"--task", ""}, ""},
		{"file", spec.Headless, []string{"--task", "@" + path}, content},
		{"empty file", spec.Interactive, []string{"--task", "@" + file(t, "")}, ""},
		{"stdin", spec.Headless, []string{"--task", "-"}, "from\nstdin\n"},
		{"none, interactive", spec.Interactive, nil, "none"},
		{"none, idle", spec.Idle, nil, "none"},
		{"none, headless", spec.Headless, nil, "refused"},
		{"idle", spec.Idle, []string{"--task", "x"}, "refused"},
		{"missing file", spec.Headless, []string{"--task", "@/no/such/file"}, "refused"},
		{"directory", spec.Headless, []string{"--task", "@" + t.TempDir()}, "refused"},
		{"NUL", spec.Headless, []string{"--task", "a\x00b"}, "refused"},
		{"NUL in a file", spec.Headless, []string{"--task", "@" + file(t, "a\x00")}, "refused"},
	} {
		got, err := (&app{in: strings.NewReader("from\nstdin\n")}).readTask(typed(t, c.flags...), c.mode, kept{})
		switch {
		case c.want == "refused":
			if err == nil || asFailure(err).code != exitRefused || asFailure(err).hint == "" {
				t.Errorf("%s: %q, %v; want a refusal", c.name, got, err)
			}
		case err != nil, c.want == "none" != (got == nil), c.want != "none" && string(got) != c.want:
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

func TestReadConfig(t *testing.T) {
	// Agent configuration must be read with links to files followed; what is no file must be refused.
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"a": 0o644, "deep/run": 0o755} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(file(t, "linked"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	files, err := readConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.path+" "+string(f.content))
		if want := int64(0o600); f.mode != want && (f.path != "deep/run" || f.mode != 0o700) {
			t.Errorf("%s has mode %o", f.path, f.mode)
		}
	}
	if want := []string{"a a", "deep/run deep/run", "link linked"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if files, err := readConfig(filepath.Join(dir, "absent")); files != nil || err != nil {
		t.Errorf("an absent folder: %v, %v", files, err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "circle")); err != nil {
		t.Fatal(err)
	}
	if _, err := readConfig(dir); err == nil || asFailure(err).code != exitRefused || !strings.Contains(err.Error(), "circle is a link to a directory") {
		t.Errorf("a link to a directory: %v", err)
	}
}
