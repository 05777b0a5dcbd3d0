package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func TestLastWins(t *testing.T) {
	// Of each name only the last entry must be left, in order.
	got := lastWins([]string{"A=1", "B=1", "A=2", "C=", "B=x=y", "A="})
	if want := []string{"C=", "B=x=y", "A="}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// seen is the environment that a command gets from the env verb.
func (b *box) seen() []string {
	b.t.Helper()
	code, out, said := b.guest("env", "/usr/bin/env", "-0")
	if code != 0 {
		b.t.Fatalf("exit %d: %s", code, said)
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
}

func TestEnvironmentPrecedence(t *testing.T) {
	// The user's value must win over the agent's, the agent's over the container's, and each name be there once.
	b := newBox(t, "claude", spec.Idle)
	b.env = []string{"OUTER=container", "CLAUDE_CONFIG_DIR=/container", "SSL_CERT_FILE=/container.pem"}
	if got := lookup(b.seen(), "CLAUDE_CONFIG_DIR"); got != b.home(".claude") {
		t.Errorf("CLAUDE_CONFIG_DIR is %q", got)
	}
	b.environment("CLAUDE_CONFIG_DIR=/mine\x00OUTER=two\nlines\x00EMPTY=\x00NODE_EXTRA_CA_CERTS=/own.pem\x00")
	b.fill(spec.FileCABundle, "bundle")
	env := b.seen()
	bundle := filepath.Join(b.p.RunDir, spec.FileCABundle)
	for name, want := range map[string]string{
		"CLAUDE_CONFIG_DIR": "/mine", "OUTER": "two\nlines", "EMPTY": "", "NODE_EXTRA_CA_CERTS": "/own.pem",
		"SSL_CERT_FILE": bundle, "GIT_SSL_CAINFO": bundle, "CURL_CA_BUNDLE": bundle, "REQUESTS_CA_BUNDLE": bundle,
	} {
		if got := lookup(env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	var names []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if slices.Contains(names, name) {
			t.Errorf("%s is there twice", name)
		}
		names = append(names, name)
	}
	if !slices.Contains(env, "EMPTY=") {
		t.Error("an empty value was dropped")
	}
}

func TestJobAndExecHaveOneEnvironment(t *testing.T) {
	// The agent of a job must have the environment that exec has.
	b := newBox(t, "codex", spec.Headless)
	b.environment("OPENAI_API_KEY=k\x00A=b\x00")
	b.stub("codex", "exec /usr/bin/env -0")
	r := b.enter()
	if code := r.wait(); code != 0 {
		t.Fatal(r.err.String())
	}
	ignore := func(list []string) []string {
		return slices.DeleteFunc(slices.Sorted(slices.Values(list)), func(e string) bool {
			return e == "" || strings.HasPrefix(e, "SHLVL=") || strings.HasPrefix(e, "_=") || strings.HasPrefix(e, "PWD=") || strings.HasPrefix(e, "OLDPWD=")
		})
	}
	job, exec := ignore(strings.Split(r.out.String(), "\x00")), ignore(b.seen())
	if !slices.Equal(job, exec) || !slices.Contains(job, "OPENAI_API_KEY=k") {
		t.Errorf("the job has %q\nexec has %q", job, exec)
	}
}

func TestEnvVerb(t *testing.T) {
	// A command must end as in a shell: its own code, 127 when it is not found, 126 when it cannot be run.
	b := newBox(t, "claude", spec.Idle)
	file := b.home("file")
	b.write(file, "echo no", 0o644)
	b.write(b.home("broken"), "\x7fELF is not this", 0o755)
	b.write(b.home("bin/mine"), "#!/bin/bash\necho \"$1\"; exit 9\n", 0o755)
	b.environment("PATH=" + b.home("bin") + ":/usr/bin:/bin\x00")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"env"}, 1, "usage: env COMMAND"},
		{[]string{"env", "no-such-program"}, 127, "no-such-program: command not found"},
		{[]string{"env", "/no/such/program"}, 127, "/no/such/program: command not found"},
		{[]string{"env", file}, 126, "not executable"},
		{[]string{"env", b.p.Home}, 126, "not executable"},
		{[]string{"env", b.home("broken")}, 126, "exec format error"},
		{[]string{"env", "mine", "--json"}, 9, ""},
		{[]string{"env", "bash", "-c", "exit 127"}, 127, ""},
	} {
		code, out, said := b.guest(c.args...)
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%q: exit %d, said %q; want %d, %q", c.args, code, said, c.code, c.says)
		}
		if c.code == 9 && out != "--json\n" {
			t.Errorf("the child's flag became %q", out)
		}
	}
}

func TestEnvironmentIsNeverEchoed(t *testing.T) {
	// A filled entry that cannot be used must be refused without showing any part of it.
	for _, entry := range []string{"canary", "=canary", "AGENT_CONTAINER_MODE=canary", "AGENT_CONTAINER_CANARY=1", "A=1\x00canary"} {
		b := newBox(t, "claude", spec.Idle)
		b.environment(entry + "\x00")
		for _, args := range [][]string{{"env", "true"}, {"phase", "environment"}} {
			code, out, said := b.guest(args...)
			if code != 1 || strings.Contains(strings.ToLower(out+said), "canary_") || strings.Contains(out+said, "canary") {
				t.Errorf("%q, %q: exit %d, said %q", entry, args, code, said)
			}
		}
	}
}

func TestCABundle(t *testing.T) {
	// The host's CA bundle must be added to the system's; without either the other must do.
	for _, c := range []struct{ system, host, want string }{
		{"system\n", "host\n", "system\n\nhost\n"},
		{"no newline", "host", "no newline\nhost"},
		{"", "host", "\nhost"},
		{"system", "", ""},
	} {
		b := newBox(t, "claude", spec.Idle)
		if c.system != "" {
			b.write(b.p.SystemCA, c.system, 0o644)
		}
		if c.host != "" {
			b.fill(spec.FillCA, c.host)
		}
		if code, _, said := b.guest("phase", "environment"); code != 0 {
			t.Fatal(said)
		}
		got, _ := os.ReadFile(filepath.Join(b.p.RunDir, spec.FileCABundle))
		if string(got) != c.want {
			t.Errorf("system %q and host %q give %q, want %q", c.system, c.host, got, c.want)
		}
		if has := lookup(b.seen(), "SSL_CERT_FILE") != ""; has != (c.host != "") {
			t.Errorf("host %q: SSL_CERT_FILE is set: %t", c.host, has)
		}
	}
}

func TestGitSetup(t *testing.T) {
	// git must get the user's identity and trust the workspace; again is the same; what else is there stays.
	b := newBox(t, "claude", spec.Idle)
	b.fill(spec.FillJob, `{"git_name":"Ada \"L\" é","git_email":"ada@example.org"}`)
	b.write(b.home(".gitconfig"), "[alias]\n\tst = status\n", 0o600)
	for range 2 {
		if code, _, said := b.guest("phase", "git"); code != 0 {
			t.Fatal(said)
		}
	}
	for key, want := range map[string]string{
		"user.name": `Ada "L" é`, "user.email": "ada@example.org", "safe.directory": b.p.Workspace, "alias.st": "status",
	} {
		if got := b.git("config", "--global", "--get-all", key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	none := newBox(t, "claude", spec.Idle)
	if code, _, said := none.guest("phase", "git"); code != 0 || strings.Contains(none.read(none.home(".gitconfig")), "[user]") {
		t.Errorf("without an identity: exit %d, %s, %s", code, said, none.read(none.home(".gitconfig")))
	}
}

func TestConfigOverlay(t *testing.T) {
	// Filled configuration must replace files of its name with their modes, make what is missing, and leave the rest.
	for _, a := range spec.Agents {
		b := newBox(t, a.Name, spec.Idle)
		in := func(path string) string { return b.home(filepath.Join(a.ConfigDir, path)) }
		b.write(in("replaced"), "old and longer", 0o600)
		b.write(in("stays"), "stays", 0o640)
		b.write(in("deep/stays"), "stays", 0o600)
		b.fill(spec.FillConfig+"/replaced", "new")
		b.fill(spec.FillConfig+"/deep/new", "new")
		b.write(filepath.Join(b.p.RunDir, spec.FillConfig, "deep/run"), "#!/bin/sh", 0o700)
		for range 2 {
			if code, _, said := b.guest("phase", "config"); code != 0 {
				t.Fatal(said)
			}
		}
		for path, want := range map[string]string{"replaced": "new", "stays": "stays", "deep/stays": "stays", "deep/new": "new", "deep/run": "#!/bin/sh"} {
			if got := b.read(in(path)); got != want {
				t.Errorf("%s: %s is %q, want %q", a.Name, path, got, want)
			}
		}
		for path, want := range map[string]os.FileMode{"replaced": 0o600, "stays": 0o640, "deep/run": 0o700} {
			if info, err := os.Stat(in(path)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %s has mode %v, want %v", a.Name, path, info.Mode(), want)
			}
		}
	}
	if code, _, said := newBox(t, "pi", spec.Idle).guest("phase", "config"); code != 0 {
		t.Errorf("without configuration: exit %d, %s", code, said)
	}
}
