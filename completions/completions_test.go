package completions

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryShellHasAScript(t *testing.T) {
	// Every shell of the list must have a script that its own shell can read; no other may be answered.
	for _, shell := range Shells() {
		script, ok := Script(shell)
		if !ok || !strings.Contains(script, "--generate-bash-completion") {
			t.Errorf("%s: %t, %q", shell, ok, script)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed: its syntax is not checked", shell)
			continue
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s -n: %v\n%s", shell, err, out)
		}
	}
	for _, shell := range []string{"", "fish-and-chips", "../completions"} {
		if _, ok := Script(shell); ok {
			t.Errorf("%q has a script", shell)
		}
	}
}

func TestBashAsksTheProgram(t *testing.T) {
	// The bash shim must offer the program's own words that begin as the current one does.
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	stub := "#!/bin/sh\necho \"$@\" >" + dir + "/asked\nprintf '%s\\n' persistent bind ephemeral\n"
	if err := os.WriteFile(filepath.Join(dir, "agent-container"), []byte(stub), 0o700); err != nil {
		t.Fatal(err)
	}
	script, _ := Script("bash")
	cmd := exec.Command(bash, "-c", script+`
		COMP_WORDS=(agent-container up demo --workspace b); COMP_CWORD=4
		_agent_container
		printf '%s\n' "${COMPREPLY[@]}"`)
	cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "bind\n" {
		t.Errorf("offered %q, %v", out, err)
	}
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil || string(asked) != "up demo --workspace --generate-bash-completion\n" {
		t.Errorf("the program was asked %q, %v", asked, err)
	}
}
