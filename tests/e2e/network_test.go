package e2e

import (
	"testing"
	"time"
)

// Two deployments must not reach each other over the bridge that they share,
// by address or by name. The verdict is the listener's.
func TestDeploymentsDoNotReachEachOther(t *testing.T) {
	u := newUser(t)
	u.withStub()
	other := u.second()
	u.must("up", u.name, "--mode", "idle")
	u.must("up", other, "--mode", "idle")
	for _, c := range []string{u.container(), "agent-container-" + other} {
		if got := docker(t, "inspect", c, "--format", `{{range $k, $v := .NetworkSettings.Networks}}{{$k}} {{end}}`); got != "agent-container" {
			t.Fatalf("%s is in the networks %s", c, got)
		}
	}
	address := u.inspect(`{{(index .NetworkSettings.Networks "agent-container").IPAddress}}`)

	docker(t, "exec", "--detach", u.container(), "sh", "-c", "exec python3 -u -m http.server 8000 >/tmp/log 2>&1")
	curl := func(name, host, path string) result {
		return u.run("exec", name, "--", "curl", "-sS", "--noproxy", "*", "--max-time", "2", "http://"+host+":8000/"+path)
	}
	eventually(t, 10*time.Second, func() string {
		if r := curl(u.name, address, "from-itself"); r.code != 0 {
			return r.String()
		}
		return ""
	})
	started := time.Now()
	for _, host := range []string{address, u.name, u.container()} {
		if r := curl(other, host, "from-the-other"); r.code == 0 {
			t.Errorf("%s was reached: %s", host, r)
		}
	}
	if took := time.Since(started); took > time.Minute {
		t.Errorf("being refused took %s", took)
	}
	log := u.must("exec", u.name, "--", "cat", "/tmp/log").stdout
	if !contains(log, "from-itself") {
		t.Errorf("the listener has not even seen itself: %q", log)
	}
	if contains(log, "from-the-other") {
		t.Errorf("the listener was reached: %q", log)
	}
}

// second is the name of another deployment of the user, wiped at the end.
func (u *user) second() string {
	u.t.Helper()
	name := u.name + "-b"
	u.t.Cleanup(func() { u.wiped(name) })
	return name
}
