package e2e

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// webServices is a service that answers HTTP two seconds after it has started, and
// is healthy from then on, with a volume of its own.
const webServices = `services:
  web:
    image: IMAGE
    pull_policy: never
    init: true
    entrypoint: [sh, -c, 'sleep 2; cd /data; echo hello from the service >index.html; exec python3 -m http.server 8000']
    user: "0"
    volumes: ["data:/data"]
    healthcheck:
      test: [CMD, curl, -fsS, "http://127.0.0.1:8000/"]
      interval: 200ms
      retries: 100
volumes:
  data: {}
`

// A service must be there, by name and healthy, before the agent does anything,
// and be stopped once the job has ended.
func TestServiceOfAForegroundJob(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.services(webServices)
	r := u.must("up", u.name, "--mode", "headless", "--foreground", "--task", "fetch",
		"--env", "STUB_RUN=curl -fsS --noproxy '*' --max-time 5 http://web:8000/")
	if r.stdout != "hello from the service\n" {
		t.Errorf("the agent got %s", r)
	}
	if state := docker(t, "inspect", u.container()+".web", "--format", "{{.State.Status}}"); state != "exited" {
		t.Errorf("after the job the service is %s", state)
	}
}

// The services of a detached job must be stopped by the next verb that names
// the deployment after its end.
func TestServiceOfADetachedJob(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.services(webServices)
	u.must("up", u.name, "--mode", "headless", "--task", "x", "--env", "STUB_RUN="+untilGo)
	u.goOn() // without a verb of ours
	u.waitState("exited")
	web := func() string { return docker(t, "inspect", u.container()+".web", "--format", "{{.State.Status}}") }
	if state := web(); state != "running" {
		t.Fatalf("before any verb the service is %s: there is nothing to see", state)
	}
	u.must("runs", "list", u.name)
	if state := web(); state != "exited" {
		t.Errorf("after a verb the service is %s", state)
	}
}

// A service that exits must not end the run, nor change its outcome.
func TestServiceThatExitsEndsNoRun(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.services("services:\n  once:\n    image: IMAGE\n    pull_policy: never\n    entrypoint: [sh, -c, 'exit 3']\n")
	r := u.must("up", u.name, "--mode", "headless", "--foreground", "--task", "x", "--env", "STUB_RUN=sleep 1; echo to the end")
	if r.stdout != "to the end\n" {
		t.Errorf("the agent did not come to its end: %s", r)
	}
	if code := docker(t, "inspect", u.container()+".once", "--format", "{{.State.Status}} {{.State.ExitCode}}"); code != "exited 3" {
		t.Errorf("the service is %s", code)
	}
	if record := u.record(); record["outcome"] != "finished" {
		t.Errorf("the record is %v", record)
	}
}

// A deployment with services must have a network of its own, a /28 of the
// user's pool; its services carry our label and are bounded.
func TestServicesNetworkAndHardening(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.services(webServices)
	u.write("config/settings.yaml", "subnet_pool: 10.231.16.0/24\nlimits:\n  pids: 222\n")
	u.must("up", u.name, "--mode", "idle")

	network := docker(t, "network", "inspect", u.container(), "--format",
		`{{(index .IPAM.Config 0).Subnet}} {{index .Labels "agent-container.name"}} {{len .Containers}}`)
	fields := strings.Fields(network)
	subnet, err := netip.ParsePrefix(fields[0])
	if err != nil || subnet.Bits() != 28 || !netip.MustParsePrefix("10.231.16.0/24").Contains(subnet.Addr()) {
		t.Errorf("the subnet is %s", fields[0])
	}
	if fields[1] != u.name || fields[2] != "2" {
		t.Errorf("the network has label and number of containers %v", fields[1:])
	}
	for _, c := range []string{u.container(), u.container() + ".web"} {
		if got := docker(t, "inspect", c, "--format", `{{range $k, $v := .NetworkSettings.Networks}}{{$k}} {{end}}`); got != u.container() {
			t.Errorf("%s is in the networks %s", c, got)
		}
	}
	for field, want := range map[string]string{
		`(index .Config.Labels "agent-container.name")`: `"` + u.name + `"`,
		`(index .Config.Labels "agent-container.spec")`: `""`,
		".HostConfig.CapDrop":                           `["ALL"]`,
		".HostConfig.CapAdd":                            `["CAP_CHOWN","CAP_DAC_OVERRIDE","CAP_FOWNER","CAP_KILL","CAP_SETGID","CAP_SETUID"]`,
		".HostConfig.SecurityOpt":                       `["no-new-privileges:true"]`,
		".HostConfig.PidsLimit":                         "222",
		".HostConfig.LogConfig.Type":                    `"json-file"`,
		".HostConfig.PortBindings":                      "{}",
		".HostConfig.RestartPolicy.Name":                `"unless-stopped"`,
	} {
		got := docker(t, "inspect", u.container()+".web", "--format", "{{json ("+field+")}}")
		if strings.ReplaceAll(got, "CAP_", "") != strings.ReplaceAll(want, "CAP_", "") {
			t.Errorf("the service's %s is %s, want %s", field, got, want)
		}
	}
	if got := u.must("exec", u.name, "--", "getent", "hosts", "web").stdout; !contains(got, "10.231.16.") {
		t.Errorf("web resolves to %q", got)
	}
	// The network outlives a redeploy with the subnet it has.
	u.must("redeploy", u.name)
	if now := docker(t, "network", "inspect", u.container(), "--format", "{{(index .IPAM.Config 0).Subnet}}"); now != fields[0] {
		t.Errorf("the subnet went from %s to %s", fields[0], now)
	}
}

// A service that is no longer in the file must be gone after a redeploy, and
// with the last one the deployment's own network.
func TestServiceRemovedFromTheFile(t *testing.T) {
	u := newUser(t)
	u.withStub()
	service := func(name string) string {
		return "  " + name + ":\n    image: IMAGE\n    pull_policy: never\n    init: true\n    entrypoint: [sleep, '600']\n"
	}
	u.services("services:\n" + service("one") + service("two"))
	u.must("up", u.name, "--mode", "idle")
	containers := func() string {
		return strings.Join(strings.Fields(docker(t, "ps", "--all", "--filter", "label=agent-container.name="+u.name, "--format", "{{.Names}}")), " ")
	}
	if got := containers(); !contains(got, u.container()+".one") || !contains(got, u.container()+".two") {
		t.Fatalf("the containers are %s", got)
	}
	u.services("services:\n" + service("one"))
	u.must("redeploy", u.name)
	if got := containers(); !contains(got, u.container()+".one") || contains(got, u.container()+".two") {
		t.Errorf("after a redeploy with one service the containers are %s", got)
	}
	u.noServices()
	u.must("redeploy", u.name)
	if got := containers(); got != u.container() {
		t.Errorf("after a redeploy without services the containers are %s", got)
	}
	if got := u.inspect(`{{range $k, $v := .NetworkSettings.Networks}}{{$k}} {{end}}`); got != "agent-container" {
		t.Errorf("the container is in the networks %s", got)
	}
	if left := docker(t, "network", "ls", "--quiet", "--filter", "label=agent-container.name="+u.name); left != "" {
		t.Errorf("the deployment's own network is left over: %s", left)
	}
}

// The volume of a service must carry our label, survive down, and go with
// --purge; stop and start must take the services along.
func TestServiceVolumeAndLifeCycle(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.services(webServices)
	volume := u.container() + ".data"
	u.must("up", u.name, "--mode", "idle")
	if label := docker(t, "volume", "inspect", volume, "--format", `{{index .Labels "agent-container.name"}}`); label != u.name {
		t.Errorf("the volume's label is %q", label)
	}
	web := func() string { return docker(t, "inspect", u.container()+".web", "--format", "{{.State.Status}}") }
	u.must("stop", u.name)
	if web() != "exited" {
		t.Errorf("after stop the service is %s", web())
	}
	u.must("start", u.name)
	if web() != "running" {
		t.Errorf("after start the service is %s", web())
	}
	u.must("exec", u.name, "--", "curl", "-fsS", "--noproxy", "*", "http://web:8000/")
	u.must("down", u.name, "--yes")
	docker(t, "volume", "inspect", volume)
	if left := docker(t, "network", "ls", "--quiet", "--filter", "label=agent-container.name="+u.name); left != "" {
		t.Errorf("down left the network %s", left)
	}
	u.must("down", u.name, "--purge", "--yes")
	if r := dockerTry(t, "volume", "inspect", volume); r.code == 0 {
		t.Errorf("the volume outlived --purge: %s", r)
	}
}

// A services file that asks for what it may not have must be refused with 2,
// with the line where there is one, before anything is made.
func TestServicesThatAreRefused(t *testing.T) {
	u := newUser(t)
	u.withStub()
	one := func(lines string) string { return "services:\n  db:\n    image: x\n" + lines }
	for name, c := range map[string]struct{ content, says string }{
		"the agent's name":        {"services:\n  agent:\n    image: x\n", ":2: "},
		"the gateway's name":      {"services:\n  egress:\n    image: x\n", ":2: "},
		"privileged":              {one("    privileged: true\n"), ":4: "},
		"capabilities":            {one("    cap_add: [NET_ADMIN]\n"), ":4: "},
		"the host's network":      {one("    network_mode: host\n"), ":4: "},
		"the host's processes":    {one("    pid: host\n"), ":4: "},
		"devices":                 {one("    devices: ['/dev/kmsg']\n"), ":4: "},
		"security options":        {one("    security_opt: ['seccomp:unconfined']\n"), ":4: "},
		"a published port":        {one("    ports: ['8080:80']\n"), ":4: "},
		"a name of the container": {one("    container_name: other\n"), ":4: "},
		"labels":                  {one("    labels: {agent-container.name: other}\n"), ":4: "},
		"the engine's socket":     {one("    volumes: ['/var/run/docker.sock:/sock']\n"), "socket"},
		"the socket, read-only":   {one("    volumes: ['/var/run/docker.sock:/sock:ro']\n"), "socket"},
		"the socket, long form":   {one("    volumes: [{type: bind, source: /run/docker.sock, target: /sock}]\n"), "socket"},
		"the socket's directory":  {one("    volumes: ['/var/run:/host-run']\n"), "socket"},
		"the host's root":         {one("    volumes: ['/:/host']\n"), "socket"},
		"a volume of the socket":  {one("    volumes: ['v:/x']\n") + "volumes:\n  v:\n    driver_opts: {type: none, o: bind, device: /var/run}\n", "socket"},
		"a misspelt key":          {one("    enviroment: {A: b}\n"), `did you mean "environment"`},
		"a merge key":             {"x-a: &a\n  privileged: true\nservices:\n  db:\n    <<: *a\n    image: x\n", ":1: "},
		"another top-level key":   {one("") + "networks:\n  default:\n    external: true\n", ":4: "},
		"no services":             {"services: {}\n", "no services"},
		"nothing":                 {"", "no mapping"},
		"not YAML":                {"services:\n\t- {", "not YAML"},
		"not a mapping":           {"- services\n", "no mapping"},
	} {
		t.Run(name, func(t *testing.T) {
			path := u.write("config/"+u.name+".services.yaml", c.content)
			r := u.want(2, "up", u.name, "--mode", "idle")
			if !contains(r.stderr, path) || !contains(r.stderr, c.says) {
				t.Errorf("the refusal names neither the file nor %q: %s", c.says, r)
			}
		})
	}
	u.nothingMade()
}

// A service's image that is not to be had must be found out while the
// deployment still runs, and be named.
func TestMissingServiceImageTakesNothingDown(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	same := u.unchanged()
	// A registry of ours that refuses: nothing listens on this port of loopback.
	u.write("config/"+u.name+".services.yaml", "services:\n  db:\n    image: 127.0.0.1:1/e2e/postgre:17\n")
	r := u.want(1, "redeploy", u.name)
	if !contains(r.stderr, "images of the services db") {
		t.Errorf("the service is not named: %s", r)
	}
	same()
}

// A service that never gets healthy must not hold up the deploys of others.
func TestSlowServiceHoldsUpNobody(t *testing.T) {
	if err := modelImage(); err != nil {
		t.Fatal(err)
	}
	u := newUser(t)
	u.withStub()
	service := "services:\n  model:\n    image: localhost/agent-container-modelserver:latest\n    pull_policy: never\n" +
		"    healthcheck:\n      test: [CMD, /modelserver, -check, \"http://127.0.0.1:1/\"]\n      interval: 1s\n      start_period: 5m\n"
	u.write("config/"+u.name+".services.yaml", service)
	other := u.name + "-b"
	u.write("config/"+other+".services.yaml", "services:\n  model:\n    image: localhost/agent-container-modelserver:latest\n    pull_policy: never\n")
	t.Cleanup(func() { u.run("wipe", other, "--yes") })
	slow := u.startWith(nil, nil, nil, "up", u.name, "--mode", "idle")
	eventually(t, time.Minute, func() string {
		if state := dockerTry(t, "inspect", u.container()+".model", "--format", "{{.State.Status}}").stdout; !contains(state, "running") {
			return "the slow service is " + state
		}
		return ""
	})
	bounded(t, 3*time.Minute, func() { u.must("up", other, "--mode", "idle") })
	slow.signal(syscall.SIGINT)
	if r := slow.wait(time.Minute); r.code != 130 || !contains(r.stderr, "was not started") {
		t.Errorf("interrupted: %s", r)
	}
}
