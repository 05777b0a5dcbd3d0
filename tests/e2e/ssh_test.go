package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// sshCommand is the ssh argv that "attach --print" prints, up to the address.
func (u *user) sshCommand() []string {
	u.t.Helper()
	var e struct{ Data struct{ Command []string } }
	r := u.must("attach", u.name, "--print", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || len(e.Data.Command) < 5 {
		u.t.Fatalf("%v: %s", err, r)
	}
	return e.Data.Command[:len(e.Data.Command)-1]
}

// ssh runs the printed command with more options before it and a command after.
func (u *user) ssh(options []string, remote ...string) result {
	u.t.Helper()
	argv := u.sshCommand()
	argv = slices.DeleteFunc(argv, func(a string) bool { return a == "-t" })
	full := slices.Concat([]string{"ssh", "-o", "BatchMode=yes"}, options, argv[1:], remote)
	return finish(u.t, exec.Command(full[0], full[1:]...))
}

func (u *user) sshPort() string {
	u.t.Helper()
	return u.inspect(`{{(index (index .HostConfig.PortBindings "2222/tcp") 0).HostPort}}`)
}

func (u *user) hostKey() string {
	u.t.Helper()
	key, _ := u.file("/home/agent/.ssh/host/ssh_host_ed25519_key.pub")
	return key
}

// The container's sshd must be what security demands, in effect and not only in
// its file, and refuse everything but a session of the one user with a known key.
func TestSSHD(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--env", "MINE=yes")
	effective := "\n" + u.must("exec", u.name, "--", "/usr/sbin/sshd", "-T", "-f", "/etc/ssh/agent-container/sshd_config", "-h", "/home/agent/.ssh/host/ssh_host_ed25519_key").stdout
	for _, want := range []string{
		"port 2222", "permitrootlogin no", "passwordauthentication no", "kbdinteractiveauthentication no", "authenticationmethods publickey",
		"pubkeyauthentication yes", "disableforwarding yes", "permittunnel no", "gatewayports no", "permituserenvironment no", "permituserrc no",
		"allowusers agent", "maxauthtries 3", "logingracetime 20", "maxstartups 10:30:60", "clientaliveinterval 30", "strictmodes yes", "usepam no",
	} {
		if !contains(effective, "\n"+want+"\n") {
			t.Errorf("sshd -T does not say %q", want)
		}
	}
	if contains(effective, "\nsubsystem") || contains(effective, "\nacceptenv") {
		t.Errorf("sshd -T says more than it should:\n%s", effective)
	}
	if r := u.ssh(nil, "echo $MINE $AGENT_CONTAINER_NAME; id -un; echo $PATH; exit 7"); r.code != 7 || r.stdout != "yes "+u.name+"\nagent\n/opt/agent/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin\n" {
		t.Errorf("a session has another environment than a job: %s", r)
	}
	other := filepath.Join(u.dir, "other")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	free := freePort(t)
	for name, options := range map[string][]string{
		"an unknown key":  {"-o", "IdentityFile=" + other, "-o", "IdentityAgent=none", "-F", "none"},
		"a password":      {"-o", "PubkeyAuthentication=no", "-o", "PreferredAuthentications=password,keyboard-interactive"},
		"root":            {"-l", "root"},
		"-R":              {"-o", "ClearAllForwardings=no", "-o", "ExitOnForwardFailure=yes", "-R", free + ":127.0.0.1:1"},
		"a tunnel device": {"-o", "ClearAllForwardings=no", "-o", "ExitOnForwardFailure=yes", "-w", "0:0"},
	} {
		if name == "an unknown key" { // the printed identity would be tried as well
			argv := slices.DeleteFunc(u.sshCommand(), func(a string) bool { return a == "-t" || strings.HasPrefix(a, "IdentityFile=") })
			argv = slices.DeleteFunc(argv, func(a string) bool { return a == "IdentitiesOnly=yes" })
			for i := len(argv) - 1; i > 0; i-- { // options that lost their value
				if argv[i] == "-o" && (i+1 == len(argv) || argv[i+1] == "-o" || argv[i+1] == "-p") {
					argv = slices.Delete(argv, i, i+1)
				}
			}
			full := slices.Concat([]string{"ssh", "-o", "BatchMode=yes"}, options, argv[1:], []string{"true"})
			for range 20 { // nor may they lock the owner out
				if r := finish(t, exec.Command(full[0], full[1:]...)); r.code != 255 || !contains(r.stderr, "Permission denied (publickey)") {
					t.Fatalf("%s: %s", name, r)
				}
			}
			continue
		}
		if r := u.ssh(options, "true"); r.code != 255 {
			t.Errorf("%s was let in: %s", name, r)
		}
	}
	// What is refused without ending the session.
	if r := u.ssh([]string{"-A", "-o", "ForwardAgent=yes", "-X", "-o", "SetEnv=LD_PRELOAD=/x PATH=/x BASH_ENV=/x"}, "env"); r.code != 0 || contains(r.stdout, "SSH_AUTH_SOCK") || contains(r.stdout, "DISPLAY") ||
		contains(r.stdout, "=/x") {
		t.Errorf("agent, display or environment came through: %s", r)
	}
	if r := finish(t, exec.Command("ssh", slices.Concat([]string{"-o", "BatchMode=yes", "-W", "127.0.0.1:2222"}, u.sshCommand()[2:])...)); r.code == 0 {
		t.Errorf("a connection was forwarded: %s", r)
	}
	if r := u.ssh(nil, "true"); r.code != 0 {
		t.Errorf("the owner is locked out: %s", r)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Host key and port must stay through redeploys, and every deployment have its
// own; a taken port must be passed over.
func TestPorts(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	port, key := u.sshPort(), u.hostKey()
	for range 3 {
		u.must("redeploy", u.name)
		if u.sshPort() != port || u.hostKey() != key || key == "" {
			t.Errorf("port %s and key %q became %s and %q", port, key, u.sshPort(), u.hostKey())
		}
	}
	u.must("attach", u.name, "--", "true")
	u.must("stop", u.name)
	free := occupy(t, port)
	if r := u.must("redeploy", u.name); !contains(r.stderr, "port "+port+" is taken by something else") || u.sshPort() == port {
		t.Errorf("port %s is kept: %s", u.sshPort(), r)
	}
	free()
	u.must("attach", u.name, "--", "true")
	port = u.sshPort()

	// Twenty at once, one port each.
	names := make([]string, 20)
	var all sync.WaitGroup
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", u.name, i)
		all.Go(func() { u.run("up", names[i], "--mode", "idle", "--ssh") })
	}
	all.Wait()
	ports := map[string]bool{port: true}
	for _, n := range names {
		defer u.run("wipe", n, "--yes")
		p := docker(t, "inspect", "--format", `{{.State.Status}} {{(index (index .HostConfig.PortBindings "2222/tcp") 0).HostPort}}`, "agent-container-"+n)
		if !strings.HasPrefix(p, "running ") || ports[strings.TrimPrefix(p, "running ")] {
			t.Errorf("%s: %s, and taken are %v", n, p, ports)
		}
		ports[strings.TrimPrefix(p, "running ")] = true
	}
}

// occupy listens on a port of the host until free is called.
func occupy(t *testing.T, port string) (free func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return func() { l.Close() }
}

// Keys must be let in as the collection and the flags say, be listed, and be
// added and removed while it runs; a private key must be refused and not shown.
func TestAccess(t *testing.T) {
	u := newUser(t)
	u.withStub()
	key := func(name string) (private, public string) {
		private = u.path(name)
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", private).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		content, err := os.ReadFile(private + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		return private, string(content)
	}
	first, firstPublic := key("first")
	second, _ := key("second")
	third, _ := key("third")
	secret, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	u.write("config/authorized_keys", "# mine\n\n"+string(secret))
	if r := u.want(2, "up", u.name); !contains(r.stderr, "authorized_keys:3: a private key") || contains(r.stderr, strings.Split(string(secret), "\n")[1]) {
		t.Error(r)
	}
	u.write("config/authorized_keys", "# mine\n"+firstPublic+"ssh-ed25519 broken\n")
	if r := u.want(2, "up", u.name); !contains(r.stderr, "authorized_keys:3: not a public key") {
		t.Error(r)
	}
	u.write("config/authorized_keys", "# mine\n"+firstPublic)
	u.must("up", u.name, "--authorized-key", second+".pub")
	letsIn := func(private string, want bool) {
		t.Helper()
		r := u.ssh([]string{"-F", "none", "-o", "IdentityAgent=none", "-o", "IdentitiesOnly=yes", "-i", private}, "true")
		if (r.code == 0) != want {
			t.Errorf("%s is let in: %t, want %t: %s", filepath.Base(private), !want, want, r)
		}
	}
	letsIn(first, true)
	letsIn(second, true)
	letsIn(third, false)
	u.must("access", "add", u.name, third+".pub")
	letsIn(third, true)
	docker(t, "restart", u.container())
	eventually(t, 30*time.Second, func() string {
		if r := u.run("attach", u.name, "--via", "exec", "--", "tmux", "has-session", "-t", "=main"); r.code != 0 {
			return "not up again: " + r.String()
		}
		return ""
	})
	letsIn(third, true)
	list := u.must("access", "list", u.name)
	if strings.Count(list.stdout, "collection") != 2 || strings.Count(list.stdout, "added") != 1 || !contains(list.stdout, "third") {
		t.Error(list)
	}
	var print string
	for _, line := range strings.Split(list.stdout, "\n") {
		if contains(line, "third") {
			print = strings.Fields(line)[0]
		}
		if contains(line, "first") {
			u.want(2, "access", "remove", u.name, strings.Fields(line)[0])
		}
	}
	u.must("access", "remove", u.name, print)
	letsIn(third, false)
	u.want(4, "access", "remove", u.name, print)
	u.want(2, "access", "add", u.name, third) // the private half

	// A collection without a key lets nobody in.
	u.write("config/authorized_keys", "# nobody\n")
	u.must("redeploy", u.name, "--authorized-key", third+".pub")
	letsIn(first, false)
	letsIn(third, true)
}

// A host key that is not the pinned one must be refused, with what to do.
func TestChangedHostKey(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	u.must("attach", u.name, "--", "true")
	u.must("exec", u.name, "--", "rm", "-r", "/home/agent/.ssh/host")
	u.must("redeploy", u.name)
	if r := u.want(2, "attach", u.name, "--", "true"); !contains(r.stderr, "is not the one that was pinned") || !contains(r.stderr, "known_hosts") {
		t.Error(r)
	}
}
