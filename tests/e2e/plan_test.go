package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostFiles are the files below the user's state and data directories with
// their contents.
func (u *user) hostFiles() string {
	u.t.Helper()
	var b strings.Builder
	for _, dir := range []string{"state", "data"} {
		err := filepath.WalkDir(u.path(dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				b.WriteString(p + "\n")
				return err
			}
			content, err := os.ReadFile(p)
			b.WriteString(p + "\n" + string(content) + "\n")
			return err
		})
		if err != nil {
			u.t.Fatal(err)
		}
	}
	return b.String()
}

// A plan must tell what a redeploy then does, on the real engine as elsewhere,
// and touch neither the deployment nor a file.
func TestPlanTellsAndTouchesNothing(t *testing.T) {
	u := newUser(t)
	u.withOwnStub()
	u.dropImage(u.built()[0])
	service := func(name, sleep string) string {
		return "  " + name + ":\n    image: IMAGE\n    pull_policy: never\n    init: true\n    entrypoint: [sleep, '" + sleep + "']\n"
	}
	u.services("services:\n" + service("stays", "600") + service("goes", "600"))
	u.write("config/"+u.name+".config/claude/settings.json", `{"a":1}`)
	env := u.write("env", "FILED=canary-one\n")
	u.must("up", u.name, "--env", "TYPED=canary-two", "--env-file", env)
	files, identity := u.hostFiles(), u.inspect("{{.Id}} {{.State.StartedAt}}")
	plan := func(want []string, args ...string) {
		t.Helper()
		r := u.must(append([]string{"plan", u.name}, args...)...)
		var got []string
		for line := range strings.Lines(r.stdout) {
			if change, ok := strings.CutPrefix(line, "  "); ok {
				got = append(got, strings.TrimSpace(change))
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || contains(r.stdout+r.stderr, "canary") || contains(r.stdout, "not compared") {
			t.Errorf("want\n%s\ngot %s", strings.Join(want, "\n"), r)
		}
		if now := u.hostFiles(); now != files {
			t.Errorf("%v changed files: %s, were %s", args, now, files)
		}
		if now := u.inspect("{{.Id}} {{.State.StartedAt}}"); now != identity {
			t.Errorf("%v changed the container: %s, was %s", args, now, identity)
		}
	}
	plan(nil)
	from := u.inspect("{{.Config.Image}}")
	u.services("services:\n" + service("stays", "601") + service("comes", "600"))
	u.write("config/"+u.name+".config/claude/settings.json", `{"a":2}`)
	u.write("env", "FILED=canary-three\n")
	u.write("home/.gitconfig", "[user]\n\tname = A B\n")
	u.addLine("repo/entrypoint/entrypoint.sh", "# "+u.name+" again")
	image := u.built()[0]
	u.dropImage(image)
	files = u.hostFiles() // the build's log
	services := " (" + u.path("config", u.name+".services.yaml") + ")"
	changes := []string{
		"mode: interactive -> idle (--mode)",
		"ssh port: " + u.sshPort() + " -> (none)",
		"image: " + from + " -> " + image + " (its base image, this program's image files, or both are other ones)",
		"environment FILED: changed (" + env + ")",
		"git name: (none) -> A B (your git configuration)",
		"config settings.json: changed (" + u.path("config", u.name+".config", "claude") + ")",
		"service comes: added" + services, "service goes: removed" + services, "service stays: entrypoint: changed" + services,
	}
	plan(changes, "--mode", "idle")
	u.must("redeploy", u.name, "--mode", "idle")
	files, identity = u.hostFiles(), u.inspect("{{.Id}} {{.State.StartedAt}}")
	plan(nil)
}
