package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// withOwnStub is withStub with an image of this test alone: its last layer
// differs, which costs a second. See dropImage.
func (u *user) withOwnStub() {
	u.t.Helper()
	u.withStub()
	u.addLine("repo/entrypoint/entrypoint.sh", "# "+u.name)
}

// addLine adds a line to a file below the user's directory.
func (u *user) addLine(path, line string) {
	u.t.Helper()
	f, err := os.OpenFile(u.path(path), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		u.t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line); err != nil {
		u.t.Fatal(err)
	}
}

// dropImage removes an image that a test has built, after what uses it.
func (u *user) dropImage(image string) {
	u.t.Cleanup(func() {
		u.run("wipe", u.name, "--yes")
		u.run("wipe", u.name+"-b", "--yes") // see second
		if r := dockerTry(u.t, "rmi", image); r.code != 0 {
			u.t.Errorf("clean-up: %s", r)
		}
	})
}

// builds counts the builds in the trace that -v prints.
func builds(r result) int { return strings.Count(r.stderr, "+ docker buildx build ") }

// An image that is there must not be built again; its content names it, so a
// changed file is another image.
func TestImageIsBuiltOnce(t *testing.T) {
	u := newUser(t)
	u.withOwnStub()
	first := u.must("build", "--json", "-v")
	image := u.imageOf(first)
	u.dropImage(image)
	if n := builds(first); n != 1 {
		t.Errorf("the first build ran %d builds: %s", n, first)
	}
	second := u.must("build", "--json", "-v")
	if n := builds(second); n != 0 || contains(second.stderr, "docker pull") {
		t.Errorf("the second build ran %d builds: %s", n, second)
	}
	if again := u.imageOf(second); again != image {
		t.Errorf("the image went from %s to %s", image, again)
	}
	up := u.must("up", u.name, "--mode", "idle", "-v")
	if n := builds(up); n != 0 {
		t.Errorf("up ran %d builds", n)
	}
	if used := u.inspect("{{.Config.Image}}"); used != image {
		t.Errorf("up used %s", used)
	}

	u.addLine("repo/entrypoint/entrypoint.sh", "# changed")
	third := u.must("build", "--json")
	u.dropImage(u.imageOf(third))
	if u.imageOf(third) == image {
		t.Error("a changed file did not change the image's name")
	}
}

// imageOf checks the answer of build --json and returns its one image.
func (u *user) imageOf(r result) string {
	u.t.Helper()
	var e struct {
		Schema string
		OK     bool
		Data   struct {
			Images []struct {
				Agent, Image, ID string
				Bytes            int64
			}
		}
	}
	dec := json.NewDecoder(strings.NewReader(r.stdout))
	if err := dec.Decode(&e); err != nil || dec.More() || !e.OK || len(e.Data.Images) != 1 {
		u.t.Fatalf("not one envelope with one image: %v: %s", err, r)
	}
	i := e.Data.Images[0]
	if id := docker(u.t, "image", "inspect", "--format", "{{.Id}}", i.Image); id != i.ID || i.Agent != "claude" || i.Bytes < 1e6 {
		u.t.Errorf("the answer is %+v, the engine's id %s", i, id)
	}
	if !regexp.MustCompile(`^localhost/agent-container-claude:[0-9a-f]{16}$`).MatchString(i.Image) {
		u.t.Errorf("the image is called %s", i.Image)
	}
	return i.Image
}

// A failed build must exit 1, show its last twenty lines, name a log that holds
// them all, make nothing, and leave the image before it usable.
func TestFailedBuild(t *testing.T) {
	u := newUser(t)
	u.withOwnStub()
	good := u.imageOf(u.must("build", "--json"))
	u.dropImage(good)
	dockerfile := u.path("repo/images/Dockerfile")
	working, err := os.ReadFile(dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	u.addLine("repo/images/Dockerfile", "RUN i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo \"output $i of "+u.name+"\"; done; exit 7")
	for _, args := range [][]string{{"build"}, {"up", u.name, "--mode", "idle"}} {
		r := u.want(1, args...)
		shown := func(n int) bool { return contains(r.stderr, fmt.Sprintf("output %d of %s\n", n, u.name)) }
		if !shown(60) || shown(30) {
			t.Errorf("not the last lines are shown: %s", r)
		}
		if lines := regexp.MustCompile(`(?m)^  .*$`).FindAllString(r.stderr, -1); len(lines) != 20 {
			t.Errorf("%d lines are shown: %s", len(lines), r)
		}
		path := regexp.MustCompile(`(?m)^agent-container: hint: .*?(/\S+\.log)$`).FindStringSubmatch(r.stderr)
		if path == nil {
			t.Fatalf("no hint names the log: %s", r)
		}
		log, err := os.ReadFile(path[1])
		if err != nil || !contains(string(log), "output 1 of "+u.name) || !contains(string(log), "output 60 of "+u.name) {
			t.Errorf("the log %s is not whole: %v", path[1], err)
		}
	}
	if made := docker(t, "ps", "--all", "--quiet", "--filter", "name="+u.container()) + docker(t, "volume", "ls", "--quiet", "--filter", "name="+u.container()); made != "" {
		t.Errorf("a failed build made %s", made)
	}
	if err := os.WriteFile(dockerfile, working, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := u.must("up", u.name, "--mode", "idle", "-v"); builds(r) != 0 {
		t.Errorf("the image from before is not used: %s", r)
	}
	// A redeploy whose build fails must not touch what runs.
	before := u.inspect("{{.Id}} {{.State.StartedAt}} {{.State.Status}}")
	u.addLine("repo/images/Dockerfile", "RUN false "+u.name)
	u.want(1, "redeploy", u.name)
	if now := u.inspect("{{.Id}} {{.State.StartedAt}} {{.State.Status}}"); now != before {
		t.Errorf("the deployment went from %s to %s", before, now)
	}
}

// Two deployments that need the same image at once must build it once.
func TestTwoDeploysBuildOnce(t *testing.T) {
	u := newUser(t)
	u.withOwnStub()
	names := []string{u.name, u.second()}
	results := make([]result, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { results[i] = u.run("up", name, "--mode", "idle", "-v") })
	}
	wg.Wait()
	u.dropImage(u.inspect("{{.Config.Image}}"))
	total := 0
	for _, r := range results {
		if r.code != 0 {
			t.Fatal(r)
		}
		total += builds(r)
	}
	if total != 1 {
		t.Errorf("%d builds ran: %s\n%s", total, results[0], results[1])
	}
	if a, b := u.inspect("{{.Image}}"), docker(t, "inspect", "--format", "{{.Image}}", "agent-container-"+names[1]); a != b {
		t.Errorf("the images are %s and %s", a, b)
	}
}

// What cannot be a source of images must be refused with 2, and make nothing.
func TestImpossibleImageSourcesAreRefused(t *testing.T) {
	u := newUser(t)
	missing := u.path("missing.pem")
	for name, c := range map[string]struct {
		settings string
		env      []string
		says     string
	}{
		"no checkout":           {"", []string{"AGENT_CONTAINER_REPO=" + u.path("project")}, "AGENT_CONTAINER_REPO"},
		"no directory":          {"", []string{"AGENT_CONTAINER_REPO=" + u.path("nowhere")}, "AGENT_CONTAINER_REPO"},
		"a missing bundle":      {"ca_bundle: " + missing + "\n", nil, missing},
		"a bundle's directory":  {"ca_bundle: " + u.path("home") + "\n", nil, "not a regular file"},
		"a relative bundle":     {"ca_bundle: ca.pem\n", nil, "settings.yaml:1"},
		"auto with a dead path": {"", []string{"SSL_CERT_FILE=" + missing}, "SSL_CERT_FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			u.write("config/settings.yaml", c.settings+"\n")
			for _, args := range [][]string{{"build"}, {"up", u.name, "--mode", "idle"}} {
				r := u.runWith(nil, c.env, args...)
				if r.code != 2 || !contains(r.stderr, c.says) {
					t.Errorf("want exit 2 and %q: %s", c.says, r)
				}
			}
		})
	}
	if made := docker(t, "ps", "--all", "--quiet", "--filter", "name="+u.container()) + docker(t, "volume", "ls", "--quiet", "--filter", "name="+u.container()); made != "" {
		t.Errorf("something was made: %s", made)
	}
}

// Every golden file must be accepted by the engine's own Compose.
func TestComposeAcceptsGoldenFiles(t *testing.T) {
	files, err := filepath.Glob("../../compose/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no golden file: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			docker(t, "compose", "--file", file, "config", "--quiet")
		})
	}
}
