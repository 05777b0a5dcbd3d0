package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Mounted host directories must be readable and not writable, whatever they are
// called, be kept by a redeploy, replaced when others are typed, and dropped.
func TestMounts(t *testing.T) {
	u := newUser(t)
	u.withStub()
	odd, lib := u.openDirectory(`odd, "name": $x`), u.openDirectory("lib")
	for _, dir := range []string{odd, lib} {
		if err := os.WriteFile(dir+"/file", []byte("of "+filepath.Base(dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	u.must("up", u.name, "--mode", "idle", "--mount", odd+":/mnt/odd", "--mount", lib)
	sees := func(path, want string) {
		t.Helper()
		if r := u.run("exec", u.name, "--", "cat", path); r.stdout != want {
			t.Errorf("%s is not %q: %s", path, want, r)
		}
		if r := u.run("exec", u.name, "--", "sh", "-c", "echo x >'"+path+"'"); want != "" && !contains(r.stderr, "Read-only file system") {
			t.Errorf("%s can be written: %s", path, r)
		}
	}
	sees("/mnt/odd/file", "of "+filepath.Base(odd))
	sees("/mnt/lib/file", "of lib")
	u.must("exec", u.name, "--", "touch", "/workspace/file")
	if left := docker(t, "ps", "--all", "--quiet", "--filter", "label=agent-container.name="+u.name); len(left) != 12 {
		t.Errorf("not one container is left: %s", left)
	}
	u.must("redeploy", u.name)
	sees("/mnt/odd/file", "of "+filepath.Base(odd))
	u.must("redeploy", u.name, "--mount", lib+":/opt/lib")
	sees("/opt/lib/file", "of lib")
	sees("/mnt/odd/file", "")
	if one := u.must("list", u.name).stdout; !contains(one, "\nmount: /opt/lib is the bind "+lib+", read-only\n") {
		t.Errorf("list says: %s", one)
	}

	// What is gone is refused while the old one runs.
	before := u.identity()
	if err := os.Rename(lib, lib+"-gone"); err != nil {
		t.Fatal(err)
	}
	if r := u.want(2, "redeploy", u.name); !contains(r.stderr, "--mount: ") || u.identity() != before {
		t.Error(r)
	}
	u.must("redeploy", u.name, "--mount", "none")
	sees("/opt/lib/file", "")
}

// A directory that is here, and that the engine does not see although it is
// reached by a socket, must be told plainly, before anything is made or stopped.
func TestDirectoryThatTheEngineDoesNotSee(t *testing.T) {
	if os.Getuid() != 0 || exec.Command("unshare", "--mount", "true").Run() != nil {
		t.Skip("skipped: a mount of one's own takes root")
	}
	u := newUser(t)
	u.withStub()
	u.built()
	hidden := u.openDirectory("hidden")
	unseen := func(args ...string) result {
		t.Helper()
		argv := append([]string{"--mount", "sh", "-ec", `mount -t tmpfs tmpfs "$1"; mkdir "$1/dir"; shift; exec "$@"`, "sh", hidden, program}, args...)
		cmd := exec.Command("unshare", argv...)
		cmd.Dir = u.path("project")
		cmd.Env = append(outerEnvironment(), u.env...)
		return finish(t, cmd)
	}
	for _, flags := range [][]string{{"--mount", hidden + "/dir"}, {"--workspace", "bind", "--workspace-dir", hidden + "/dir"}} {
		r := unseen(append([]string{"up", u.name, "--mode", "idle"}, flags...)...)
		if r.code != 2 || !contains(r.stderr, "the engine does not see "+hidden+"/dir, which is a directory here") {
			t.Error(r)
		}
		u.nothingOnEngine()
		if _, err := os.Stat(u.path("state", "local", u.name)); err == nil {
			t.Error("its state directory is left")
		}
	}
	u.must("up", u.name, "--mode", "idle")
	before := u.identity()
	if r := unseen("redeploy", u.name, "--mount", hidden+"/dir"); r.code != 2 || u.identity() != before || u.inspect("{{.State.Status}}") != "running" {
		t.Errorf("it was %s and is %s: %s", before, u.identity(), r)
	}
}

// down --purge and wipe must work where there never was a workspace volume, and
// leave a host's directory as it is.
func TestPurgeWithoutAWorkspaceVolume(t *testing.T) {
	for _, workspace := range []string{"ephemeral", "bind"} {
		t.Run(workspace, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			flags := []string{"--mode", "idle", "--workspace", workspace}
			file := u.openDirectory("input") + "/file"
			if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
				t.Fatal(err)
			}
			if workspace == "bind" {
				flags = append(flags, "--workspace-dir", u.path("input"))
			}
			for _, end := range [][]string{{"down", "--purge"}, {"wipe"}} {
				u.must(append([]string{"up", u.name}, flags...)...)
				if r := dockerTry(t, "volume", "inspect", u.container()+"-workspace"); r.code == 0 {
					t.Fatal("there is a workspace volume")
				}
				u.must(append(end, u.name, "--yes")...)
				u.nothingOnEngine()
				if got, err := os.ReadFile(file); err != nil || string(got) != "mine" {
					t.Errorf("the host's file holds %q, %v", got, err)
				}
			}
		})
	}
}
