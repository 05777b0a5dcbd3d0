package e2e

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
)

// elsewhere runs the program in a directory that belongs to no project.
func (u *user) elsewhere(args ...string) result {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = u.path("home")
	cmd.Env = append(outerEnvironment(), u.env...)
	return finish(u.t, cmd)
}

// A redeploy must never let out more than before unless that is typed: not from
// another directory, not with settings that nobody can read, not with a wider
// list. A narrower one narrows. The verdict is the witness's.
func TestRedeployIsNeverWider(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.witnessed("")
	settings := func(allow string) {
		u.write("config/settings.yaml", "egress:\n  outside: [witness]\n  allow: "+allow+"\n")
	}
	reached := func(about string, want bool) {
		t.Helper()
		docker(t, "exec", u.gateway(), "/agent-container-guest", "gateway", "check")
		u.run("exec", u.name, "--", "timeout", "60", "bash", "-c", "exec 3<>/dev/tcp/witness/8000; echo '"+about+"' >&3; cat <&3")
		if want {
			u.arrives(about)
		} else if seen := u.arrived(); contains(seen, about) {
			t.Errorf("%s: the witness was reached: %s", about, seen)
		}
	}
	both, one := `[provider:agent, "service:witness:8000"]`, "[provider:agent]"
	noted := func(about string, r result) {
		t.Helper()
		if r.code != 0 || !contains(r.stderr, "NOTE: settings would let "+u.name+" out to service:witness:8000 too") || !contains(r.stderr, "agent-container redeploy "+u.name+" --egress strict") {
			t.Errorf("%s: %s", about, r)
		}
		reached(about, false)
	}

	settings(both)
	u.write("project/.agent-container/settings.yaml", "egress:\n  allow: "+one+"\n")
	u.must("up", u.name, "--mode", "idle")
	reached("within a project", false)
	noted("from another directory", u.elsewhere("redeploy", u.name))
	if r := u.elsewhere("redeploy", u.name, "--egress", "strict"); r.code != 0 {
		t.Fatal(r)
	}
	reached("typed", true)

	same := u.unchanged()
	u.write("config/settings.yaml", "egress: {allow: [\n")
	for _, verb := range [][]string{{"redeploy", u.name}, {"redeploy", u.name, "--egress", "strict"}, {"plan", u.name}} {
		if r := u.elsewhere(verb...); r.code != 2 || !contains(r.stderr, "settings.yaml") {
			t.Errorf("settings that are no YAML: %s", r)
		}
	}
	if err := os.Remove(u.path("config/settings.yaml")); err != nil {
		t.Fatal(err)
	}
	u.write("config/settings.yaml/x", "") // nobody can read it, not even root
	if r := u.elsewhere("redeploy", u.name); r.code != 2 && r.code != 1 || !contains(r.stderr, "settings.yaml") {
		t.Errorf("settings that cannot be read: %s", r)
	}
	same()
	if err := os.RemoveAll(u.path("config/settings.yaml")); err != nil {
		t.Fatal(err)
	}

	settings(one)
	if r := u.elsewhere("redeploy", u.name); r.code != 0 || !contains(r.stderr, "egress.allow: service:witness:8000 -> (none)") {
		t.Errorf("a narrower list: %s", r)
	}
	reached("narrower", false)
	settings(both)
	noted("wider", u.elsewhere("redeploy", u.name))
}

// Advisory must let through what strict refuses, and record it as advised.
func TestAdvisoryRecords(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.witnessed("")
	// The engine gives the witness another address at each start.
	script := `until [ -e /workspace/$TOKEN ]; do sleep 0.1; done; exec bash -c 'exec 3<>/dev/tcp/$(cat /workspace/$TOKEN)/8000 && echo $TOKEN >&3; read -t 60 -u 3 answer; [ "$answer" = seen ]'`
	ended := func(token string) (address string, refused refusals) {
		t.Helper()
		address = u.witness()
		u.must("exec", u.name, "--", "sh", "-c", "echo "+address+" >/workspace/new && mv /workspace/new /workspace/"+token)
		u.waitState("exited")
		return address, refusedIn(t, u.record())
	}
	u.job(0, script, "--egress", "strict", "--egress-allow", "provider:agent", "--env", "TOKEN=under-strict")
	if address, r := ended("under-strict"); !r.Watched || !slices.Equal(r.Refusals, []refusal{{Address: address, Stage: "address", Port: 8000, Count: 1}}) {
		t.Errorf("strict: %+v", r)
	}
	wantEnd(t, u.record(), "failed", "exit", 1)
	u.again(0, script, "--egress", "advisory", "--env", "TOKEN=under-advisory")
	address, r := ended("under-advisory")
	if !r.Watched || r.Enforcement != "advisory" || !slices.Equal(r.Refusals, []refusal{{Address: address, Stage: "address", Port: 8000, Count: 1, Advised: true}}) {
		t.Errorf("advisory: %+v", r)
	}
	record := u.record()
	wantEnd(t, record, "finished", "exit", 0)
	u.arrives("under-advisory")
	if seen := u.arrived(); contains(seen, "under-strict") {
		t.Errorf("the witness has seen %s", seen)
	}
	if got := u.must("egress", "denied", u.name, "--run", record["id"].(string)).stdout; !contains(got, "address (advised)") {
		t.Errorf("denied: %s", got)
	}
}

// A variable that names a proxy, and a service that asks something of the network
// that it would share, must be refused while nothing has been made.
func TestEgressRefusesBeforeAnythingIsMade(t *testing.T) {
	u := newUser(t)
	u.withStub()
	for _, variable := range []string{"HTTPS_PROXY=http://proxy:3128", "no_proxy=*", "ALL_PROXY="} {
		r := u.want(2, "up", u.name, "--mode", "idle", "--egress", "strict", "--env", variable)
		if !contains(r.stderr, "with a proxy that would be the proxy's") || contains(r.stdout+r.stderr, "3128") {
			t.Errorf("%s: %s", variable, r)
		}
		u.nothingLeft(0)
	}
	for field, problem := range map[string]string{
		"hostname: other":                       "has a hostname",
		"sysctls: {net.ipv4.ip_forward: \"1\"}": "sets sysctl net.ipv4.ip_forward",
		"environment: {HTTP_PROXY: x}":          "has the variable HTTP_PROXY",
	} {
		u.services("services:\n  inside:\n    image: IMAGE\n    pull_policy: never\n    " + field + "\n")
		r := u.want(2, "up", u.name, "--mode", "idle", "--egress", "strict")
		if !contains(r.stderr, `service "inside" `+problem) {
			t.Errorf("%s: %s", field, r)
		}
		wantHint(t, r, "egress.outside")
		u.nothingLeft(0)
	}
}
