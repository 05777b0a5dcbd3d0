package tests

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/cli"
	"github.com/agent-container/agent-container/images"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// read returns a file of the repository; one that is missing fails the test.
func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// program runs agent-container, which is this test's binary under another
// name, and returns its stdout.
func program(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("agent-container", args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "GORACE=atexit_sleep_ms=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("agent-container %v: %v", args, err)
	}
	return string(out)
}

func contains(t *testing.T, where, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("%s does not have %q", where, w)
		}
	}
}

func TestHelpHasTheTables(t *testing.T) {
	// The help must list every agent with its title and every exit code with its meaning.
	help := program(t, "--help")
	for _, a := range spec.Agents {
		if !regexp.MustCompile(`(?m)^  ` + a.Name + ` +` + regexp.QuoteMeta(a.Title) + `$`).MatchString(help) {
			t.Errorf("--help has no line for agent %s (%s)", a.Name, a.Title)
		}
	}
	for _, c := range cli.ExitCodes {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^  %d +%s$`, c.Code, regexp.QuoteMeta(c.Meaning))).MatchString(help) {
			t.Errorf("--help has no line for exit code %d (%s)", c.Code, c.Meaning)
		}
	}
	contains(t, "up --help", program(t, "up", "--help"), strings.Join(spec.AgentNames(), ", "))
}

func TestExitCodesAreDistinct(t *testing.T) {
	// A code and a JSON name must mean one thing each.
	codes, names := map[int]bool{}, map[string]bool{}
	for _, c := range cli.ExitCodes {
		if codes[c.Code] || names[c.Name] || c.Meaning == "" || c.Name == "exit" {
			t.Errorf("row %+v is there twice, or incomplete", c)
		}
		codes[c.Code], names[c.Name] = true, true
	}
}

func TestDocsHaveTheExitCodes(t *testing.T) {
	// docs/exit-codes.md must have every code, its meaning and its JSON name, and no other code.
	doc := read(t, "docs/exit-codes.md")
	for _, c := range cli.ExitCodes {
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^\| *%c?%d%c? *\|`, '`', c.Code, '`')).MatchString(doc) {
			t.Errorf("docs/exit-codes.md has no row for %d", c.Code)
		}
		contains(t, "docs/exit-codes.md", doc, c.Meaning, "`"+c.Name+"`")
	}
	for _, m := range regexp.MustCompile("(?m)^\\| *`?(\\d+)`? *\\|").FindAllStringSubmatch(doc, -1) {
		if !slices.ContainsFunc(cli.ExitCodes, func(c cli.ExitCode) bool { return fmt.Sprint(c.Code) == m[1] }) {
			t.Errorf("docs/exit-codes.md has code %s, which the table has not", m[1])
		}
	}
}

func TestDocsHaveTheAgents(t *testing.T) {
	// docs/agents.md must name every agent, its title and the directory of its configuration.
	doc := read(t, "docs/agents.md")
	for _, a := range spec.Agents {
		contains(t, "docs/agents.md", doc, "`"+a.Name+"`", a.Title, a.ConfigDir)
	}
}

func TestDocsHaveTheSettings(t *testing.T) {
	// docs/files.md must mention every key of settings.yaml and its default.
	doc := read(t, "docs/files.md")
	for _, k := range settings.Keys {
		contains(t, "docs/files.md", doc, "`"+k.Name+"`", k.Default)
	}
}

func TestDocsHaveTheRecord(t *testing.T) {
	// docs/records.md must have every field of the run record, the schema's name, and each outcome and cause.
	doc := read(t, "docs/records.md")
	for _, typ := range []reflect.Type{reflect.TypeFor[spec.Record](), reflect.TypeFor[spec.Repository](), reflect.TypeFor[spec.EngineReport](), reflect.TypeFor[spec.Refused](), reflect.TypeFor[spec.Refusal]()} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if !regexp.MustCompile("[`.\"]" + regexp.QuoteMeta(name) + "[`\"]").MatchString(doc) {
				t.Errorf("docs/records.md has no field %q (%s)", name, typ.Name())
			}
		}
	}
	contains(t, "docs/records.md", doc, spec.RecordSchema)
	for _, word := range recordWords(t) {
		contains(t, "docs/records.md", doc, "`"+word+"`")
	}
}

// recordWords are the values of the Outcome and Cause constants, from the
// source: a constant that is added is seen.
func recordWords(t *testing.T) []string {
	var words []string
	for _, m := range regexp.MustCompile(`(?m)^\t(?:Outcome|Cause)\w+ +(?:Outcome|Cause) += "([^"]+)"`).FindAllStringSubmatch(read(t, "spec/record.go"), -1) {
		words = append(words, m[1])
	}
	if len(words) < 8 {
		t.Fatalf("spec/record.go has the outcomes and causes %q: fewer than expected", words)
	}
	return words
}

func TestReadmeHasTheCommands(t *testing.T) {
	// README.md must show every command of --help.
	readme := read(t, "README.md")
	section := regexp.MustCompile(`(?s)usage:.*flags of every command`).FindString(program(t, "--help"))
	commands := regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(section, -1)
	if len(commands) < 14 {
		t.Fatalf("--help shows %d commands", len(commands))
	}
	for _, m := range commands {
		if !regexp.MustCompile(`[^a-z]` + m[1] + `[^a-z]`).MatchString(readme) {
			t.Errorf("README.md does not mention the command %s", m[1])
		}
	}
}

func TestImagesMatchTheAgents(t *testing.T) {
	// images/agents must have one folder an agent, with its program and a lock that pins its packages.
	folders, err := images.Embedded().AgentFolders()
	if err != nil {
		t.Fatal(err)
	}
	if want := slices.Sorted(slices.Values(spec.AgentNames())); !slices.Equal(folders, want) {
		t.Fatalf("images/agents has %q, the agent table %q", folders, want)
	}
	for _, a := range spec.Agents {
		if _, err := images.Embedded().Read("agents/" + a.Name + "/bin/" + a.Executable); err != nil {
			t.Errorf("%s: %v", a.Name, err)
		}
		checkLock(t, a)
	}
}

func checkLock(t *testing.T, a spec.Agent) {
	t.Helper()
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal([]byte(read(t, "images/agents/"+a.Name+"/package-lock.json")), &lock); err != nil {
		t.Fatal(err)
	}
	if len(a.Packages) == 0 {
		t.Errorf("%s has no package to read its version from", a.Name)
	}
	for _, p := range a.Packages {
		if _, ok := lock.Packages["node_modules/"+p]; !ok {
			t.Errorf("the lock of %s has no %s", a.Name, p)
		}
	}
	for name, p := range lock.Packages {
		if name != "" && (p.Version == "" || p.Integrity == "") {
			t.Errorf("the lock of %s does not pin %s", a.Name, name)
		}
	}
}

func TestNoAgentIsNamedInPlumbing(t *testing.T) {
	// Dockerfile, rootfs, entrypoint.sh and the completion scripts must name no agent: they get data.
	paths := []string{"images/Dockerfile", "entrypoint/entrypoint.sh"}
	for _, dir := range []string{"images/rootfs", "completions"} {
		_ = filepath.WalkDir(filepath.Join("..", dir), func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				paths = append(paths, strings.TrimPrefix(p, "../"))
			}
			return nil
		})
	}
	if len(paths) < 6 {
		t.Fatalf("only %q were found", paths)
	}
	for _, p := range paths {
		text := strings.ToLower(read(t, p))
		for _, a := range spec.Agents {
			for _, name := range []string{a.Name, a.Executable, strings.ToLower(a.Title)} {
				if regexp.MustCompile(`(^|[^a-z])` + name + `([^a-z]|$)`).MatchString(text) {
					t.Errorf("%s names %s", p, name)
				}
			}
		}
	}
}

func TestCompletionsOfAgents(t *testing.T) {
	// The value of --agent must complete to the agent table, before and after NAME.
	for _, args := range [][]string{{"up", "--agent"}, {"up", "demo", "--agent"}, {"build", "--agent"}, {"redeploy", "demo", "--agent"}} {
		got := strings.Fields(program(t, append([]string{"--complete", ""}, args...)...))
		if !slices.Equal(got, spec.AgentNames()) {
			t.Errorf("%v completes to %q", args, got)
		}
	}
}
