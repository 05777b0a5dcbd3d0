package e2e

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"
)

// attach must be on the same screen again after its client was killed, in either
// of its processes, and say so when the session is gone, whatever else runs there.
func TestAttach(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	first := u.sit(132, 43, nil, "attach", u.name, "-w", "shell")
	modes, err := term.GetState(int(first.keyboard.Fd())) // ssh will change them
	if err != nil {
		t.Fatal(err)
	}
	first.types("echo the shell $((40+2)) speaks\r")
	first.shows("the shell 42 speaks")
	pane := u.display("=main:shell", "#{pane_pid}")
	kill(t, childOf(t, first.cmd.Process.Pid, "ssh"))
	if r := first.wait(20 * time.Second); r.code != 1 || !contains(r.stdout, "ended by signal 9; the session goes on") || !contains(r.stdout, "\x1b[?1049l\x1b[?25h") {
		t.Errorf("after its ssh was killed: %s", r)
	}
	if now, err := term.GetState(int(first.keyboard.Fd())); err != nil || !reflect.DeepEqual(now, modes) {
		t.Errorf("the terminal is not as it was: %v", err)
	}
	// From a shell, which keeps the terminal.
	second := u.sitAt(132, 43, nil, exec.Command("sh", "-c", `"$0" "$@"; echo "exit $?"; read -r _`, program, "attach", u.name, "-w", "shell"))
	second.shows("the shell 42 speaks")
	kill(t, childOf(t, second.cmd.Process.Pid, "agent-container"))
	second.shows("exit 137")
	eventually(t, 10*time.Second, func() string {
		if clients := docker(t, "exec", u.container(), "tmux", "list-clients"); clients != "" {
			return "its ssh is still attached: " + clients
		}
		return ""
	})
	second.hangUp()
	third := u.sit(132, 43, nil, "attach", u.name, "--via", "exec")
	third.shows("the shell 42 speaks") // the window that was looked at last
	if now := u.display("=main:shell", "#{pane_pid}"); now != pane {
		t.Errorf("the pane's process was %s and is %s", pane, now)
	}
	third.types("\x02d") // detach
	if r := third.wait(20 * time.Second); r.code != 0 {
		t.Errorf("after detaching: %s", r)
	}
	if r := u.sit(80, 24, nil, "attach", u.name, "-w", "nowhere").wait(20 * time.Second); r.code != 4 || !contains(r.stdout, "has no window nowhere") {
		t.Error(r)
	}

	u.must("exec", u.name, "--", "tmux", "new-session", "-d", "-s", "maintenance")
	u.must("exec", u.name, "--", "tmux", "kill-session", "-t", "=main")
	for _, via := range []string{"ssh", "exec"} {
		r := u.sit(100, 30, nil, "attach", u.name, "--via", via).wait(20 * time.Second)
		if r.code != 4 || !contains(r.stdout, "nothing is running in "+u.name) || !contains(r.stdout, "redeploy "+u.name) {
			t.Errorf("without the session, over %s: %s", via, r)
		}
	}
	u.must("redeploy", u.name)
	// What another command makes of the container must be told, or be attached to again.
	for _, via := range []string{"exec", "ssh"} {
		u.must("up", u.name)
		s := u.sit(100, 30, nil, "attach", u.name, "--via", via)
		s.shows("0:agent*")
		u.must("redeploy", u.name)
		eventually(t, patience, func() string {
			_, again, _ := strings.Cut(s.out.String(), "attaching again")
			if !contains(again, "0:agent*") {
				return "over " + via + " it does not come back: " + clip(s.out.String())
			}
			return ""
		})
		u.must("stop", u.name)
		if r := s.wait(time.Minute); r.code != 4 || !contains(r.stdout, "hint: run: agent-container start "+u.name) {
			t.Errorf("stopped elsewhere, over %s: %s", via, r)
		}
	}
	for _, args := range [][]string{{"attach", u.name}, {"attach", u.name, "--via", "exec"}, {"attach", u.name, "--print"}, {"attach", u.name, "--", "true"}} {
		if r := u.sit(100, 30, nil, args...).wait(20 * time.Second); r.code != 4 || !contains(r.stdout, "agent-container start "+u.name) {
			t.Errorf("of a stopped one: %s", r)
		}
	}
}

// childOf is the process of a name that a process has started.
func childOf(t *testing.T, pid int, name string) string {
	t.Helper()
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid), "-x", name).Output()
	if err != nil {
		t.Fatalf("process %d has no %s: %v", pid, name, err)
	}
	return strings.TrimSpace(string(out))
}

func kill(t *testing.T, pid string) {
	t.Helper()
	if out, err := exec.Command("kill", "-KILL", pid).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// A connection that had been up and is lost must come back to the same screen,
// while a session that was never reached is not tried again.
func TestAttachAgainAfterALoss(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	s := u.sit(100, 30, nil, "attach", u.name, "-w", "shell")
	s.types("echo the shell $((40+2)) speaks\r")
	s.shows("the shell 42 speaks")
	began := time.Now()
	lose := func() { u.must("exec", u.name, "--", "pkill", "-KILL", "-f", "^sshd-session: agent@pts") }
	eventually(t, 20*time.Second, func() string {
		if time.Since(began) < 11*time.Second {
			return "it has not been up for long enough"
		}
		return ""
	})
	lose()
	s.shows("the connection to " + u.name + " was lost; attaching again in 1s")
	eventually(t, 30*time.Second, func() string {
		if _, after, _ := strings.Cut(s.out.String(), "attaching again"); !contains(after, "the shell 42 speaks") {
			return "the screen is not back: " + after
		}
		return ""
	})
	// One that does not run any more is not waited for.
	docker(t, "kill", u.container())
	if r := s.wait(60 * time.Second); r.code != 4 || !contains(r.stdout, "agent-container start "+u.name) {
		t.Errorf("of a killed one: %s", r)
	}
	u.must("start", u.name)
	s = u.sit(100, 30, nil, "attach", u.name)
	s.shows("0:agent* 1:shell")
	u.must("stop", u.name)
	// It may stop after its session has ended, or its connection.
	if r := s.wait(60 * time.Second); r.code != 4 && r.code != 1 || !contains(r.stdout, "hint: ") {
		t.Errorf("of a stopped one: %s", r)
	}
	u.must("start", u.name)
	for range 5 {
		began = time.Now()
		s = u.sit(100, 30, nil, "attach", u.name)
		s.shows("0:agent* 1:shell")
		lose()
		if time.Since(began) < 9*time.Second {
			break
		}
		_ = s.cmd.Process.Kill() // it may have been up for long enough to come back
		s.ended(20 * time.Second)
	}
	if r := s.wait(20 * time.Second); r.code != 1 || !contains(r.stdout, "error: ssh to "+u.name+": ") {
		t.Errorf("one that was lost at once: %s", r)
	}
}

// A signal must end attach with its own code, the terminal in order and the
// session going on; a window that is not there must be named.
func TestAttachIsEnded(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	s := u.sit(100, 30, nil, "attach", u.name, "-w", "shell")
	s.shows("1:shell*")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r := s.wait(20 * time.Second)
	if _, after, _ := strings.Cut(r.stdout, "1:shell*"); r.code != 143 || !contains(after, "\x1b[?1049l") || !contains(after, "the session of "+u.name+" goes on") || !contains(after, "agent-container attach "+u.name) {
		t.Errorf("TERM: %s", r)
	}
	if r := u.sit(100, 30, nil, "attach", u.name, "-w", "nope").wait(30 * time.Second); r.code != 4 || !contains(r.stdout, "has no window nope") {
		t.Errorf("a window that is not there: %s", r)
	}
	s = u.sit(100, 30, nil, "attach", u.name, "--", "sh", "-c", "echo begun; sleep 100")
	s.shows("begun")
	s.types("\x03")
	if r := s.wait(20 * time.Second); r.code != 130 {
		t.Errorf("Ctrl-C in a command: %s", r)
	}
}

// Where attach cannot do what was asked it must say why and what to do instead.
func TestAttachElsewhere(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	for _, args := range [][]string{{"attach", u.name}, {"attach", u.name, "--via", "exec"}, {"attach", u.name, "--no-input"}} {
		if r := u.want(2, args...); !contains(r.stderr, "attach needs a terminal") || !contains(r.stderr, "-- CMD") {
			t.Error(r)
		}
	}
	u.want(2, "attach", u.name, "-w", "a b")
	u.want(2, "attach", u.name, "-w", "shell", "--", "true")

	// With stdin closed, a session is refused, and a command has an empty input.
	closed := func(args ...string) result {
		cmd := exec.Command("sh", append([]string{"-c", `exec "$@" <&-`, "sh", program}, args...)...)
		cmd.Dir, cmd.Env = u.path("project"), append(outerEnvironment(), u.env...)
		return finish(t, cmd)
	}
	if r := closed("attach", u.name); r.code != 2 || !contains(r.stderr, "attach needs a terminal") {
		t.Errorf("with stdin closed: %s", r)
	}
	if r := closed("attach", u.name, "--", "sh", "-c", "cat; echo end"); r.code != 0 || r.stdout != "end\n" {
		t.Errorf("a command with stdin closed: %s", r)
	}

	// JSON: refused for a session, an envelope for a command and for --print.
	var e struct {
		OK    bool
		Data  map[string]any
		Error struct{ Code, Message, Hint string }
	}
	answer := func(r result, code int) {
		t.Helper()
		e.Error.Code, e.Data = "", nil
		if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || r.code != code || e.OK != (code == 0) {
			t.Errorf("want one envelope and exit %d: %v: %s", code, err, r)
		}
	}
	s := u.sit(80, 24, nil, "attach", u.name, "--json")
	if answer(s.wait(20*time.Second), 2); e.Error.Code != "refused" || !contains(e.Error.Message, "no JSON") || !contains(e.Error.Hint, "--print") {
		t.Errorf("%+v", e.Error)
	}
	r := u.run("attach", u.name, "--json", "--", "sh", "-c", "echo out; exit 7")
	if answer(r, 7); e.Error.Code != "exit" || e.Data["exit_code"] != 7.0 || r.stderr != "out\n" {
		t.Errorf("%+v %s", e, r)
	}
	// On a terminal too: no terminal is asked for, which would put it into raw mode.
	s = u.sit(80, 24, nil, "attach", u.name, "--json", "--", "sh", "-c", "test -t 0 || echo none >&2")
	if r := s.wait(20 * time.Second); r.code != 0 || !contains(r.stdout, "none\r\n") || !contains(r.stdout, `"ok":true`) {
		t.Error(r)
	}
	if answer(u.run("attach", u.name, "--print", "--json"), 0); e.Data["port"] == nil || e.Data["command"] == nil || e.Data["known_hosts"] == nil {
		t.Errorf("%+v", e.Data)
	}

	// The printed configuration is all that ssh by hand needs.
	config := u.write("ssh_config", u.must("attach", u.name, "--ssh-config").stdout)
	if r := finish(t, exec.Command("ssh", "-F", config, "-o", "BatchMode=yes", u.container(), "echo in; pwd")); r.stdout != "in\n/workspace\n" {
		t.Errorf("with the printed configuration: %s", r)
	}

	// A key with a passphrase, asked for once.
	if out, err := exec.Command("ssh-keygen", "-p", "-q", "-P", "", "-N", "secret", "-f", u.path("data", "attach_key")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s = u.sit(80, 24, []string{"SSH_AUTH_SOCK=", "SSH_ASKPASS="}, "attach", u.name)
	s.shows("Enter passphrase for key")
	s.types("secret\r")
	s.shows("0:agent*")
	s.hangUp()
	if out, err := exec.Command("ssh-keygen", "-p", "-q", "-P", "secret", "-N", "", "-f", u.path("data", "attach_key")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	// Without sshd: ssh's own word, and the way around it.
	u.must("exec", u.name, "--", "pkill", "-KILL", "sshd")
	if r := u.sit(80, 24, nil, "attach", u.name).wait(30 * time.Second); r.code != 1 || !contains(r.stdout, "error: ssh to "+u.name+": ") || !contains(r.stdout, "attach "+u.name+" --via exec") {
		t.Errorf("without sshd: %s", r)
	}
	if r := u.want(125, "attach", u.name, "--", "true"); !contains(r.stderr, "--via exec") {
		t.Error(r)
	}
	s = u.sit(80, 24, nil, "attach", u.name, "--via", "exec")
	s.shows("0:agent*")
	s.hangUp()

	u.must("redeploy", u.name, "--mode", "idle", "--ssh")
	for _, via := range []string{"ssh", "exec"} {
		r := u.sit(100, 30, nil, "attach", u.name, "--via", via).wait(30 * time.Second)
		if r.code != 4 || !contains(r.stdout, u.name+" has no session: it is idle") || !contains(r.stdout, "--mode interactive") {
			t.Errorf("idle, over %s: %s", via, r)
		}
	}
}

// attach to a deployment whose set-up failed must say what failed, before sshd
// as after it.
func TestAttachAfterAFailedSetUp(t *testing.T) {
	for phase, spoil := range map[string]string{
		"seed": "rm ~/.claude/.claude.json && mkdir ~/.claude/.claude.json",
		"ssh":  "echo '# BEGIN agent-container' >>~/.ssh/authorized_keys",
	} {
		t.Run(phase, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			u.must("up", u.name)
			u.must("exec", u.name, "--", "sh", "-c", spoil)
			u.want(1, "redeploy", u.name)
			for _, via := range []string{"ssh", "exec"} {
				r := u.sit(100, 30, nil, "attach", u.name, "--via", via).wait(30 * time.Second)
				if r.code != 1 || !contains(r.stdout, "the set-up of "+u.name+" failed in phase "+phase+": ") || !contains(r.stdout, "agent-container redeploy "+u.name) {
					t.Errorf("over %s: %s", via, r)
				}
			}
		})
	}
}

// attach must wait for a set-up that goes on, and say what one waits for that
// somebody else has to do.
func TestAttachWaitsForASetUp(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	status := func(text string) string { return "echo " + text + " >/run/agent-container/status" }
	for _, via := range []string{"ssh", "exec"} {
		u.must("exec", u.name, "--", "sh", "-c", "tmux kill-session -t =main; "+status("starting seed"))
		s := u.sit(100, 30, nil, "attach", u.name, "--via", via)
		s.shows(u.name + " is still starting: seed")
		u.must("exec", u.name, "--", "sh", "-c", "tmux new-session -d -s main -n late && "+status("ready"))
		s.shows("0:late*")
		s.hangUp()
		u.must("exec", u.name, "--", "sh", "-c", "tmux kill-session -t =main; "+status("pending ssh-key"))
		if r := u.sit(100, 30, nil, "attach", u.name, "--via", via).wait(20 * time.Second); r.code != 3 || !contains(r.stdout, "waits for its SSH key") || !contains(r.stdout, "ssh-key show "+u.name) {
			t.Errorf("one that waits, over %s: %s", via, r)
		}
	}
}
