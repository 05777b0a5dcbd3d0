package e2e

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// races is how often a race is run: a few times, or as AGENT_CONTAINER_RACES says.
func races(t *testing.T) int {
	t.Helper()
	text := os.Getenv("AGENT_CONTAINER_RACES")
	if text == "" {
		return 5
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("AGENT_CONTAINER_RACES: %v", err)
	}
	return n
}

// restless gives the user an agent, and a service inside, that try to reach the
// witness from their first moment, and shows that they do where nothing is declared.
func (u *user) restless() {
	u.t.Helper()
	u.withStub()
	agent, err := os.ReadFile("testdata/egress/restless-agent.py")
	if err != nil {
		u.t.Fatal(err)
	}
	u.write("repo/images/agents/claude/bin/claude", "#!/usr/bin/python3\n"+string(agent))
	inside, err := os.ReadFile("testdata/egress/restless.py")
	if err != nil {
		u.t.Fatal(err)
	}
	u.witnessed(service("inside", string(inside)))
	u.must("up", u.name, "--egress", "off", "--env", "TOKEN=control")
	eventually(u.t, 20*time.Second, func() string {
		seen := u.arrived()
		if agent := "escaped from the agent control"; !contains(seen, agent) || !contains(strings.ReplaceAll(seen, agent, ""), "escaped from ") {
			return "without egress the witness has seen " + seen
		}
		return ""
	})
}

// tried waits until the agent has tried once more, and then whether anything of it
// or of the service inside has reached the witness.
func (u *user) tried(about string) {
	u.t.Helper()
	tries := func() int { return strings.Count(u.run("exec", u.name, "--", "cat", "/workspace/tried").stdout, "\n") }
	before := tries()
	eventually(u.t, 30*time.Second, func() string {
		if tries() <= before {
			return about + ": the agent does not try"
		}
		return ""
	})
	if seen := u.arrived(); contains(seen, "escaped from the agent behind") || contains(seen, "escaped from "+u.name) {
		u.t.Fatalf("%s: the witness has seen %s", about, seen)
	}
}

// Whoever restarts the gateway and the agent, in either order or at once, must not
// open a moment in which anything leaves (F06).
func TestRestartRaces(t *testing.T) {
	u := newUser(t)
	u.restless()
	u.must("redeploy", u.name, "--egress", "strict", "--egress-allow", "provider:agent", "--env", "TOKEN=behind")
	u.tried("deployed")
	restart := func(container string) result { return dockerTry(t, "restart", "--time", "0", container) }
	started := time.Now()
	for i := range races(t) {
		if i%2 == 1 { // at once; the agent may find no gateway
			var both sync.WaitGroup
			both.Go(func() { restart(u.gateway()) })
			both.Go(func() { restart(u.container()) })
			both.Wait()
		}
		for _, container := range []string{u.container(), u.gateway(), u.container()} { // either before the other
			if r := restart(container); r.code != 0 {
				t.Fatal(r)
			}
		}
		u.must("up", u.name)
		u.tried("round " + strconv.Itoa(i))
	}
	t.Logf("%d rounds took %s", races(t), time.Since(started).Round(time.Second))
}

// Nor must a deployment that comes and goes (F07).
func TestStartRaces(t *testing.T) {
	u := newUser(t)
	u.restless()
	u.must("down", u.name, "--yes")
	started := time.Now()
	for i := range races(t) {
		u.must("up", u.name, "--egress", "strict", "--egress-allow", "provider:agent", "--env", "TOKEN=behind")
		u.tried("round " + strconv.Itoa(i))
		u.must("down", u.name, "--yes")
	}
	t.Logf("%d rounds took %s", races(t), time.Since(started).Round(time.Second))
}
