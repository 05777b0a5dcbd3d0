package e2e

import (
	"strings"
	"testing"
)

// A repository must be cloned through strict egress that declares its host, over
// https with the host's token and over ssh with the container's own key; from a
// host that is not declared nothing is tried, and nothing made.
func TestCloneThroughEgress(t *testing.T) {
	u := newUser(t)
	u.withStub()
	g := u.withGit()
	u.addLine("config/settings.yaml", "egress:\n  outside: [git, gitssh]")
	g.repository("app", map[string]string{"README": "hello\n"})
	const https, ssh = "https://git:8443/private/app", "ssh://agent@gitssh:2222/git/repos/app.git"

	for repo, entry := range map[string]string{https: "service:git:8443", ssh: "service:gitssh:2222", "https://git.invalid/a/b": "git.invalid"} {
		other := "service:git:8444" // a port beside, which is not the host's
		r := u.want(2, "up", u.name, "--mode", "idle", "--egress", "strict", "--egress-allow", other, "--repo", repo)
		if !contains(r.stderr, "--repo: ") {
			t.Errorf("nothing says that it is --repo: %s", r)
		}
		wantHint(t, r, "add --egress-allow "+entry)
		u.nothingLeft(0)
	}

	strict := []string{"--mode", "idle", "--workspace", "ephemeral", "--egress", "strict", "--egress-allow"}
	r := u.runWith(nil, g.env(), append([]string{"up", u.name, "--repo", https, "--env", "CORP_TOKEN"}, append(strict, "service:git:8443")...)...)
	if r.code != 0 {
		t.Fatal(r)
	}
	if got := u.inside("cat", "README"); got != "hello" {
		t.Errorf("over https the work tree holds %q", got)
	}
	u.inside("git", "fetch", "-q")

	over := append([]string{"redeploy", u.name, "--repo", ssh}, append(strict, "service:gitssh:2222")...)
	r = u.want(3, over...)
	if !contains(r.stderr, "gitssh:2222 does not know its SSH key yet") {
		t.Errorf("nothing says what to do: %s", r)
	}
	g.register(strings.TrimSpace(u.must("ssh-key", "show", u.name).stdout))
	u.must("redeploy", u.name)
	if got := u.inside("sh", "-c", "cat README; git fetch -q && git remote get-url origin"); got != "hello\n"+ssh {
		t.Errorf("over ssh the work tree holds %q", got)
	}
	// Of the two only the one that is declared now is reached.
	if r := u.run("exec", u.name, "--", "git", "ls-remote", https); r.code == 0 || !contains(r.stderr, "resolve host") {
		t.Errorf("the other server: %s", r)
	}
	if got := u.must("egress", "denied", u.name).stdout; !contains(got, "git ") || contains(got, "gitssh") {
		t.Errorf("refused: %s", got)
	}
}
