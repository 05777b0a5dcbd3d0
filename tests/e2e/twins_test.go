package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What Compose leaves when a recreate is killed, a container under another's id
// and name, must be repaired by the next command and named; the container that
// has run, with its fill and records, is the one that stays.
func TestStaleTwins(t *testing.T) {
	u := newUser(t)
	u.withStub()
	twin := "0123456789ab_" + u.container()
	u.must("up", u.name, "--mode", "idle", "--env", "KEPT=as typed")
	id := u.inspect("{{.Id}}")
	for _, verb := range []string{"stop", "start", "up", "redeploy"} {
		// Killed before the new one got the name.
		docker(t, "rename", u.container(), twin)
		r := u.must(verb, u.name)
		if !contains(r.stderr, "renaming "+twin+" to "+u.container()) {
			t.Errorf("%s does not name it: %s", verb, r)
		}
		if now := u.inspect("{{.Id}}"); (now == id) != (verb != "redeploy") {
			t.Errorf("%s: the container is %s, was %s", verb, now, id)
		}
	}
	id = u.inspect("{{.Id}}")
	labels := docker(t, "inspect", "--format", `{{range $k, $v := .Config.Labels}}{{$k}}={{$v}}{{"\n"}}{{end}}`, u.container())
	leave := func() {
		args := []string{"create", "--name", twin}
		for _, l := range strings.Split(labels, "\n") {
			args = append(args, "--label", l)
		}
		docker(t, append(args, u.inspect("{{.Config.Image}}"))...)
	}
	for _, verb := range []string{"stop", "up", "redeploy"} {
		// Killed before the old one was removed.
		leave()
		r := u.must(verb, u.name)
		if !contains(r.stderr, "removing "+twin) || dockerTry(t, "inspect", twin).code == 0 {
			t.Errorf("%s does not remove and name it: %s", verb, r)
		}
		if now := u.inspect("{{.Id}}"); (now == id) != (verb != "redeploy") {
			t.Errorf("%s: the container is %s, was %s", verb, now, id)
		}
	}
	if filled, _ := u.file("/run/agent-container-secrets/environment"); !contains(filled, "KEPT=as typed\x00") {
		t.Errorf("the value that was typed is lost: %q", filled)
	}
	leave()
	u.must("down", u.name, "--purge", "--yes")
	u.nothingLeft(0)
}

// A container that the engine makes for a killed recreate after the next command
// has looked for it must be repaired too; one that is not ours must be left alone.
func TestLateTwin(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	for label, code := range map[string]int{"agent-container.name=" + u.name: 0, "somebody=else": 2} {
		twin := u.inspect("{{.Id}}")[:12] + "_" + u.container()
		// Without Compose's labels it is in Compose's way, as one that is not listed yet.
		path := u.withDocker(8, "up", "%s create --label "+label+" --label e2e="+u.name+" --name "+twin+" "+u.inspect("{{.Config.Image}}")+" >/dev/null")
		r := u.runWith(nil, []string{path}, "redeploy", u.name)
		if r.code != code || !contains(r.stderr, twin) {
			t.Errorf("with %s: want %d and its name: %s", label, code, r)
		}
		if left := dockerTry(t, "inspect", twin).code == 0; left != (code != 0) {
			t.Errorf("with %s: the twin is there: %v", label, left)
		}
		if code != 0 {
			docker(t, "rm", twin)
		}
		if err := os.Remove(u.path("done")); err != nil {
			t.Errorf("the engine was never asked to create: %v", err)
		}
		u.must("redeploy", u.name)
	}
	u.must("down", u.name, "--purge", "--yes")
	u.nothingLeft(0)
}

// A removal that the engine is at already must be waited for.
func TestRemovalUnderWay(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	path := u.withDocker(1, "rm", `echo "Error response from daemon: removal of container `+u.container()+` is already in progress" >&2; exit 1`)
	if r := u.runWith(nil, []string{path}, "down", u.name, "--purge", "--yes"); r.code != 0 {
		t.Error(r)
	}
	if _, err := os.Stat(u.path("done")); err != nil {
		t.Errorf("nothing was removed: %v", err)
	}
	u.nothingLeft(0)
}

// A Compose that goes on after its command was killed must be waited for, and not
// work against the next command: one that is deaf to TERM stands for it.
func TestOrphanedCompose(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle", "--env", "KEPT=as typed")
	deaf := []string{u.withDocker(8, "up", "trap '' TERM; sleep 3")}
	r := u.startWith(nil, deaf, nil, append([]string{"redeploy", u.name}, countedJob...)...)
	eventually(t, patience, func() string {
		if _, err := os.Stat(u.path("done")); err != nil {
			return "Compose was not started: " + r.errOut.String()
		}
		return ""
	})
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	again := u.must(append([]string{"redeploy", u.name}, countedJob...)...)
	if !contains(again.stderr, "waiting for what a killed command has started on "+u.name) {
		t.Errorf("it has not waited: %s", again)
	}
	u.ranOnce()
	if filled, _ := u.file("/run/agent-container-secrets/environment"); !contains(filled, "KEPT=as typed\x00") {
		t.Errorf("the value that was typed is lost: %q", filled)
	}
	u.must("down", u.name, "--purge", "--yes")
	u.nothingLeft(1)
}

// withDocker puts a script before the engine's command on PATH: at the first
// command of which the word at position at is word, it does what is said, in which
// %s is the real one.
func (u *user) withDocker(at int, word, do string) (path string) {
	u.t.Helper()
	docker, err := exec.LookPath("docker")
	if err != nil {
		u.t.Fatal(err)
	}
	shim := u.write("bin/docker", fmt.Sprintf("#!/bin/sh\nif [ \"$%d\" = %s ] && mkdir %q 2>/dev/null; then\n%s\nfi\nexec %q \"$@\"\n",
		at, word, u.path("done"), strings.ReplaceAll(do, "%s", docker), docker))
	if err := os.Chmod(shim, 0o700); err != nil {
		u.t.Fatal(err)
	}
	return "PATH=" + filepath.Dir(shim) + ":" + os.Getenv("PATH")
}
