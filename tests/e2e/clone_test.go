package e2e

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"
)

// inside runs a command in the deployment's container and returns what it says.
func (u *user) inside(argv ...string) string {
	u.t.Helper()
	return strings.TrimSpace(u.must(append([]string{"exec", u.name, "--"}, argv...)...).stdout)
}

// token is the variable with the token that the user types --env CORP_TOKEN for.
func (g *gitServer) env() []string { return []string{"CORP_TOKEN=" + g.token} }

// An https repository must be cloned with the token of its host, once, and the
// token be nowhere but in the filled environment. What is in the workspace later
// stays.
func TestCloneOverHTTPS(t *testing.T) {
	u := newUser(t)
	u.withStub()
	g := u.withGit()
	head := g.repository("app", map[string]string{"README": "hello\n", "dir/file": "x\n"})
	watch := watchArgv()
	r := u.runWith(nil, g.env(), "up", u.name, "-v", "--mode", "idle", "--repo", "https://me:"+g.token+"@git:8443/private/app#main", "--env", "CORP_TOKEN")
	commands := watch.end(-1)
	if r.code != 0 || !contains(r.stderr, "the credentials in the URL are left out") {
		t.Fatal(r)
	}
	if got := u.inside("git", "rev-parse", "HEAD"); got != head {
		t.Errorf("HEAD is %s, want %s", got, head)
	}
	if got := u.inside("sh", "-c", "cat README dir/file && git status --porcelain --branch && ls -A"); got != "hello\nx\n## main...origin/main\n.git\nREADME\ndir" {
		t.Errorf("the work tree: %s", got)
	}
	if got := u.inside("git", "remote", "get-url", "origin"); got != "https://git:8443/private/app" {
		t.Errorf("origin is %s", got)
	}
	// The agent's own git gets the token too, for that host alone.
	u.inside("git", "fetch", "-q")
	if got := u.inside("git", "config", "--get-all", "safe.directory"); got != "/workspace" {
		t.Errorf("safe.directory is %q", got)
	}
	var tokens int
	for _, r := range g.requests() {
		if r.Token {
			tokens++
		}
	}
	if tokens == 0 {
		t.Errorf("the token was never used: %+v", g.requests())
	}
	reflog := u.inside("sh", "-c", "cat .git/config .git/logs/HEAD ~/.gitconfig; find .git -name '*clone*'")
	seen := places{
		"what up says": r.stdout + r.stderr, "docker inspect": docker(t, "inspect", u.container()), "the log": u.must("logs", u.name).stdout + u.must("logs", u.name).stderr,
		"git's configuration and reflog": reflog, "list": u.must("list", "--json").stdout, "--dry-run": u.must("up", u.name, "--dry-run").stdout,
		"a redeploy with -v": u.must("redeploy", u.name, "-v").stderr,
	}
	if !contains(commands, "--repo") { // the word itself, typed by the user, is there
		t.Errorf("no command line was seen:\n%s", commands)
	}
	commands = strings.ReplaceAll(commands, "https://me:"+g.token+"@git", "what the user typed")
	seen["a command line"] = commands
	for path, text := range u.files() {
		if !strings.HasPrefix(path, "config/"+u.name+".services") { // the server's own
			seen[path] = text
		}
	}
	seen.wantNone(t, g.token)
	if bytes := u.archive("/workspace"); strings.Contains(string(bytes), g.token) {
		t.Error("the token is in the workspace")
	}

	// Work that is not committed is kept, and nothing is fetched again.
	u.inside("sh", "-c", "echo mine >README")
	before := len(g.requests())
	u.must("redeploy", u.name)
	if got := u.inside("cat", "README"); got != "mine" || len(g.requests()) != before {
		t.Errorf("README is %q, %d requests more", got, len(g.requests())-before)
	}
	if d := u.listed(); d["repo"] != "https://git:8443/private/app#main" {
		t.Errorf("list: %v", d)
	}

	// Nor is it in the record of a job, with what that wrote and changed.
	r = u.must("redeploy", u.name, "--mode", "headless", "--foreground", "--task", "x", "--env", `STUB_RUN=echo "token: $CORP_TOKEN" | tee leak`)
	if !contains(r.stdout, g.token) {
		t.Errorf("the agent has not got the token: %s", r)
	}
	kept := places{}
	for path, text := range u.files() {
		if strings.HasPrefix(path, "data/") {
			kept[path] = text
		}
	}
	if len(kept) < 3 {
		t.Errorf("the record, its output and its diff are not there: %d files", len(kept))
	}
	kept.wantNone(t, g.token)
}

// A branch, a tag, a commit, a depth, LFS, submodules and an empty repository
// must come out as git's users expect.
func TestCloneForms(t *testing.T) {
	u := newUser(t)
	u.withStub()
	g := u.withGit()
	g.repository("sub", map[string]string{"inner": "in\n"})
	g.repository("big", map[string]string{
		".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": g.lfsObject("the real content\n", true),
	})
	g.repository("with-sub", map[string]string{"outer": "out\n"}, func(dir string) {
		u.hostCommand("git", "-c", "protocol.file.allow=always", "-C", dir, "submodule", "--quiet", "add", u.path("git/repos/sub.git"), "lib/sub")
		u.hostCommand("git", "-C", dir, "config", "-f", ".gitmodules", "submodule.lib/sub.url", "../sub.git")
	})
	g.repository("empty", nil)
	first := g.repository("app", map[string]string{"one": "1\n"})
	work := u.path("work/app")
	u.write("work/app/two", "2\n")
	u.hostCommand("git", "-C", work, "add", "--all")
	u.hostCommand("git", "-C", work, "commit", "-q", "-m", "second")
	u.hostCommand("git", "-C", work, "push", "-q", u.path("git/repos/app.git"), "main", "main:side/branch")
	g.owned()
	second := u.hostCommand("git", "-C", work, "rev-parse", "HEAD")

	deploy := func(repo string, flags ...string) result {
		t.Helper()
		verb := "redeploy"
		if dockerTry(t, "inspect", u.container()).code != 0 {
			verb = "up"
		}
		return u.must(append([]string{verb, u.name, "--mode", "idle", "--workspace", "ephemeral", "--repo", "https://git:8443/open/" + repo}, flags...)...)
	}
	look := func(want, script string) {
		t.Helper()
		if got := u.inside("sh", "-c", script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	deploy("app.git")
	look("main "+second, "echo $(git branch --show-current) $(git rev-parse HEAD)")
	deploy("app#side/branch", "--depth", "1")
	look("side/branch "+second+" 1", "echo $(git branch --show-current) $(git rev-parse HEAD) $(git rev-list --count HEAD)")
	deploy("app#v1")
	look(first, "git symbolic-ref -q HEAD || git rev-parse HEAD")
	u.must("redeploy", u.name, "--repo", "https://git:8443/open/app#"+first) // the depth was kept
	look(first+" two:no", "echo $(git rev-parse HEAD) two:$([ -e two ] && echo yes || echo no)")
	deploy("big")
	look("the real content", "cat a.bin")
	look("", "git status --porcelain")
	deploy("with-sub")
	look("in", "cat lib/sub/inner")
	look("", "git status --porcelain && git -C lib/sub status --porcelain")
	if r := deploy("empty"); !contains(r.stderr, "NOTE: the repository https://git:8443/open/empty is empty") {
		t.Errorf("an empty repository is not said to be: %s", r)
	}
	look("https://git:8443/open/empty", "git remote get-url origin")
	// Without it, what is cloned is dropped, and said.
	if r := u.must("redeploy", u.name, "--no-repo"); !contains(r.stderr, "repo: https://git:8443/open/empty -> (none)") {
		t.Errorf("--no-repo: %s", r)
	}
	look("", "ls -A")
}

// Whatever goes wrong with a clone must be one line that says what, and leave
// nothing that could be taken for the repository; a redeploy tries again.
func TestCloneFailures(t *testing.T) {
	u := newUser(t)
	u.withStub()
	g := u.withGit()
	noise := make([]byte, 200<<10) // a pack that cannot be compressed
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	g.repository("app", map[string]string{"README": "hello\n", "noise": string(noise)})
	g.repository("no-object", map[string]string{".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": g.lfsObject("nowhere\n", false)})
	g.repository("no-sub", map[string]string{"outer": "out\n"}, func(dir string) {
		u.hostCommand("git", "-c", "protocol.file.allow=always", "-C", dir, "submodule", "--quiet", "add", u.path("git/repos/app.git"), "sub")
		u.hostCommand("git", "-C", dir, "config", "-f", ".gitmodules", "submodule.sub.url", "https://git:8443/open/not-there.git")
	})
	verb := "up"
	for _, c := range []struct{ about, repo, token, want string }{
		{"a wrong token", "private/app", "wrong-token", "git:8443 refused the token in CORP_TOKEN"},
		{"a token with a line feed", "private/app", "wrong\nhost=other", "git:8443 asks for a login, and what is in CORP_TOKEN is no token"},
		{"not there", "open/not-there", g.token, "not found"},
		{"a server that answers nothing", "stall/app", g.token, "no progress for 10s"},
		{"a pack that ends in the middle", "cut/app", g.token, "RPC failed"},
		{"a missing branch", "open/app#gone", g.token, "https://git:8443/open/app has no branch, tag or commit gone"},
		{"a missing commit", "open/app#0123456789012345678901234567890123456789", g.token, "has no branch, tag or commit 0123456789012345678901234567890123456789"},
		{"another host behind a redirect", "away/app", g.token, "git:8444 asks for a login; name the variable"},
		{"an LFS object that is nowhere", "open/no-object", g.token, "LFS: Error downloading object: a.bin"},
		{"a submodule that is nowhere", "open/no-sub", g.token, "submodules: "},
	} {
		timeout := "60s"
		if strings.HasPrefix(c.repo, "stall/") { // this one is waited for
			timeout = "10s"
		}
		r := u.runWith(nil, []string{"CORP_TOKEN=" + c.token}, verb, u.name, "--mode", "idle", "--start-timeout", timeout, "--repo", "https://git:8443/"+c.repo, "--env", "CORP_TOKEN")
		verb = "redeploy"
		if r.code != 1 || !contains(r.stderr, "phase clone: ") || !contains(r.stderr, c.want) {
			t.Errorf("%s: want exit 1 and %q: %s", c.about, c.want, r)
		}
		if contains(r.stdout+r.stderr, g.token) || contains(r.stdout+r.stderr, "wrong-token") {
			t.Errorf("%s: the token is shown: %s", c.about, r)
		}
		wantHint(t, r, "agent-container redeploy "+u.name)
		if got := u.inside("sh", "-c", "ls -A /workspace"); got != "" && got != ".agent-container-clone" {
			t.Errorf("%s: the workspace holds %s", c.about, got)
		}
		if got := u.inside("sh", "-c", "pgrep -x git || true"); got != "" {
			t.Errorf("%s: git goes on: %s", c.about, got)
		}
	}
	for _, r := range g.requests() {
		if strings.HasSuffix(r.Host, ":8444") && r.Auth {
			t.Errorf("the token went to another host: %+v", r)
		}
	}
	u.must("redeploy", u.name, "--repo", "https://git:8443/open/app", "--start-timeout", "120s", "--no-input")
	if got := u.inside("sh", "-c", "cat README && ls -A"); got != "hello\n.git\nREADME\nnoise" {
		t.Errorf("after all that, a redeploy gives %s", got)
	}
}

// What is in a workspace must never be overwritten, and what a killed clone left
// be finished.
func TestCloneIntoWhatIsThere(t *testing.T) {
	u := newUser(t)
	u.withStub()
	g := u.withGit()
	g.repository("app", map[string]string{"README": "hello\n", "b": "b\n"})
	g.repository("other", map[string]string{"README": "other\n"})
	u.must("up", u.name, "--mode", "idle")
	u.inside("sh", "-c", "echo precious >/workspace/file")
	refused := func(repo, want string) {
		t.Helper()
		r := u.want(1, "redeploy", u.name, "--repo", repo)
		if !contains(r.stderr, want) || !contains(r.stderr, "redeploy "+u.name+" --no-repo") {
			t.Errorf("want %q and the way out: %s", want, r)
		}
	}
	refused("https://git:8443/open/app", "/workspace holds file and is no clone of https://git:8443/open/app")
	u.inside("sh", "-c", "rm /workspace/file; git init -q")
	refused("https://git:8443/open/app", "/workspace holds a repository without an origin, and https://git:8443/open/app was asked for")
	u.inside("sh", "-c", "git remote add origin https://me:secret@git:8443/open/other")
	refused("https://git:8443/open/app", "/workspace holds a clone of https://git:8443/open/other, and https://git:8443/open/app was asked for")

	// A clone that was killed before it was whole is begun again.
	u.inside("sh", "-c", "rm -rf /workspace/.git; mkdir -p /workspace/.agent-container-clone/.git; echo half >/workspace/.agent-container-clone/README")
	u.must("redeploy", u.name)
	if got := u.inside("sh", "-c", "cat README b; ls -A"); got != "hello\nb\n.git\nREADME\nb" {
		t.Errorf("begun again: %s", got)
	}
	// One that was killed while it was moved is moved on.
	u.inside("sh", "-c", "mkdir .agent-container-clone && mv .git b .agent-container-clone && touch .agent-container-clone/.git/agent-container-whole && echo moved >README")
	before := len(g.requests())
	u.must("redeploy", u.name)
	if got := u.inside("sh", "-c", "cat README b; ls -A; test -e .git/agent-container-whole && echo mark; true"); got != "moved\nb\n.git\nREADME\nb" || len(g.requests()) != before {
		t.Errorf("moved on: %s, %d requests more", got, len(g.requests())-before)
	}
	// It is not another repository's, and it replaces nothing.
	u.inside("sh", "-c", "mkdir .agent-container-clone && mv .git b .agent-container-clone && touch .agent-container-clone/.git/agent-container-whole && echo mine >b")
	refused("https://git:8443/open/app", "/workspace holds b and is no clone of https://git:8443/open/app")
	refused("https://git:8443/open/other", "and is no clone of https://git:8443/open/other")
	if got := u.inside("sh", "-c", "cat README b"); got != "moved\nmine" {
		t.Errorf("what was there: %s", got)
	}
	u.inside("sh", "-c", "find /workspace -mindepth 1 -delete")
	g.repository("ours", map[string]string{".agent-container-clone": "x\n", "a": "a\n"})
	if r := u.want(1, "redeploy", u.name, "--repo", "https://git:8443/open/ours"); !contains(r.stderr, "the repository has an entry .agent-container-clone") {
		t.Error(r)
	}
	u.must("redeploy", u.name, "--repo", "https://git:8443/open/other")
	if r := u.want(2, "redeploy", u.name, "--repo", "https://git:8443/open/app", "--no-repo"); !contains(r.stderr, "contradict") {
		t.Error(r)
	}
	if r := u.want(2, "redeploy", u.name, "--workspace", "bind", "--workspace-dir", u.path("project")); !contains(r.stderr, "--repo") {
		t.Error(r)
	}
}

// register lets a key in at the SSH git server.
func (g *gitServer) register(key string) {
	g.u.t.Helper()
	f, err := os.OpenFile(g.u.path("git/authorized_keys"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		g.u.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(key + "\n"); err != nil {
		g.u.t.Fatal(err)
	}
}

// A job on a repository that is fetched with the container's own key must wait
// for the key's registration without running anything, and then run its task once.
func TestTwoPhaseClone(t *testing.T) {
	u := newUser(t)
	u.withStub()
	g := u.withGit()
	g.repository("app", map[string]string{"README": "hello\n"})
	task := "the task $x\n"
	pending := func(r result) string {
		t.Helper()
		if r.code != 3 || !contains(r.stderr, "gitssh:2222 does not know its SSH key yet") || !contains(r.stderr, "do not take "+u.name+" down") {
			t.Fatalf("want exit 3, and what to do: %s", r)
		}
		wantHint(t, r, "agent-container redeploy "+u.name)
		for _, line := range strings.Split(r.stderr, "\n") {
			if key, ok := strings.CutPrefix(line, "agent-container: ssh-ed25519 "); ok {
				return "ssh-ed25519 " + key
			}
		}
		t.Fatalf("no key: %s", r)
		return ""
	}
	key := pending(u.runWith(strings.NewReader(task), nil, "up", u.name, "--mode", "headless", "--foreground", "--task", "-",
		"--repo", "ssh://agent@gitssh:2222/git/repos/app.git", "--env", "STUB_RUN=echo ran >>/workspace/ran; pwd; ls -A"))
	if got := u.must("ssh-key", "show", u.name).stdout; got != key+"\n" {
		t.Errorf("ssh-key show: %q, want %q", got, key)
	}
	if _, ran := u.file("/home/agent/.claude/stub-argv"); ran {
		t.Error("the agent ran")
	}
	eventually(t, 30*time.Second, func() string {
		if d := u.listed(); d["state"] != "pending" {
			return "list does not say pending: " + u.must("list").stdout
		}
		return ""
	})
	same := u.unchanged()
	pending(u.run("up", u.name))
	same()
	if d := u.must("list", u.name, "--json"); !contains(d.stdout, `"state":"pending"`) {
		t.Error(d)
	}
	// A redeploy too early keeps key and task; so does a stop, and one that only
	// looks around.
	if r := u.must("redeploy", u.name, "--mode", "idle", "--no-repo"); !contains(r.stderr, "keeps its task") {
		t.Error(r)
	}
	pending(u.run("redeploy", u.name, "--mode", "headless", "--repo", "ssh://agent@gitssh:2222/git/repos/app.git"))
	if again := pending(u.run("redeploy", u.name)); again != key {
		t.Errorf("the key was %s and is %s", key, again)
	}
	u.must("stop", u.name)
	wantEnd(t, u.record(), "stopped", "engine-stop", 143)
	if got := u.must("ssh-key", "show", u.name).stdout; got != key+"\n" {
		t.Errorf("ssh-key show of a stopped one: %q", got)
	}

	g.register(key)
	// Killed when the old container is gone and the new one is not filled yet.
	u.endedAt("created", "kill", "redeploy", u.name)
	r := u.must("redeploy", u.name, "--foreground")
	if !contains(r.stdout, "README") {
		t.Errorf("the job saw no repository: %s", r)
	}
	if stdin, _ := u.file("/home/agent/.claude/stub-stdin"); stdin != task {
		t.Errorf("the task was %q, want %q", stdin, task)
	}
	if ran, _ := u.file("/workspace/ran"); ran != "ran\n" {
		t.Errorf("the task ran: %q", ran)
	}
	// Once an agent has it, it is nobody's any more; nor can the agent give itself
	// another one, or the same again.
	for _, forged := range []string{"planted", task} {
		docker(t, "cp", u.write("forged/undelivered-task", forged+"\x00"), u.container()+":/run/agent-container-secrets/undelivered-task")
		if r := u.want(2, "redeploy", u.name); !contains(r.stderr, "needs a task") {
			t.Errorf("%q: %s", forged, r)
		}
	}
	if r := u.want(2, "redeploy", u.name); !contains(r.stderr, "needs a task") {
		t.Error(r)
	}
	if r := u.must("down", u.name, "--purge", "--yes"); !contains(r.stderr, key) || !contains(r.stderr, "goes with its volumes") {
		t.Errorf("nothing is said of the registration: %s", r)
	}
}

// A session must not start its agent while its key is not registered; another
// host key than before is refused; a rotated key has to be registered anew.
func TestTwoPhaseSession(t *testing.T) {
	u := newUser(t)
	u.withStub()
	g := u.withGit()
	g.repository("app", map[string]string{"README": "hello\n"})
	u.want(3, "up", u.name, "--repo", "ssh://agent@gitssh:2222/git/repos/app.git#main", "--workspace", "ephemeral")
	if r := u.run("exec", u.name, "--", "tmux", "has-session"); r.code == 0 {
		t.Errorf("there is a session: %s", r)
	}
	if r := u.want(2, "ssh-key", "rotate", u.name); !contains(r.stderr, "--yes") {
		t.Error(r)
	}
	old := u.must("ssh-key", "show", u.name).stdout
	key := u.must("ssh-key", "rotate", u.name, "--yes").stdout
	if key == old || !strings.HasPrefix(key, "ssh-ed25519 ") {
		t.Errorf("rotated from %s to %s", old, key)
	}
	g.register(strings.TrimSpace(old))
	u.want(3, "redeploy", u.name)
	g.register(strings.TrimSpace(key))
	r := u.must("redeploy", u.name, "--json")
	if !contains(r.stdout, `"state":"running"`) {
		t.Error(r)
	}
	if got := u.inside("sh", "-c", "git log --oneline | wc -l; tmux has-session -t =main && echo session"); got != "1\nsession" {
		t.Errorf("after the registration: %s", got)
	}
	u.hostCommand("rm", u.path("git/host_key"))
	u.hostCommand("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", u.path("git/host_key"))
	g.owned()
	if r := u.want(1, "redeploy", u.name); !contains(r.stderr, "another host key than before") || !contains(r.stderr, "ssh-keygen -R '[gitssh]:2222'") {
		t.Error(r)
	}
	u.must("stop", u.name)
	if r := u.runWith(nil, []string{"DOCKER_HOST=unix:///nonexistent.sock"}, "ssh-key", "show", u.name); r.code != 0 || r.stdout != key || !contains(r.stderr, "seen last") {
		t.Errorf("without an engine: %s", r)
	}
	if r := u.want(4, "ssh-key", "show", u.name+"-no"); !contains(r.stderr, "no deployment") {
		t.Error(r)
	}
}

// A job whose clone has failed must keep its task for the redeploy that tries
// again, and run it once.
func TestFailedCloneKeepsTheTask(t *testing.T) {
	u := newUser(t)
	u.withStub()
	g := u.withGit()
	r := u.want(1, "up", u.name, "--mode", "headless", "--task", "the task", "--repo", "https://git:8443/open/late", "--env", "STUB_RUN=ls")
	if !contains(r.stderr, "phase clone: ") {
		t.Error(r)
	}
	g.repository("late", map[string]string{"README": "hello\n"})
	if r := u.must("redeploy", u.name, "--foreground"); !contains(r.stdout, "README") || !contains(r.stderr, "keeps its task") {
		t.Error(r)
	}
	if stdin, _ := u.file("/home/agent/.claude/stub-stdin"); stdin != "the task" {
		t.Errorf("the task was %q", stdin)
	}
	if r := u.want(2, "redeploy", u.name); !contains(r.stderr, "needs a task") {
		t.Error(r)
	}
	if got := len(u.records()); got != 2 {
		t.Errorf("%d records, want the failed one and the run's", got)
	}
}
