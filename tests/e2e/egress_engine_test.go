package e2e

import (
	"os"
	"strings"
	"testing"
)

// After its engine was stopped, killed or lost with the machine, a deployment
// must come back behind a proved gateway, the services inside too; list must not
// call running what is not, and nothing may leave meanwhile.
func TestEngineRestartsGateways(t *testing.T) {
	engine := newPrivateEngine(t)
	u := newUser(t)
	u.withStub()
	script, err := os.ReadFile("testdata/egress/restless.py")
	if err != nil {
		t.Fatal(err)
	}
	u.witnessed(service("inside", string(script)))
	u.onlyPrivate(engine)
	arrived := func() string { return engine.docker("logs", u.container()+".witness") }

	u.must("up", u.name, "--mode", "idle", "--egress", "off")
	eventually(t, commandTime, func() string {
		if seen := arrived(); !contains(seen, "escaped from ") {
			return "without egress the witness has seen " + seen
		}
		return ""
	})
	u.must("redeploy", u.name, "--egress", "strict")
	for name, end := range map[string]func(){"stopped in order": engine.stop, "killed": engine.kill, "lost with the machine": engine.powerOff} {
		t.Logf("the engine is %s", name)
		end()
		engine.start()
		is := func() string { return engine.inspect(u.container(), "{{.State.Status}}") }
		before := is()
		said := u.listedAs(u.name)["state"]
		if after := is(); said == "running" && before != "running" && after != "running" {
			t.Errorf("list says %v of what is %s before and %s after", said, before, after)
		}
		u.must("up", u.name)
		if r := u.must("exec", u.name, "--", "bash", "-c", "exec 3<>/dev/tcp/inside/8000 && echo there"); r.stdout != "there\n" {
			t.Errorf("the service inside: %s", r)
		}
		engine.docker("exec", u.gateway(), "/agent-container-guest", "gateway", "check")
		if seen := arrived(); strings.Contains(seen, "escaped from "+u.name) {
			t.Errorf("the witness has seen %s", seen)
		}
	}
}
