package tests

import (
	"bytes"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/entrypoint"
	"github.com/agent-container/agent-container/spec"
)

var (
	variablePattern = regexp.MustCompile(`AGENT_CONTAINER_[A-Z_]+[A-Z]`)
	constantPattern = regexp.MustCompile(`spec\.(Env[A-Z]\w*)`)
)

func TestParamsMatchTheirReaders(t *testing.T) {
	// Every variable that entrypoint.sh or the guest reads must be in Params, and every one of Params be read.
	var p entrypoint.Params
	for v, i := reflect.ValueOf(&p).Elem(), 0; i < v.NumField(); i++ {
		v.Field(i).SetString("x")
	}
	params := p.Environment()
	if want := reflect.TypeFor[entrypoint.Params]().NumField(); len(params) != want {
		t.Errorf("Params has %d fields and gives %d variables", want, len(params))
	}
	if len((entrypoint.Params{}).Environment()) != 0 {
		t.Error("an empty Params must give no variable")
	}
	used := map[string]string{}
	for _, name := range variablePattern.FindAllString(read(t, "entrypoint/entrypoint.sh"), -1) {
		used[name] = "entrypoint.sh"
	}
	constants := environmentConstants(t)
	files, _ := filepath.Glob("../guest/*.go")
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text := read(t, strings.TrimPrefix(f, "../"))
		for _, name := range variablePattern.FindAllString(text, -1) {
			used[name] = f
		}
		for _, m := range constantPattern.FindAllStringSubmatch(text, -1) {
			if name, ok := constants[m[1]]; ok {
				used[name] = f
			}
		}
	}
	for name, where := range used {
		if _, ok := params[name]; !ok {
			t.Errorf("%s reads %s, which Params has not", where, name)
		}
	}
	for name := range params {
		if used[name] == "" {
			t.Errorf("Params has %s, which nobody reads", name)
		}
	}
}

// environmentConstants maps the Env… constants of spec to their values.
func environmentConstants(t *testing.T) map[string]string {
	constants := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\t(Env\w+) += EnvPrefix \+ "(\w+)"`).FindAllStringSubmatch(read(t, "spec/container.go"), -1) {
		constants[m[1]] = spec.EnvPrefix + m[2]
	}
	if len(constants) < 5 {
		t.Fatalf("spec/container.go has the constants %v: fewer than expected", constants)
	}
	return constants
}

func TestEmbeddedScriptIsTheFile(t *testing.T) {
	// What goes into the images must be the entrypoint.sh that is linted and tested.
	if !bytes.Equal(entrypoint.Script, []byte(read(t, "entrypoint/entrypoint.sh"))) {
		t.Error("entrypoint.Script differs from the file")
	}
	if n := strings.Count(read(t, "entrypoint/entrypoint.sh"), "\n"); n > 200 {
		t.Errorf("entrypoint.sh has %d lines: decisions belong in the guest", n)
	}
}

func TestScriptsHaveEveryCommand(t *testing.T) {
	// Every command must be typed with --json and with stdin closed in the scripts that promise it for every verb.
	asJSON, closed := read(t, "tests/scripts/json.txtar"), read(t, "tests/scripts/verbs.txtar")
	section := regexp.MustCompile(`(?s)usage:.*flags of every command`).FindString(program(t, "--help"))
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(section, -1) {
		if !regexp.MustCompile(`(?m)^exits .* ` + m[1] + `( .*)?$\nenvelope`).MatchString(asJSON) {
			t.Errorf("json.txtar does not check %s", m[1])
		}
		if !regexp.MustCompile(`(?m)^run ` + m[1] + `\b`).MatchString(closed) {
			t.Errorf("verbs.txtar does not run %s", m[1])
		}
	}
}
