package entrypoint

import (
	"maps"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func TestParamsEnvironment(t *testing.T) {
	// Each field must have one variable of ours with its value; an empty field must have none.
	typ := reflect.TypeFor[Params]()
	seen := map[string]string{}
	for i := range typ.NumField() {
		var p Params
		reflect.ValueOf(&p).Elem().Field(i).SetString("value")
		env := p.Environment()
		if len(env) != 1 {
			t.Fatalf("%s gives %v", typ.Field(i).Name, env)
		}
		name := slices.Collect(maps.Keys(env))[0]
		if env[name] != "value" || !strings.HasPrefix(name, spec.EnvPrefix) || seen[name] != "" {
			t.Errorf("%s gives %s=%s (also given by %q)", typ.Field(i).Name, name, env[name], seen[name])
		}
		seen[name] = typ.Field(i).Name
	}
}

func TestScriptIsClean(t *testing.T) {
	// The script must begin with its interpreter, stop at errors, and pass shellcheck where that is installed.
	script := string(Script)
	if !strings.HasPrefix(script, "#!/usr/bin/env bash\n") || !strings.Contains(script, "\nset -eu\n") {
		t.Errorf("the script begins with %.80q", script)
	}
	path, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("shellcheck is not installed")
	}
	cmd := exec.Command(path, "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}
