package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What the tests about egress share: a witness, which is a service outside the
// gateway's namespace, on the deployment's own network. The verdict on every
// attempt is its log.

// witnessed gives the deployment a witness, and other services of content.
func (u *user) witnessed(content string) {
	u.t.Helper()
	script, err := os.ReadFile("testdata/egress/witness.py")
	if err != nil {
		u.t.Fatal(err)
	}
	u.services("services:\n" + service("witness", string(script)) + content)
	u.write("config/settings.yaml", "egress:\n  outside: [witness]\n")
}

// service is a service that runs a python script as root, healthy once it listens
// on port 8000.
func service(name, script string) string {
	entrypoint, err := json.Marshal([]string{"python3", "-u", "-c", strings.ReplaceAll(script, "$", "$$")})
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("  %s:\n    image: IMAGE\n    pull_policy: never\n    init: true\n    user: \"0\"\n    entrypoint: %s\n"+
		"    healthcheck:\n      test: [CMD, bash, -c, \"exec 3<>/dev/tcp/127.0.0.1/8000\"]\n      interval: 200ms\n      retries: 100\n", name, entrypoint)
}

func (u *user) gateway() string { return "agent-egress-" + u.name }

// witness is the address of the witness.
func (u *user) witness() string {
	u.t.Helper()
	return docker(u.t, "inspect", u.container()+".witness", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}")
}

// arrived is what has reached the witness.
func (u *user) arrived() string { return docker(u.t, "logs", u.container()+".witness") }

// arrives waits until text has reached the witness: its word comes by way of the
// engine's log.
func (u *user) arrives(text string) {
	u.t.Helper()
	eventually(u.t, patience, func() string {
		if seen := u.arrived(); !contains(seen, text) {
			return "the witness has not seen " + text + " but " + seen
		}
		return ""
	})
}

// everyWay tries to reach the witness from container as user in every way, and
// returns what came of each.
func (u *user) everyWay(container, as, token string) string {
	u.t.Helper()
	script, err := os.ReadFile("testdata/egress/attempts.py")
	if err != nil {
		u.t.Fatal(err)
	}
	return docker(u.t, "exec", "--user", as, container, "python3", "-c", string(script), u.witness(), token)
}

// Behind a gateway, no program of the agent's container nor of a service inside,
// whoever's it is, may get one byte to where nothing was declared. Without
// egress the same attempts must arrive, or they prove nothing.
func TestNothingLeavesUndeclared(t *testing.T) {
	u := newUser(t)
	u.withStub()
	inside := service("inside", "import socket,time\ns=socket.create_server(('127.0.0.1', 8000))\ntime.sleep(1e6)")
	u.witnessed(inside)
	places := []struct{ container, as string }{
		{u.container(), "1000"}, {u.container(), "0"}, {u.container() + ".inside", "0"}, {u.container() + ".inside", "1000"},
	}
	u.must("up", u.name, "--mode", "idle", "--egress", "off")
	for i, p := range places {
		token := fmt.Sprintf("control%d", i)
		got := u.everyWay(p.container, p.as, token)
		for _, way := range []string{`tcp 8000 b'` + token + ` tcp`, `tcp 443 b'` + token, `udp 8000 b'` + token, `udp 443 b'` + token, `udp 53 b'.*` + token} {
			eventually(t, commandTime, func() string {
				if seen := u.arrived(); !regexp.MustCompile(way).MatchString(seen) {
					return fmt.Sprintf("%v: without egress the witness has not seen %s but %q, of\n%s", p, way, seen, got)
				}
				return ""
			})
		}
	}
	u.must("redeploy", u.name, "--egress", "strict")
	for i, p := range places {
		token := fmt.Sprintf("undeclared%d", i)
		got := u.everyWay(p.container, p.as, token)
		if seen := u.arrived(); contains(seen, token) {
			t.Errorf("%v: the witness has seen %q, of\n%s", p, seen, got)
		}
		for _, line := range []string{"tcp with the mark Operation not permitted", "udp with the mark Operation not permitted", "raw Operation not permitted",
			"packet Operation not permitted", "vsock Operation not permitted", "nft Operation not permitted", "unshare Operation not permitted",
			"ip_forward Read-only file system", "answer 5\nanswer 5\ndns done"} {
			if !contains(got+"\n", line+"\n") {
				t.Errorf("%v: not %q in\n%s", p, line, got)
			}
		}
	}
	docker(t, "exec", u.gateway(), "/agent-container-guest", "gateway", "check") // its rules are still whole

	// Declared, the same host is reached, and the service inside by its name.
	u.must("redeploy", u.name, "--egress-allow", "service:witness:8000")
	r := u.must("exec", u.name, "--", "bash", "-c", `exec 3<>/dev/tcp/witness/8000; echo declared tcp >&3; cat <&3; exec 3<>/dev/tcp/inside/8000 && echo inside`)
	if r.stdout != "seen\ninside\n" {
		t.Errorf("what was declared: %s, seen %s", r, u.arrived())
	}
	u.arrives("declared tcp")
	u.run("exec", u.name, "--", "bash", "-c", "exec 3<>/dev/tcp/"+u.witness()+"/8000; echo by its address >&3; cat <&3")
	u.run("exec", u.name, "--", "bash", "-c", "exec 3<>/dev/tcp/witness/8080; echo at another port >&3; cat <&3")
	if seen := u.arrived(); contains(seen, "by its address") || contains(seen, "at another port") {
		t.Errorf("what is declared by name and port was reached otherwise: %s", seen)
	}
}

// The port of a session must be the gateway's while there is one and keep its
// number; what was there for the other way must be gone.
func TestEgressComesAndGoes(t *testing.T) {
	u := newUser(t)
	u.withStub()
	// A port outside the range of all others: between two containers the other tests'
	// deployments would be given it.
	u.write("config/settings.yaml", "ssh_ports: "+freePort(t)+"\n")
	port := func(r result) int {
		t.Helper()
		var e struct {
			Data struct{ SSH struct{ Port int } }
		}
		if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || e.Data.SSH.Port == 0 {
			t.Fatalf("no port: %v: %s", err, r)
		}
		return e.Data.SSH.Port
	}
	there := func(gateway bool) {
		t.Helper()
		want := u.container() + "\n"
		if gateway {
			want += u.gateway() + "\n"
		}
		if got := docker(t, "ps", "--all", "--filter", "label=agent-container.name="+u.name, "--format", "{{.Names}}") + "\n"; got != want {
			t.Errorf("the containers are %q, want %q", got, want)
		}
		network := docker(t, "network", "ls", "--quiet", "--filter", "label=agent-container.name="+u.name)
		if (network != "") != gateway {
			t.Errorf("its own network is %q", network)
		}
		if got := u.must("attach", u.name, "--", "hostname").stdout; gateway && strings.TrimSpace(got) != u.name {
			t.Errorf("attached to %q", got)
		}
	}
	first := port(u.must("up", u.name, "--json"))
	there(false)
	if got := port(u.must("redeploy", u.name, "--egress", "strict", "--egress-allow", "provider:agent", "--json")); got != first {
		t.Errorf("with a gateway the port is %d and was %d", got, first)
	}
	there(true)
	twin := "0123456789ab_" + u.gateway() // what a recreate of Compose leaves when it is killed
	docker(t, "rename", u.gateway(), twin)
	if r := u.must("up", u.name); !contains(r.stderr, "renaming "+twin+" to "+u.gateway()) {
		t.Errorf("up does not name it: %s", r)
	}
	there(true)
	u.must("stop", u.name)
	u.must("start", u.name)
	there(true)
	if got := port(u.must("redeploy", u.name, "--egress", "off", "--json")); got != first {
		t.Errorf("without a gateway the port is %d and was %d", got, first)
	}
	there(false)
	u.must("redeploy", u.name, "--egress", "strict", "--egress-allow", "provider:agent")
	u.must("down", u.name, "--purge", "--yes")
	if rest := docker(t, "ps", "--all", "--quiet", "--filter", "label=agent-container.name="+u.name) +
		docker(t, "network", "ls", "--quiet", "--filter", "label=agent-container.name="+u.name); rest != "" {
		t.Errorf("down leaves %s", rest)
	}
}

// A job whose gateway is lost must be ended within seconds with the code of a
// forced stop, not be tried again, and its record must say why.
func TestJobLosesItsGateway(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.job(0, `echo started; while :; do sleep 0.1; done`, "--egress-allow", "provider:agent", "--headless-restart", "on-failure:3")
	u.waitLog("started")
	killed := time.Now()
	docker(t, "kill", u.gateway())
	u.waitState("exited")
	if took := time.Since(killed); took > time.Minute {
		t.Errorf("it went on for %s", took)
	}
	if r := u.want(143, "up", u.name, "--foreground"); !contains(r.stderr, "gateway") {
		t.Errorf("nothing says why: %s", r)
	}
	records := u.records()
	if len(records) != 1 {
		t.Fatalf("records: %v", records)
	}
	wantEnd(t, records[0], "failed", "egress", 143)
	wantNote(t, records[0])
}

// A session must come back behind a proved gateway after the gateway was killed,
// or started again by hand; services inside must follow it. Nothing leaves
// meanwhile.
func TestSessionComesBackBehindItsGateway(t *testing.T) {
	u := newUser(t)
	u.withStub()
	script, err := os.ReadFile("testdata/egress/restless.py")
	if err != nil {
		t.Fatal(err)
	}
	u.witnessed(service("inside", string(script)))
	u.must("up", u.name, "--mode", "idle", "--egress", "off")
	eventually(t, 20*time.Second, func() string {
		if seen := u.arrived(); !contains(seen, "escaped from ") {
			return "without egress the witness has seen " + seen
		}
		return ""
	})
	u.must("redeploy", u.name, "--egress", "strict")
	behind := func() {
		t.Helper()
		if r := u.must("exec", u.name, "--", "bash", "-c", "exec 3<>/dev/tcp/inside/8000 && echo there"); r.stdout != "there\n" {
			t.Errorf("the service inside: %s", r)
		}
		docker(t, "exec", u.gateway(), "/agent-container-guest", "gateway", "check")
	}
	behind()
	docker(t, "restart", "--time", "1", u.gateway())
	behind() // before the guest has noticed
	docker(t, "kill", u.gateway())
	u.waitState("exited")
	behind()
	docker(t, "restart", "--time", "1", u.gateway())
	u.waitState("running")
	if r := u.must("up", u.name, "--json"); !contains(r.stdout, `"changed":true`) {
		t.Errorf("what was started again is told as running already: %s", r)
	}
	behind()
	docker(t, "rm", "--force", u.gateway())
	u.waitState("exited")
	for _, verb := range []string{"up", "start"} {
		if r := u.want(1, verb, u.name); !contains(r.stderr, "hint: make it anew: agent-container redeploy "+u.name) {
			t.Errorf("%s does not say what to do: %s", verb, r)
		}
	}
	u.must("redeploy", u.name)
	behind()
	if seen := u.arrived(); contains(seen, "escaped from "+u.name) {
		t.Errorf("the witness has seen %s", seen)
	}
}

// A service inside that writes to the resolv.conf of the namespace must not have
// the gateway ask a resolver of its choice, also not after the gateway alone was
// started again, and not after a start of ours.
func TestResolversAreNobodysToChoose(t *testing.T) {
	u := newUser(t)
	u.withStub()
	script, err := os.ReadFile("testdata/egress/resolver.py")
	if err != nil {
		t.Fatal(err)
	}
	u.witnessed(service("inside", string(script)))
	u.must("up", u.name, "--mode", "idle", "--egress-allow", "service:witness:8000")
	reached := func(when string) {
		t.Helper()
		eventually(t, commandTime, func() string {
			if r := dockerTry(t, "exec", u.container(), "cat", "/etc/resolv.conf"); r.code != 0 || contains(r.stdout, "127.0.0.11") {
				return when + " the file is not the service's: " + r.String()
			}
			return ""
		})
		if r := u.must("exec", u.name, "--", "bash", "-c", "exec 3<>/dev/tcp/witness/8000; echo "+when+" >&3; cat <&3"); r.stdout != "seen\n" {
			t.Errorf("%s: %s", when, r)
		}
	}
	reached("at first")
	began := u.inspect("{{.State.StartedAt}}")
	docker(t, "restart", "--time", "2", u.gateway())
	eventually(t, commandTime, func() string { // its guest ends it, the engine starts it behind the new gateway
		if u.inspect("{{.State.Running}} {{.State.StartedAt}}") == "true "+began || u.inspect("{{.State.Running}}") != "true" {
			return "the agent did not come back"
		}
		return ""
	})
	reached("after the gateway alone")
	u.must("stop", u.name)
	u.must("start", u.name)
	reached("after a start of ours")
}
