package e2e

import (
	"os"
	"strings"
	"testing"
)

// The user's canonical configuration of an agent must be laid over the agent's
// own directory at every deploy: its files replace files, with their modes, and
// what else is on the volume stays.
func TestCanonicalConfiguration(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	u.must("exec", u.name, "--", "sh", "-c", `cd ~/.claude && mkdir -p commands && echo kept >login && echo kept >commands/own.md && echo old >settings.json`)
	dir := "config/" + u.name + ".config/claude/"
	u.write(dir+"settings.json", "{\"new\": \"$HOME ${X}\"}\n")
	u.write(dir+"commands/deep/er/laid.md", "laid\n")
	hook := u.write(dir+"hooks/hook.sh", "#!/bin/sh\necho hooked\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(u.write("elsewhere.md", "linked\n"), u.path(dir, "linked.md")); err != nil {
		t.Fatal(err)
	}
	u.write("config/"+u.name+".config/codex/config.toml", "# for another agent\n")
	u.must("redeploy", u.name)

	for path, want := range map[string]string{
		"login": "kept\n", "commands/own.md": "kept\n", "settings.json": "{\"new\": \"$HOME ${X}\"}\n",
		"commands/deep/er/laid.md": "laid\n", "linked.md": "linked\n",
	} {
		if got := u.must("exec", u.name, "--", "cat", "/home/agent/.claude/"+path).stdout; got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	if got := u.must("exec", u.name, "--", "/home/agent/.claude/hooks/hook.sh").stdout; got != "hooked\n" {
		t.Errorf("the hook says %q", got)
	}
	modes := u.must("exec", u.name, "--", "sh", "-c", "cd ~/.claude && stat -c '%a %U %n' settings.json hooks hooks/hook.sh commands/deep/er").stdout
	if want := "600 agent settings.json\n700 agent hooks\n700 agent hooks/hook.sh\n700 agent commands/deep/er\n"; modes != want {
		t.Errorf("modes: %s, want %s", modes, want)
	}
	if r := u.run("exec", u.name, "--", "cat", "/home/agent/.codex/config.toml"); r.code == 0 {
		t.Errorf("the configuration of another agent was laid out: %s", r)
	}
}

// The identity of the user's own git configuration must be the container's; of
// a project's repository nothing is taken, and without an identity there is none.
func TestGitIdentity(t *testing.T) {
	u := newUser(t)
	u.withStub()
	// Where the user stands is a repository with an identity of its own.
	u.write("project/.git/config", "[core]\n\trepositoryformatversion = 0\n[user]\n\temail = project@example.com\n")
	u.write("project/.git/HEAD", "ref: refs/heads/main\n")
	email := func() result { return u.run("exec", u.name, "--", "git", "config", "user.email") }

	u.must("up", u.name, "--mode", "idle")
	if r := email(); r.code != 1 || r.stdout != "" {
		t.Errorf("an identity came from nowhere: %s", r)
	}
	u.write("home/.gitconfig", "[user]\n\tname = Žofie \"Z\" Nováková\n\temail = zofie@example.com\n")
	u.must("redeploy", u.name)
	if r := email(); r.stdout != "zofie@example.com\n" {
		t.Errorf("the e-mail address is %s", r)
	}
	u.must("exec", u.name, "--", "sh", "-c", "git init -q /workspace/r && cd /workspace/r && git commit -q --allow-empty -m x")
	if got := u.must("exec", u.name, "--", "git", "-C", "/workspace/r", "log", "--format=%an <%ae>").stdout; got != "Žofie Z Nováková <zofie@example.com>\n" {
		t.Errorf("the author is %q", got)
	}
	// What is taken away is gone: files are read again at every redeploy.
	if err := os.Remove(u.path("home/.gitconfig")); err != nil {
		t.Fatal(err)
	}
	u.must("redeploy", u.name)
	if r := email(); r.code != 1 {
		t.Errorf("the identity stayed: %s", r)
	}
}

// The CA bundle must be in the container, together with the system's, and every
// usual client be pointed at it; with none there is neither.
func TestCABundle(t *testing.T) {
	variables := []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE"}
	u := newUser(t)
	u.withStub()
	u.built() // with the host's own bundle, before the settings name another one
	const marker = "# the bundle of an e2e test"
	bundle := u.write("bundle.pem", marker+"\n")
	u.write("config/settings.yaml", "ca_bundle: "+bundle+"\n")
	u.must("up", u.name, "--mode", "idle")
	for _, v := range variables {
		r := u.must("exec", u.name, "--", "sh", "-c", `cat "$`+v+`"`)
		if !contains(r.stdout, marker) || !contains(r.stdout, "BEGIN CERTIFICATE") {
			t.Errorf("%s does not name both bundles: %s", v, r)
		}
	}

	u.write("config/settings.yaml", "ca_bundle: none\n")
	u.must("redeploy", u.name)
	env := u.must("exec", u.name, "--", "env").stdout
	for _, v := range variables {
		if contains(env, v+"=") {
			t.Errorf("%s is set", v)
		}
	}
	if files := u.must("exec", u.name, "--", "ls", "/run/agent-container").stdout; contains(files, ".pem") {
		t.Errorf("a bundle is left: %s", strings.Fields(files))
	}
}
