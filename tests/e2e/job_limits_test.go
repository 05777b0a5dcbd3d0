package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// attempts are the ends of the deployment's runs, oldest first.
func (u *user) attempts() []string {
	var list []string
	for _, r := range u.records() {
		list = append([]string{fmt.Sprintf("%v %v %v %v", r["attempt"], r["outcome"], r["cause"], r["exit_code"])}, list...)
	}
	return list
}

// on-failure:3 must give four attempts, four records and four outputs, and one
// exit code, detached and in the foreground; the engine must never start the
// container again by itself.
func TestJobIsTriedAgain(t *testing.T) {
	u := newUser(t)
	u.withStub()
	const script = `echo "attempt $(ls /var/lib/agent-container/runs/*.json | wc -l)"; exit 7`
	want := "1 failed exit 7|2 failed exit 7|3 failed exit 7|4 failed exit 7"
	check := func() {
		t.Helper()
		if got := strings.Join(u.attempts(), "|"); got != want {
			t.Errorf("attempts are %s, want %s", got, want)
		}
		for i, r := range u.records() {
			out := u.must("runs", "show", r["id"].(string), "--output").stdout
			if !strings.HasPrefix(out, "attempt ") || contains(out, fmt.Sprintf("attempt %d\nattempt", 4-i)) || strings.Count(out, "\n") != 1 {
				t.Errorf("the output of attempt %d is %q", 4-i, out)
			}
		}
		if got := u.inspect("{{.RestartCount}} {{.State.ExitCode}} {{.HostConfig.RestartPolicy.Name}}"); got != "0 7 no" {
			t.Errorf("restarts, exit code and policy are %s", got)
		}
	}
	r := u.job(7, script, "--headless-restart", "on-failure:3", "--foreground")
	if strings.Count(r.stdout, "attempt ") != 4 {
		t.Errorf("the output of four attempts is %q", r.stdout)
	}
	check()
	u.must("wipe", u.name, "--yes")

	u.job(0, script, "--headless-restart", "on-failure:3")
	eventually(t, time.Minute, func() string {
		if state := u.inspect("{{.State.Status}}"); state != "exited" {
			return "the container is " + state
		}
		return ""
	})
	check()
	r = u.must("up", u.name)
	if !contains(r.stdout, "failed, exit code 7, attempt 4") {
		t.Errorf("up says %q", r.stdout)
	}
	u.want(7, "up", u.name, "--foreground")
	u.want(7, "redeploy", u.name, "--task", "again", "--foreground") // typed: kept
	if n := len(u.records()); n != 8 {
		t.Errorf("%d records after a redeploy that keeps the policy", n)
	}
	u.want(7, "redeploy", u.name, "--task", "again", "--foreground", "--headless-restart", "no")
	if n := len(u.records()); n != 9 {
		t.Errorf("%d records after a redeploy without", n)
	}
}

// Each way in which a job can end must have its own cause, and none but an
// agent's own failure be tried again.
func TestCauses(t *testing.T) {
	const use = `python3 -c 'x = bytearray(400 << 20); import time; time.sleep(60)'`
	for name, c := range map[string]struct {
		script  string
		flags   []string
		code    int
		outcome string
		cause   string
	}{
		"killed":          {"kill -KILL $$", nil, 137, "failed", "signal"},
		"memory":          {"exec " + use, []string{"--memory", "200m"}, 137, "failed", "oom"},
		"memory, a child": {use + "; exit 5", []string{"--memory", "200m"}, 5, "failed", "exit"},
		"timeout":         {"sleep 600", []string{"--timeout", "2s", "--headless-restart", "on-failure:3"}, 124, "failed", "timeout"},
		"idle":            {"echo x; sleep 600", []string{"--idle-timeout", "2s", "--headless-restart", "on-failure:3"}, 124, "failed", "timeout"},
		"deaf, and late":  {"trap '' TERM; while :; do sleep 0.2; done", []string{"--timeout", "2s"}, 124, "failed", "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			r := u.job(c.code, c.script, append(c.flags, "--foreground")...)
			if c.code == 124 && !contains(r.stderr, u.name+" was ended: ") {
				t.Errorf("it is not said why: %s", r)
			}
			if list := u.records(); len(list) != 1 {
				t.Fatalf("%d records, want one", len(list))
			}
			wantEnd(t, u.record(), c.outcome, c.cause, c.code)
			if u.record()["disagreement"] != nil {
				t.Errorf("the engine disagrees: %v", u.record())
			}
			if top := dockerTry(t, "top", u.container()); top.code == 0 {
				t.Errorf("processes are left: %s", top)
			}
		})
	}
}

// Limits that were typed must be the engine's, be kept by a redeploy, and be
// refused where they cannot count.
func TestTypedLimits(t *testing.T) {
	u := newUser(t)
	u.withStub()
	limits := func(want string) {
		t.Helper()
		if got := u.inspect("{{.HostConfig.Memory}} {{.HostConfig.MemorySwap}} {{.HostConfig.NanoCpus}} {{.HostConfig.PidsLimit}}"); got != want {
			t.Errorf("limits are %s, want %s", got, want)
		}
	}
	u.must("up", u.name, "--mode", "idle", "--memory", "300m", "--cpus", "0.5", "--pids", "99")
	limits("314572800 314572800 500000000 99")
	u.want(2, "up", u.name, "--memory", "400m")
	u.must("up", u.name, "--memory", "300m")
	u.write("config/settings.yaml", "limits: {memory: 1g, pids: 77}\n")
	u.must("redeploy", u.name)
	limits("314572800 314572800 500000000 99")
	u.must("redeploy", u.name, "--memory", "none", "--cpus", "none")
	limits("0 0 0 99")
	for _, args := range [][]string{
		{"--timeout", "5m"}, {"--idle-timeout", "5m"}, {"--headless-restart", "on-failure"}, {"--timeout", "5"}, {"--memory", "1"}, {"--memory", ""},
		{"--cpus", "-1"}, {"--pids", "none"}, {"--start-timeout", "none"}, {"--headless-restart", "always"},
	} {
		u.want(2, append([]string{"redeploy", u.name}, args...)...)
	}
	limits("0 0 0 99")
}

// What a job changed and wrote must be readable afterwards, found by path,
// outcome and time, and commits that were not pushed must be an alarm.
func TestWhatAJobLeft(t *testing.T) {
	u := newUser(t)
	u.withStub()
	const secret = "canary-0123456789"
	r := u.job(3, `git init -q -b main . && git init -q --bare ../home/agent/.claude/origin.git && git remote add origin "$HOME/.claude/origin.git"
		mkdir src; echo one >src/a; git add -A; git -c user.name=t -c user.email=t@example commit -qm first; echo two >b; echo "$MY_TOKEN" >c; echo "$MY_TOKEN"; printf 'raw \033[2J\n'; exit 3`,
		"--env", "MY_TOKEN="+secret, "--foreground")
	if !contains(r.stderr, "ALARM: 1 commits of "+u.name+" were not pushed when run ") {
		t.Errorf("no alarm: %s", r)
	}
	id := u.record()["id"].(string)
	diff := u.must("runs", "show", id, "--diff").stdout
	for part, want := range map[string]bool{"+one\n": true, "+two\n": true, "[masked]": true, secret: false} {
		if contains(diff, part) != want {
			t.Errorf("%q in the diff: %t, want %t\n%s", part, !want, want, diff)
		}
	}
	out := u.must("runs", "show", id, "--output").stdout
	if contains(out, secret) || contains(out, "\x1b") || !contains(out, "[masked]\nraw ") {
		t.Errorf("the output is %q", out)
	}
	for _, c := range []struct {
		flags []string
		found bool
	}{
		{[]string{"--changed", "src"}, true}, {[]string{"--changed", "src/"}, true}, {[]string{"--changed", "src/a"}, true}, {[]string{"--changed", "/workspace/b"}, true},
		{[]string{"--changed", "sr"}, false}, {[]string{"--outcome", "failed"}, true}, {[]string{"--outcome", "finished"}, false},
		{[]string{"--outcome", "finished", "--outcome", "failed"}, true}, {[]string{"--since", "10m"}, true}, {[]string{"--since", "2099-01-01"}, false}, {[]string{"--since", "0s"}, false},
	} {
		r := u.must(append([]string{"runs", "list", u.name}, c.flags...)...)
		if contains(r.stdout, id) != c.found || !contains(r.stderr, "ALARM") {
			t.Errorf("%q: found %t, want %t: %s", c.flags, !c.found, c.found, r)
		}
	}
	for _, flags := range [][]string{{"--outcome", "fine"}, {"--since", "yesterday"}, {"--changed", "../x"}, {"--changed", ""}} {
		u.want(2, append([]string{"runs", "list", u.name}, flags...)...)
	}
	u.want(2, "runs", "show", id, "--diff", "--output")
	if r := u.must("down", u.name, "--yes"); !contains(r.stderr, "ALARM") {
		t.Errorf("down says nothing of what is lost: %s", r)
	}
}
