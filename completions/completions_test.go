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
		if !ok || !strings.Contains(script, "--complete ") {
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
	// The bash shim must hand over the word that is typed and those before it, and offer the program's words that begin as it does; --flag=value is one flag and its value, and word:rest one word.
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	stub := "#!/bin/sh\nprintf '[%s]' \"$@\" >" + dir + "/asked\nprintf '%s\\n' persistent bind ephemeral provider:npm provider:go\n"
	if err := os.WriteFile(filepath.Join(dir, "agent-container"), []byte(stub), 0o700); err != nil {
		t.Fatal(err)
	}
	script, _ := Script("bash")
	for _, c := range []struct{ words, at, asked, offered string }{
		{"up demo --workspace b", "4", "[--complete][b][up][demo][--workspace]", "bind\n"},
		{"up demo --workspace = b", "5", "[--complete][b][up][demo][--workspace]", "bind\n"},
		{"up demo --workspace =", "4", "[--complete][][up][demo][--workspace]", "persistent\nbind\nephemeral\nprovider:npm\nprovider:go\n"},
		{"up --egress-allow pro", "3", "[--complete][pro][up][--egress-allow]", "provider:npm\nprovider:go\n"},
		{"up --egress-allow provider :", "4", "[--complete][provider:][up][--egress-allow]", "npm\ngo\n"},
		{"up --egress-allow provider : n", "5", "[--complete][provider:n][up][--egress-allow]", "npm\n"},
		{"up --egress-allow = provider : n", "6", "[--complete][provider:n][up][--egress-allow]", "npm\n"},
		{"up --mount /a : /b --workspace b", "7", "[--complete][b][up][--mount][/a:/b][--workspace]", "bind\n"},
		{"''", "1", "[--complete][]", "persistent\nbind\nephemeral\nprovider:npm\nprovider:go\n"},
		{"up x", "2", "[--complete][x][up]", ""},
	} {
		cmd := exec.Command(bash, "-c", script+`
			COMP_WORDS=(agent-container `+c.words+`); COMP_CWORD=`+c.at+`
			_agent_container
			for word in "${COMPREPLY[@]}"; do echo "$word"; done`)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.offered {
			t.Errorf("%s: offered %q, %v", c.words, out, err)
		}
		asked, err := os.ReadFile(filepath.Join(dir, "asked"))
		if err != nil || string(asked) != c.asked {
			t.Errorf("%s: the program was asked %q, %v", c.words, asked, err)
		}
	}
}
