package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// disk is a small file system of its own that a test can fill.
type disk struct {
	t   *testing.T
	dir string
}

// disk mounts a file system of four megabytes at a directory of the user's.
func (u *user) disk(name string) *disk {
	u.t.Helper()
	if os.Geteuid() != 0 {
		u.t.Skip("mounting a small disk takes root")
	}
	dir, image := u.path(name), u.path(name+".disk")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 4<<20)); err != nil {
		u.t.Fatal(err)
	}
	// Without a journal what was freed can be used at once.
	made, err := exec.Command("mkfs.ext4", "-q", "-F", "-b", "1024", "-m", "0", "-O", "^has_journal", image).CombinedOutput()
	if err == nil {
		made, err = exec.Command("mount", "-o", "loop", image, dir).CombinedOutput()
	}
	if err != nil {
		u.t.Logf("no loop mount, a tmpfs instead: %v: %s", err, made)
		made, err = exec.Command("mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs", dir).CombinedOutput()
	}
	if err != nil {
		u.t.Skipf("nothing can be mounted here: %v: %s", err, made)
	}
	u.t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			u.t.Errorf("clean-up: umount %s: %v: %s", dir, err, out)
		}
	})
	return &disk{u.t, dir}
}

func (d *disk) ballast() string { return filepath.Join(d.dir, "ballast") }

// fill leaves no room for a single block.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{64 << 10, 512} {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
			err = errors.Join(err, f.Sync())
		}
		if !errors.Is(err, syscall.ENOSPC) {
			d.t.Fatal(err)
		}
	}
	// A large file may need two blocks to grow where a small one needs one; and
	// what was removed just before gives its room back only later.
	for i := range 1000 {
		err := os.WriteFile(fmt.Sprintf("%s-%d", d.ballast(), i), make([]byte, 1024), 0o600)
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
	d.t.Fatal("there is still room")
}

// free makes room again.
func (d *disk) free() {
	d.t.Helper()
	all, err := filepath.Glob(d.ballast() + "*")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, path := range all {
		if err := os.Remove(path); err != nil {
			d.t.Fatal(err)
		}
	}
}

// files are the contents of everything on the disk but the ballast and locks,
// whose text nothing depends on.
func (d *disk) files() map[string]string {
	d.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(d.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || strings.HasPrefix(path, d.ballast()) || e.Name() == "lock" || strings.HasPrefix(e.Name(), "image-") {
			return err
		}
		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, d.dir)] = string(content)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return files
}

// untouched returns a check that every file is as it is now, and that there is
// none more.
func (d *disk) untouched() func() {
	d.t.Helper()
	before := d.files()
	return func() {
		d.t.Helper()
		now := d.files()
		for path, content := range before {
			if now[path] != content {
				d.t.Errorf("%s was %q and is %q", path, content, now[path])
			}
		}
		for path := range now {
			if _, known := before[path]; !known {
				d.t.Errorf("%s was left behind", path)
			}
		}
	}
}

// wantFull checks that a command has said that the disk is full, below path.
func (d *disk) wantFull(r result) {
	d.t.Helper()
	if !contains(r.stderr, "agent-container: error: disk full at "+d.dir) || !contains(r.stderr, "hint: free some of it (df -h "+d.dir) {
		d.t.Errorf("it does not say that the disk at %s is full: %s", d.dir, r)
	}
}

// Without room for the state directory, a deploy must fail before it changes
// anything, an agent must still be stopped and started, and the same commands
// must work as soon as there is room.
func TestDiskFullOfState(t *testing.T) {
	u := newUser(t)
	u.withStub()
	state := u.disk("state")
	u.must("up", u.name, "--mode", "idle")
	other := u.second()
	// A lock that has a block already could be written without room.
	if err := os.Truncate(u.path("state", "local", u.name, "lock"), 0); err != nil {
		t.Fatal(err)
	}
	untouched, unchanged := state.untouched(), u.unchanged()
	state.fill()
	redeploy := []string{"redeploy", u.name, "--env", "ADDED=1"}
	state.wantFull(u.want(1, redeploy...))
	unchanged()
	untouched()
	up := []string{"up", other, "--mode", "idle"}
	state.wantFull(u.want(1, up...))
	if r := u.want(1, append(up, "--json")...); !contains(r.stdout, `"ok":false,"error":{"code":"failed","message":"disk full at `+state.dir) {
		t.Errorf("with --json: %s", r)
	}
	untouched()
	if made := docker(t, "ps", "--all", "--quiet", "--filter", "label=agent-container.name="+other) + docker(t, "volume", "ls", "--quiet", "--filter", "label=agent-container.name="+other); made != "" {
		t.Errorf("a deploy that failed made %s", made)
	}
	u.must("list")
	u.must("stop", u.name)
	u.must("start", u.name)
	untouched()

	state.free()
	u.must(redeploy...)
	if r := u.must("exec", u.name, "--", "sh", "-c", "echo $ADDED"); r.stdout != "1\n" {
		t.Errorf("after the redeploy: %s", r)
	}
	u.must(up...)
}

// Without room for run records, none that is there may be harmed, no container
// may be removed whose record is not safe, a job in the foreground must end with
// 125 instead of its own code, and all records must come in when there is room.
func TestDiskFullOfRecords(t *testing.T) {
	u := newUser(t)
	u.withStub()
	data := u.disk("data")
	u.job(0, "exit 0", "--foreground")
	u.again(0, untilGo)
	u.waitLog("started")
	records := len(u.records())
	data.fill()
	untouched := data.untouched()
	u.goOn()
	u.waitState("exited")
	container := u.identity()
	for _, args := range [][]string{{"runs", "list", u.name}, {"up", u.name}, {"stop", u.name}, {"redeploy", u.name, "--task", "more"}, {"down", u.name, "--yes"}, {"down", u.name, "--purge", "--yes"}} {
		data.wantFull(u.want(1, args...))
		untouched()
	}
	if now := u.identity(); now != container {
		t.Errorf("the container was %s and is %s", container, now)
	}
	// Over all deployments, one whose record cannot come in is a warning.
	if r := u.must("runs", "list"); !contains(r.stderr, "warning: ") || !contains(r.stderr, data.dir) || strings.Count(r.stdout, u.name) != records {
		t.Errorf("runs list: %s", r)
	}
	data.free()
	u.must("runs", "list", u.name)
	wantEnd(t, u.record(), "finished", "exit", 0)
	if now := len(u.records()); now != records {
		t.Errorf("there are %d records, not %d", now, records)
	}

	follow := u.start("redeploy", u.name, "--task", "do it", "--env", "STUB_RUN="+untilGo+"; exit 3", "--foreground")
	follow.said("started")
	data.fill()
	untouched = data.untouched()
	u.goOn()
	r := follow.wait(time.Minute)
	data.wantFull(r)
	if r.code != 125 {
		t.Errorf("want exit code 125: %s", r)
	}
	untouched()
	data.free()
	u.want(3, "up", u.name, "--foreground")
	wantEnd(t, u.record(), "failed", "exit", 3)
	u.must("down", u.name, "--purge", "--yes")
	if now := len(u.records()); now != records+1 {
		t.Errorf("there are %d records, not %d", now, records+1)
	}
}

// Without room for the log of a build, the build must fail saying so, leave the
// images that are there, and succeed when there is room.
func TestDiskFullOfBuildLog(t *testing.T) {
	u := newUser(t)
	u.withOwnStub()
	state := u.disk("state")
	good := u.imageOf(u.must("build", "--json"))
	u.dropImage(good)
	log := u.path("state", "local", ".builds", "claude.log")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	u.addLine("repo/images/Dockerfile", "RUN i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo \"output $i of "+u.name+"\"; done")
	state.fill()
	r := u.want(1, "build")
	state.wantFull(r)
	if !contains(r.stderr, "disk full at "+log+":") {
		t.Errorf("the log is not named: %s", r)
	}
	docker(t, "image", "inspect", good)
	state.free()
	u.dropImage(u.imageOf(u.must("build", "--json")))
	if content, err := os.ReadFile(log); err != nil || !contains(string(content), "output 200 of "+u.name) {
		t.Errorf("the log is not whole: %v", err)
	}
}
