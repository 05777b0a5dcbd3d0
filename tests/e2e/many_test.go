package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	// many is how many deployments are made at once.
	many = 50
	// soakCycles is how many are made and removed one after the other, as fast
	// as they go. With AGENT_CONTAINER_SOAK, a duration such as 5m, they come at
	// soakPace for so long instead.
	soakCycles = 12
	soakPace   = time.Minute / 24
)

// alone runs a test while no other one runs: those that are parallel wait for
// one that is not, and its part is parallel only to its siblings.
func alone(t *testing.T, test func(*user)) {
	t.Run("alone", func(t *testing.T) { test(newUser(t)) })
}

// left is what the engine has of deployments whose name begins with the user's.
func (u *user) left() []string {
	u.t.Helper()
	var found []string
	for _, kind := range [][]string{
		{"ps", "--all", "--filter", "label=agent-container.name", "--format"},
		{"volume", "ls", "--filter", "label=agent-container.name", "--format"},
		{"network", "ls", "--filter", "label=agent-container.name", "--format"},
	} {
		for _, name := range strings.Fields(docker(u.t, append(kind, `{{.Label "agent-container.name"}}`)...)) {
			if strings.HasPrefix(name, u.name) {
				found = append(found, kind[0]+" "+name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// tree is every file and directory below the user's state and data.
func (u *user) tree() []string {
	u.t.Helper()
	var found []string
	for _, top := range []string{"state", "data"} {
		err := filepath.WalkDir(u.path(top), func(path string, _ fs.DirEntry, err error) error {
			found = append(found, strings.TrimPrefix(path, u.dir+"/"))
			return err
		})
		if err != nil {
			u.t.Fatal(err)
		}
	}
	return found
}

// wipeAll wipes whatever is left of names that begin with the user's, and then
// removes the image that only they had. For a test's end, however it came.
func (u *user) wipeAll(image *string) {
	u.t.Cleanup(func() {
		wiped := map[string]bool{}
		for _, l := range u.left() {
			_, name, _ := strings.Cut(l, " ")
			if !wiped[name] {
				wiped[name] = true
				u.run("wipe", name, "--yes") // the check is below
			}
		}
		if rest := u.left(); len(rest) > 0 {
			u.t.Errorf("clean-up: %v", rest)
		}
		if *image == "" {
			return
		}
		if r := dockerTry(u.t, "rmi", *image); r.code != 0 {
			u.t.Errorf("clean-up: %s", r)
		}
	})
}

// each runs a command for all names, so many at once, and fails unless every one
// exits 0.
func (u *user) each(names []string, atOnce int, args func(name string) []string) []result {
	u.t.Helper()
	results, places := make([]result, len(names)), make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, name := range names {
		places <- struct{}{}
		wg.Go(func() {
			results[i] = u.run(args(name)...)
			<-places
		})
	}
	wg.Wait()
	failed := 0
	for _, r := range results {
		if r.code == 0 {
			continue
		}
		if failed++; failed <= 5 { // the others say the same
			u.t.Errorf("one of %d: %s", len(names), r)
		}
	}
	if failed > 0 {
		u.t.Fatalf("%d of %d failed", failed, len(names))
	}
	return results
}

// Many deployments made at once, of an image that is not there yet, must build
// it once and all run; wiped at once, they must leave nothing.
func TestManyAtOnce(t *testing.T) {
	alone(t, func(u *user) {
		t := u.t
		u.withOwnStub()
		var image string
		u.wipeAll(&image)
		names := make([]string, many)
		for i := range names {
			names[i] = fmt.Sprintf("%s-%d", u.name, i)
		}

		began := time.Now()
		total, said := 0, 0
		for _, r := range u.each(names, many, func(name string) []string { return []string{"up", name, "--mode", "idle", "-v"} }) {
			total += builds(r)
			said += strings.Count(r.stderr, "agent-container: building ")
		}
		t.Logf("%d up at once took %s", many, time.Since(began).Round(100*time.Millisecond))
		if total != 1 || said != 1 {
			t.Errorf("the image was built %d times, and said to be %d times", total, said)
		}
		inspect := []string{"inspect", "--format", "{{.State.Status}} {{.Config.Image}} {{.Image}}"}
		for _, name := range names {
			inspect = append(inspect, "agent-container-"+name)
		}
		states := strings.Split(docker(t, inspect...), "\n")
		distinct := slices.Compact(slices.Sorted(slices.Values(states)))
		if len(states) != many || len(distinct) != 1 || !strings.HasPrefix(distinct[0], "running ") {
			t.Errorf("%d containers are %v", len(states), distinct)
		}
		if fields := strings.Fields(states[0]); len(fields) == 3 {
			image = fields[1]
		}

		began = time.Now()
		u.each(names, 8, func(name string) []string { return []string{"wipe", name, "--yes"} })
		t.Logf("%d wipe, 8 at once, took %s", many, time.Since(began).Round(100*time.Millisecond))
		if rest := u.left(); len(rest) > 0 {
			t.Errorf("after wipe the engine has %v", rest)
		}
		if files := slices.DeleteFunc(u.tree(), func(file string) bool { return !contains(file, u.name) }); len(files) > 0 {
			t.Errorf("after wipe there are %v", files)
		}
	})
}

// Of two ups of one name at once one must win, and the other be told at once,
// with 6, which process holds the name and since when.
func TestTwoUpsOfOneName(t *testing.T) {
	u := newUser(t)
	u.withOwnStub()
	u.addLine("repo/images/Dockerfile", "RUN sleep 4") // for so long the winner holds the name
	var image string
	u.wipeAll(&image)
	before := time.Now().Add(-time.Second)
	ups := []*running{u.start("up", u.name, "--mode", "idle"), u.start("up", u.name, "--mode", "idle")}
	winner, loser := ups[0], ups[1]
	select {
	case <-loser.done:
	case <-winner.done:
		winner, loser = loser, winner
	case <-time.After(time.Minute):
		t.Fatal("neither ends")
	}
	told := loser.wait(time.Second)
	select {
	case <-winner.done:
		t.Errorf("the loser was told only when the other had ended: %s", told)
	default:
	}
	held := regexp.MustCompile(`pid (\d+) since (\S+)`).FindStringSubmatch(told.stderr)
	if told.code != 6 || held == nil {
		t.Fatalf("want exit 6 with pid and time: %s", told)
	}
	if held[1] != strconv.Itoa(winner.cmd.Process.Pid) {
		t.Errorf("process %d holds it: %s", winner.cmd.Process.Pid, told)
	}
	if since := moment(t, held[2]); since.Before(before) || since.After(time.Now()) {
		t.Errorf("held since %s, the test began at %s", since, before)
	}
	r := winner.wait(commandTime)
	if r.code != 0 {
		t.Fatal(r)
	}
	image = u.inspect("{{.Config.Image}}")
	if state := u.inspect("{{.State.Status}} {{.RestartCount}}"); state != "running 0" {
		t.Errorf("the winner's container is %s", state)
	}
	if r = u.must("up", u.name); !contains(r.stderr, "running already") {
		t.Errorf("the name is still held, or what runs was changed: %s", r)
	}
}

// engineFigures are what the engine's process holds open, and how many
// processes of containers it has.
type engineFigures struct{ descriptors, shims int }

// figuresOfEngine reads them; problem says why they cannot be compared.
func figuresOfEngine(t *testing.T) (f engineFigures, problem string) {
	t.Helper()
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		return f, "DOCKER_HOST is " + host
	}
	if others := docker(t, "ps", "--all", "--quiet"); others != "" {
		return f, "others have containers on this engine"
	}
	pid, err := os.ReadFile("/var/run/docker.pid")
	if err != nil {
		return f, err.Error()
	}
	open, err := os.ReadDir("/proc/" + strings.TrimSpace(string(pid)) + "/fd")
	if err != nil {
		return f, err.Error()
	}
	f.descriptors = len(open)
	processes, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, comm := range processes {
		// A process may be gone by now.
		if name, err := os.ReadFile(comm); err == nil && strings.HasPrefix(string(name), "containerd-shim") {
			f.shims++
		}
	}
	return f, ""
}

// settledFigures are the least of what the engine has within a second, in
// which ended connections are closed; for a moment without others' containers it
// has patience.
func settledFigures(t *testing.T, patience time.Duration) (least engineFigures, problem string) {
	t.Helper()
	began, found := time.Now(), 0
	for found < 10 && time.Since(began) < max(patience, 10*time.Second) {
		f, why := figuresOfEngine(t)
		if why != "" && patience == 0 {
			return f, why
		}
		if problem = why; why == "" {
			if found == 0 || f.descriptors < least.descriptors {
				least = f
			}
			found++
		}
		time.Sleep(100 * time.Millisecond)
	}
	if found > 0 {
		problem = ""
	}
	return least, problem
}

// Deployments made and removed time after time must leave no container, volume,
// network, file, process or descriptor, and build no image again.
func TestSoak(t *testing.T) {
	alone(t, func(u *user) {
		t := u.t
		u.withStub()
		var none string
		u.wipeAll(&none)
		cycles, pace, patience := soakCycles, time.Duration(0), time.Duration(0)
		if text := os.Getenv("AGENT_CONTAINER_SOAK"); text != "" {
			length, err := time.ParseDuration(text)
			if err != nil || length < soakPace {
				t.Fatalf("AGENT_CONTAINER_SOAK is %q, not a duration of %s or more", text, soakPace)
			}
			cycles, pace, patience = int(length/soakPace), soakPace, 2*time.Minute
		}
		var mu sync.Mutex
		var took []time.Duration
		cycle := func(name string, first bool) {
			began := time.Now()
			up := u.run("up", name, "--mode", "idle", "-v")
			if up.code != 0 || !first && builds(up) != 0 {
				t.Errorf("want exit 0 and no build: %s", up)
			}
			if down := u.run("down", name, "--purge", "--yes"); down.code != 0 {
				t.Error(down)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
		}
		// Two at a time, or a cycle that takes longer than the pace would slow it.
		names := []string{u.name + "-a", u.name + "-b"}
		for _, name := range names { // what is made once
			cycle(name, true)
		}
		took = nil
		before, why := settledFigures(t, patience)
		files := u.tree()

		began := time.Now()
		next := make(chan struct{})
		var wg sync.WaitGroup
		for _, name := range names {
			wg.Go(func() {
				for range next {
					cycle(name, false)
				}
			})
		}
		for i := range cycles {
			if wait := time.Until(began.Add(time.Duration(i) * pace)); wait > 0 {
				<-time.After(wait) // the pace
			}
			next <- struct{}{}
		}
		close(next)
		wg.Wait()
		slices.Sort(took)
		t.Logf("%d times up and down in %s, each in %s to %s, half of them within %s", cycles, time.Since(began).Round(time.Second),
			took[0].Round(10*time.Millisecond), took[len(took)-1].Round(10*time.Millisecond), took[len(took)/2].Round(10*time.Millisecond))

		if rest := u.left(); len(rest) > 0 {
			t.Errorf("the engine has %v", rest)
		}
		if diff := cmp.Diff(files, u.tree()); diff != "" {
			t.Errorf("files: %s", diff)
		}
		if why != "" {
			t.Logf("the engine's descriptors were not compared: %s", why)
			return
		}
		var after engineFigures
		fits := func() bool { // less than one a cycle; a few come and go
			return after.descriptors <= before.descriptors+min(cycles/2, 10) && after.shims <= before.shims
		}
		// A container's process ends a while after its container is gone; what
		// leaks stays.
		for deadline := time.Now().Add(30 * time.Second); ; {
			if after, why = settledFigures(t, patience); why != "" {
				t.Logf("the engine's descriptors were not compared: %s", why)
				return
			}
			if fits() || time.Now().After(deadline) {
				break
			}
		}
		t.Logf("the engine: %+v before, %+v after", before, after)
		if !fits() {
			t.Errorf("the engine went from %+v to %+v", before, after)
		}
	})
}
