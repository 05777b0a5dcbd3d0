package e2e

import (
	"strings"
	"testing"
	"time"
)

// A session that was stopped and whose port was taken meanwhile must start all
// the same, with the next port, and say so. Everything is kept but the port: and
// its task, which it had, is not sent again.
func TestStartWithATakenPort(t *testing.T) {
	for _, verb := range []string{"start", "up", "exec"} {
		t.Run(verb, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			const task = "the one task"
			u.must("up", u.name, "--task", task, "--env", "TYPED=a value", "--env", "STUB_RUN=echo run >>~/.claude/runs")
			u.keys("C-d") // the stub reads its input to the end
			u.untilScreen(20*time.Second, "this window is now a shell")
			u.must("exec", u.name, "--", "sh", "-ec", "echo work >/workspace/file; echo '# mine' >>~/.ssh/authorized_keys")
			u.must("attach", u.name, "--", "true")
			port, image, key, records := u.sshPort(), u.inspect("{{.Image}}"), u.hostKey(), len(u.records())

			args := []string{verb, u.name}
			if verb == "exec" {
				docker(t, "kill", u.container()) // by the engine, not by stop
				args = append(args, "--", "true")
			} else {
				u.must("stop", u.name)
			}
			occupy(t, port)
			before := u.inspect("{{.Id}}")
			r := u.must(args...)
			if u.sshPort() == port || u.inspect("{{.Id}}") == before || !contains(r.stderr, "port "+port+" is taken by something else; "+u.name+" gets "+u.sshPort()) ||
				!contains(r.stderr, u.name+" is made anew: its port was taken meanwhile") {
				t.Fatalf("port %s became %s: %s", port, u.sshPort(), r)
			}
			u.must("attach", u.name, "--", "true")
			if now := u.listedAs(u.name)["ssh"]; now.(map[string]any)["port"] == nil || !contains(u.must("list").stdout, " "+u.sshPort()+" ") {
				t.Errorf("listed is %v", now)
			}
			u.keys("C-d")
			u.untilScreen(20*time.Second, "this window is now a shell")
			if argv, _ := u.file("/home/agent/.claude/stub-argv"); contains(argv, task) {
				t.Errorf("the task was sent again: %q", argv)
			}
			for path, want := range map[string]string{"/workspace/file": "work\n", "/home/agent/.claude/runs": "run\nrun\n", "/run/agent-container/task": task} {
				if got, _ := u.file(path); got != want {
					t.Errorf("%s holds %q, want %q", path, got, want)
				}
			}
			if got := u.must("exec", u.name, "--", "printenv", "TYPED").stdout; got != "a value\n" {
				t.Errorf("the typed variable is %q", got)
			}
			if keys, _ := u.file("/home/agent/.ssh/authorized_keys"); !contains(keys, "# mine\n") || u.hostKey() != key || u.inspect("{{.Image}}") != image {
				t.Errorf("keys %q, host key %q, image %s: want %q and %s", keys, u.hostKey(), u.inspect("{{.Image}}"), key, image)
			}
			if now := u.records(); len(now) != records+1 || now[1]["task_bytes"] == 0.0 || now[0]["task_bytes"] != 0.0 {
				t.Errorf("the records are %v", now)
			}
			u.must("stop", u.name)
			u.must("start", u.name) // and it is an ordinary one again
		})
	}
}

// What a new container would lose, the workspace in its own layer, must not be
// lost for a port: that is refused, and nothing is changed.
func TestStartWithATakenPortKeepsAnEphemeralWorkspace(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--workspace", "ephemeral")
	u.must("exec", u.name, "--", "sh", "-c", "echo work >/workspace/file")
	u.must("stop", u.name)
	port, before := u.sshPort(), u.inspect("{{.Id}}")
	free := occupy(t, port)
	if r := u.want(1, "start", u.name); !contains(r.stderr, "its port was taken meanwhile") || !contains(r.stderr, "empty ephemeral workspace") || !contains(r.stderr, "redeploy "+u.name) {
		t.Error(r)
	}
	if u.inspect("{{.Id}}") != before || u.sshPort() != port {
		t.Error("it was changed")
	}
	free()
	u.must("start", u.name)
	if got, _ := u.file("/workspace/file"); got != "work\n" {
		t.Errorf("the workspace holds %q", got)
	}
}

// A network that was removed while the deployment was stopped must be made anew
// by start, services and all; a services file that is gone meanwhile is not taken
// for an order to remove them.
func TestStartWithoutItsNetwork(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.services("services:\n  db:\n    image: IMAGE\n    pull_policy: never\n    init: true\n    entrypoint: [sleep, '600']\n")
	u.must("up", u.name, "--mode", "idle", "--env", "TYPED=a value")
	u.must("stop", u.name)
	docker(t, "network", "rm", u.container())
	r := u.must("start", u.name)
	if !contains(r.stderr, "its network was removed") {
		t.Error(r)
	}
	if got := u.must("exec", u.name, "--", "sh", "-c", "echo $TYPED; getent hosts db").stdout; !strings.HasPrefix(got, "a value\n") || !contains(got, "db") {
		t.Errorf("in the new one: %q", got)
	}
	u.must("stop", u.name)
	docker(t, "network", "rm", u.container())
	before := u.inspect("{{.Id}}")
	u.noServices()
	if r := u.want(1, "start", u.name); !contains(r.stderr, "its services file is not what it was") || u.inspect("{{.Id}}") != before {
		t.Error(r)
	}
}

// A start that is killed while it makes the container anew must leave what
// redeploy finishes, with the environment and without the task.
func TestStartAnewThatIsKilled(t *testing.T) {
	for _, step := range []string{"retired", "created", "filled"} {
		t.Run(step, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			u.must("up", u.name, "--task", "the one task", "--env", "TYPED=a value")
			u.must("exec", u.name, "--", "sh", "-c", "echo work >/workspace/file")
			u.must("stop", u.name)
			occupy(t, u.sshPort())
			u.endedAt(step, "kill", "start", u.name)
			u.must("redeploy", u.name)
			if got := u.must("exec", u.name, "--", "sh", "-c", "echo $TYPED; cat /workspace/file").stdout; got != "a value\nwork\n" {
				t.Errorf("in the new one: %q", got)
			}
			if task, there := u.file("/run/agent-container/task"); there {
				t.Errorf("the task is there again: %q", task)
			}
			u.must("attach", u.name, "--", "true")
		})
	}
}
