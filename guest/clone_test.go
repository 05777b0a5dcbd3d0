package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

// Each way in which git fails must have one line that says what to do; what a
// server says of itself is never more than that.
func TestExplainGit(t *testing.T) {
	for _, c := range []struct{ about, url, said, want string }{
		{"an unknown key", "git@h:a", "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.", "the SSH key is not registered"},
		{"no login over https that looks like it", "https://h/a", "remote: Permission denied (publickey).\nfatal: no", "fatal: no"},
		{"a wrong token", "https://h/a", "fatal: Authentication failed for 'https://h/a/'", "h refused the token in TOKEN (fatal: Authentication failed for 'https://h/a/')"},
		{"a wrong token at a host without one", "https://x/a", "fatal: Authentication failed for 'https://x/a/'", "fatal: Authentication failed for 'https://x/a/'"},
		{"a token without the right", "https://h/a", "fatal: unable to access 'https://h/a/': The requested URL returned error: 403", "h refused the token in TOKEN (fatal: unable to access 'https://h/a/': The requested URL returned error: 403)"},
		{"a missing token", "https://h/a", "fatal: could not read Username for 'https://h': terminal prompts disabled", "h asks for a login; pass a token with --env TOKEN"},
		{"a host without a variable", "https://x/a", "fatal: could not read Username for 'https://x': terminal prompts disabled",
			"x asks for a login; name the variable that holds a token for it in settings.yaml, git.credentials, and pass it with --env"},
		{"another host key", "ssh://u@h:2022/a", "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key for [h]:2022 has changed and you have requested strict checking.\nHost key verification failed.\nfatal: Could not read from remote repository.",
			"[h]:2022 shows another host key than before; if that is right, forget the old one: agent-container exec demo ssh-keygen -R '[h]:2022'"},
		{"another host key of a submodule's host", "https://h/a", "Host key for other has changed and you have requested strict checking.\nHost key verification failed.", "other shows another host key than before; if that is right, forget the old one: agent-container exec demo ssh-keygen -R 'other'"},
		{"an unknown key at a submodule's host", "git@h:a", "git@other: Permission denied (publickey).\nfatal: Could not read from remote repository.", "other does not know this container's SSH key; register it there: agent-container ssh-key show demo"},
		{"a host that does not answer", "git@h:a", "ssh: connect to host h port 22: Connection refused\nfatal: Could not read from remote repository.", "ssh: connect to host h port 22: Connection refused"},
		{"a login at another host", "https://h/a", "fatal: could not read Username for 'https://x:8444': terminal prompts disabled",
			"x:8444 asks for a login; name the variable that holds a token for it in settings.yaml, git.credentials, and pass it with --env"},
		{"a missing branch", "https://h/a#b", "warning: Could not find remote branch b to clone.\nfatal: Remote branch b not found in upstream origin", "https://h/a has no branch, tag or commit b"},
		{"no such host", "https://h/a", "fatal: unable to access 'https://h/a/': Could not resolve host: h", "fatal: unable to access 'https://h/a/': Could not resolve host: h"},
		{"what follows from it", "git@h:a", "ERROR: Repository not found.\nfatal: Could not read from remote repository.", "ERROR: Repository not found."},
		{"LFS", "https://h/a", "Error downloading object: a.bin (4bd07fe): not there\nerror: external filter 'git-lfs filter-process' failed\nfatal: a.bin: smudge filter lfs failed", "LFS: Error downloading object: a.bin (4bd07fe): not there"},
		{"nothing", "https://h/a", "", "exit status 1"},
	} {
		repo, _, err := spec.ParseRepo(c.url)
		if err != nil {
			t.Fatal(err)
		}
		cl := &cloning{guest: &guest{name: "demo"}, repo: repo, job: spec.Job{Credentials: map[string]string{"h": "TOKEN"}}}
		got := cl.explain(strings.Split(c.said, "\n"), errors.New("exit status 1"))
		if got.Error() != c.want || errors.Is(got, errPending) != (c.about == "an unknown key") {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
	}
}

// git must get the token of the host that it asks for, over https, and nothing
// else whatever it asks.
func TestCredentialHelper(t *testing.T) {
	b := newBox(t, "claude", spec.Idle)
	b.fill(spec.FillJob, `{"record_task":true,"credentials":{"h:8443":"TOKEN","empty":"EMPTY","broken":"BROKEN"}}`)
	b.environment("TOKEN=canary\x00EMPTY=\x00BROKEN=a\nhost=evil\x00OTHER=other\x00")
	for question, want := range map[string]string{
		"protocol=https\nhost=h:8443\n\n": "username=x-access-token\npassword=canary\n", "protocol=https\nhost=H:8443\npath=a\n\n": "username=x-access-token\npassword=canary\n",
		"protocol=http\nhost=h:8443\n\n": "", "protocol=https\nhost=h\n\n": "", "protocol=https\nhost=h:8443.evil\n\n": "", "protocol=https\nhost=empty\n\n": "",
		"protocol=https\nhost=broken\n\n": "", "protocol=https\n\n": "", "": "", "\x00": "",
	} {
		b.write(b.home("question"), question, 0o600)
		r := b.start("/bin/sh", "-c", `exec "$0" credential get <"$HOME/question"`, program)
		if code := r.wait(); code != 0 || r.out.String() != want {
			t.Errorf("%q: %d %q, want %q\n%s", question, code, r.out.String(), want, r.err.String())
		}
	}
	for _, verb := range []string{"store", "erase", "", "capability"} {
		if code, out, _ := b.guest("credential", verb); code != 0 || out != "" {
			t.Errorf("%s: %d %q", verb, code, out)
		}
	}
}

// The workspace must get its clone whole or not at all: see tests/e2e for git
// itself; here for what stands in the way.
func TestCloneRefusesWhatIsThere(t *testing.T) {
	for _, c := range []struct{ about, path, want string }{
		{"a file", "x", "holds x and is no clone of https://192.0.2.1/a"},
		{"a broken repository", ".git", "holds a repository without an origin, and https://192.0.2.1/a was asked for"},
	} {
		b := newBox(t, "claude", spec.Idle)
		b.p.CloneURL = "https://192.0.2.1/a"
		b.write(b.p.Workspace+"/"+c.path, "", 0o600)
		code, _, stderr := b.guest("phase", "clone")
		if code != 1 || !strings.Contains(stderr, c.want) || !strings.Contains(stderr, "redeploy demo --no-repo") || !strings.HasPrefix(b.status(), "failed clone: ") {
			t.Errorf("%s: %d %s, status %s", c.about, code, stderr, b.status())
		}
	}
}

// What git prints must become progress and lines that are safe to show, however
// it is cut into pieces.
func FuzzGitOutput(f *testing.F) {
	f.Add([]byte("Cloning into 'x'...\nremote: Counting objects: 100% (3/3)\rReceiving objects:  33% (1/3)\r"), []byte("canary-12345"), uint8(3))
	f.Add([]byte("a canary-12345 b\nfatal: \x1b[31m no\r\n"), []byte("canary-12345"), uint8(1))
	f.Add([]byte(strings.Repeat("x", 10000)), []byte("xxxxxxxx"), uint8(255))
	f.Fuzz(func(t *testing.T, text, secret []byte, step uint8) {
		var told []string
		o := &gitOutput{progressed: func(s string) { told = append(told, s) }}
		if len(secret) >= minSecret && !strings.ContainsAny(string(secret), "\r\n") {
			o.secrets = [][]byte{secret}
		}
		for rest := text; len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			if w, err := o.Write(rest[:n]); w != n || err != nil {
				t.Fatal(w, err)
			}
			rest = rest[n:]
		}
		o.flush()
		if len(o.lines) > maxGitLines {
			t.Errorf("%d lines are kept", len(o.lines))
		}
		for _, s := range append(told, o.lines...) {
			if s != spec.Printable(s, 400) || len(s) > 320 {
				t.Errorf("unsafe: %q", s)
			}
		}
	})
}
