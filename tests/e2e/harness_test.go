// Package e2e tests the built program on a real engine with the real agents.
// Every deployment has a name of its own and is wiped at the end; what a test
// looks at is the state of containers and files, and text only where the text
// is the promise.
package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// program is the binary under test, built by "make build".
var program string

func TestMain(m *testing.M) {
	if os.Getenv("AGENT_CONTAINER_E2E") != "1" {
		fmt.Println("e2e: skipped: AGENT_CONTAINER_E2E is not 1; run: make engine e2e")
		return
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(root, "build", "agent-container")
	if _, err := os.Stat(program); err != nil {
		fmt.Println("e2e: run make build first:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// user is somebody at a machine: directories, a home and a project of their
// own, and the program.
type user struct {
	t    *testing.T
	dir  string   // config, state, data, home, project below it
	env  []string // beside the process's own
	name string   // of the deployment, unique
}

// newUser makes a user with a deployment's name; whatever the test leaves of
// that name is wiped at the end.
func newUser(t *testing.T) *user {
	t.Helper()
	t.Parallel()
	random := make([]byte, 4)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, dir: t.TempDir(), name: "e2e-" + hex.EncodeToString(random)}
	for _, d := range []string{"config", "state", "data", "home", "project"} {
		if err := os.Mkdir(filepath.Join(u.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	u.env = []string{
		"AGENT_CONTAINER_CONFIG_DIR=" + u.path("config"),
		"AGENT_CONTAINER_STATE_DIR=" + u.path("state"),
		"AGENT_CONTAINER_DATA_DIR=" + u.path("data"),
		"HOME=" + u.path("home"),
	}
	t.Cleanup(func() { u.wiped(u.name) })
	return u
}

// wiped wipes a deployment of the user's at the end of the test. An engine with
// much to do may not answer at once; what is left would be there for ever.
func (u *user) wiped(name string) {
	u.t.Helper()
	r := u.run("wipe", name, "--yes")
	for tries := 1; r.code == 5 && tries < 3; tries++ {
		r = u.run("wipe", name, "--yes")
	}
	if r.code != 0 && r.code != 4 {
		u.t.Errorf("clean-up: %s", r)
	}
}

// path is a place below the user's directory.
func (u *user) path(elem ...string) string {
	return filepath.Join(append([]string{u.dir}, elem...)...)
}

// container is the engine's name of the user's deployment.
func (u *user) container() string { return "agent-container-" + u.name }

// write makes a file below the user's directory.
func (u *user) write(path, content string) string {
	u.t.Helper()
	full := u.path(path)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
		u.t.Fatal(err)
	}
	return full
}

// result is the end of one command.
type result struct {
	argv           []string
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("%s: exit %d\nstdout: %s\nstderr: %s", strings.Join(r.argv, " "), r.code, clip(r.stdout), clip(r.stderr))
}

func clip(s string) string {
	if len(s) > 4000 {
		return s[:2000] + " … " + s[len(s)-2000:]
	}
	return s
}

// commandTime bounds every command of a test.
const commandTime = 4 * time.Minute

// run runs the program with closed stdin and no terminal.
func (u *user) run(args ...string) result { return u.runWith(nil, nil, args...) }

// runWith runs the program with an input and extra variables.
func (u *user) runWith(stdin io.Reader, env []string, args ...string) result {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = u.path("project")
	cmd.Env = append(append(outerEnvironment(), u.env...), env...)
	cmd.Stdin = stdin
	return finish(u.t, cmd)
}

// outerEnvironment is the process's own without what steers the program: a
// developer's AGENT_CONTAINER_REPO must not decide what is tested.
func outerEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "AGENT_CONTAINER_") })
}

// must runs the program and fails the test unless it exits 0.
func (u *user) must(args ...string) result {
	u.t.Helper()
	r := u.run(args...)
	if r.code != 0 {
		u.t.Fatal(r)
	}
	return r
}

// want runs the program and fails the test unless it exits with code.
func (u *user) want(code int, args ...string) result {
	u.t.Helper()
	r := u.run(args...)
	if r.code != code {
		u.t.Fatalf("want exit %d, got %s", code, r)
	}
	return r
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	r := result{argv: cmd.Args, stdout: out.String(), stderr: errOut.String()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		r.code = exit.ExitCode()
	case err != nil:
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return r
}

// docker runs the engine's own command line, to look at the state behind ours.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	r := dockerTry(t, args...)
	if r.code != 0 {
		t.Fatal(r)
	}
	return strings.TrimSpace(r.stdout)
}

func dockerTry(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	return finish(t, exec.CommandContext(ctx, "docker", args...))
}

// inspect returns one field of the deployment's container.
func (u *user) inspect(format string) string {
	u.t.Helper()
	return docker(u.t, "inspect", "--format", format, u.container())
}

// patience is the least that is waited for what has no time of its own to keep to:
// other work may have the machine for that long.
const patience = time.Minute

// eventually polls until check returns "" or the time, at least patience, is over,
// and then fails with what it returned last.
func eventually(t *testing.T, limit time.Duration, check func() string) {
	t.Helper()
	limit = max(limit, patience)
	deadline := time.Now().Add(limit)
	for {
		problem := check()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", limit, problem)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// record is the newest run record of the deployment, decoded.
func (u *user) record() map[string]any {
	u.t.Helper()
	r := u.must("runs", "list", u.name, "--json")
	var e struct {
		Data struct{ Runs []map[string]any }
	}
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || len(e.Data.Runs) == 0 {
		u.t.Fatalf("no record: %v: %s", err, r)
	}
	return e.Data.Runs[0]
}

// modelImage builds the scripted model server's image once.
var modelImage = sync.OnceValue(func() error {
	out, err := exec.Command("../modelserver/image.sh").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// withModel puts the scripted model server beside the deployment, as its
// service "model", and returns the flags that point agent at it.
func (u *user) withModel(agent string) []string {
	u.t.Helper()
	if err := modelImage(); err != nil {
		u.t.Fatal(err)
	}
	services, err := os.ReadFile("../modelserver/services.yaml")
	if err != nil {
		u.t.Fatal(err)
	}
	u.write("config/"+u.name+".services.yaml", string(services))
	config := "config/" + u.name + ".config/" + agent + "/"
	switch agent {
	case "claude":
		// No update checks, no telemetry: tests talk to our own servers only.
		return []string{"--env", "ANTHROPIC_BASE_URL=http://model:8080", "--env", "ANTHROPIC_API_KEY=sk-test-0123456789abcdef",
			"--env", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "--env", "CLAUDE_CODE_MAX_RETRIES=2"}
	case "codex":
		u.write(config+"config.toml", codexConfig)
		return []string{"--env", "MODELSERVER_KEY=sk-test"}
	case "pi":
		u.write(config+"models.json", `{"providers":{"modelserver":{"baseUrl":"http://model:8080","api":"anthropic-messages","apiKey":"sk-test","models":[{"id":"modelserver"}]}}}`)
		u.write(config+"settings.json", `{"defaultProvider":"modelserver","defaultModel":"modelserver"}`)
		return []string{"--env", "PI_OFFLINE=1"}
	case "opencode":
		u.write(config+"opencode.json", `{"$schema":"https://opencode.ai/config.json","model":"anthropic/claude-sonnet-4-5","autoupdate":false,"provider":{"anthropic":{"options":{"baseURL":"http://model:8080/v1","apiKey":"sk-test"}}}}`)
		return []string{"--env", "OPENCODE_DISABLE_AUTOUPDATE=1", "--env", "OPENCODE_DISABLE_MODELS_FETCH=1"}
	}
	u.t.Fatalf("no model configuration for %s", agent)
	return nil
}

const codexConfig = `model = "gpt-5.5"
model_provider = "modelserver"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.modelserver]
name = "modelserver"
base_url = "http://model:8080/v1"
env_key = "MODELSERVER_KEY"
wire_api = "responses"
`

// modelRequests returns what the model server beside a running deployment has
// been asked so far.
func (u *user) modelRequests() []map[string]any {
	u.t.Helper()
	r := u.must("exec", u.name, "--", "curl", "-sS", "--noproxy", "*", "http://model:8080/requests")
	var list []map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil {
		u.t.Fatalf("%v: %s", err, r)
	}
	return list
}

// withStub makes the user's images come from a checkout in which claude is a
// stub. It keeps its argv and stdin in ~/.claude and then runs the shell
// commands in STUB_RUN, so that --env STUB_RUN='exit 42' is an agent that
// exits 42.
func (u *user) withStub() {
	u.t.Helper()
	repo := u.path("repo")
	for _, dir := range []string{"images", "entrypoint"} {
		if err := os.CopyFS(filepath.Join(repo, dir), os.DirFS(filepath.Join("../..", dir))); err != nil {
			u.t.Fatal(err)
		}
	}
	agent := filepath.Join(repo, "images", "agents", "claude")
	if err := os.RemoveAll(agent); err != nil {
		u.t.Fatal(err)
	}
	if err := os.CopyFS(agent, os.DirFS("testdata/stub")); err != nil {
		u.t.Fatal(err)
	}
	u.env = append(u.env, "AGENT_CONTAINER_REPO="+repo)
}

func contains(text, part string) bool { return strings.Contains(text, part) }
