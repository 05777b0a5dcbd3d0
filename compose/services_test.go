package compose

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agent-container/agent-container/spec"
)

const servicesFile = "/config/web.services.yaml"

func parseText(text string, env map[string]string) (*Services, error) {
	return ParseServices(context.Background(), "web", servicesFile, "/config", []byte(text), env)
}

func parse(t *testing.T, text string, env map[string]string) *Services {
	t.Helper()
	s, err := parseText(text, env)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// one is a services file of one service with an image and more keys of it.
func one(keys string) string { return "services:\n  db:\n    image: x\n    " + keys + "\n" }

func TestServicesRefused(t *testing.T) {
	// What is not on the allow-list must be refused with its line, and what an allowed key may not hold with the reason.
	refused := []struct {
		text          string
		line          int
		problem, hint string
	}{
		{"", 0, "holds no mapping with services", ""},
		{"# nothing\n", 0, "holds no mapping with services", ""},
		{"- db\n", 0, "holds no mapping with services", ""},
		{"db\n", 0, "holds no mapping with services", ""},
		{"services:\n  db: {\n", 0, "not YAML: line 2", ""},
		{"services: *x\n", 0, "not YAML: unknown anchor", ""},
		{"\x00", 0, "not YAML: ", ""},
		{"version: '3'\n", 1, "declares no services", ""},
		{"services:\n", 1, "declares no services", ""},
		{"services: {}\n", 1, "declares no services", ""},
		{"services: [db]\n", 1, "declares no services", ""},
		{"services:\n  - db\n", 1, "declares no services", ""},
		{"services:\n  db:\n    - image\n", 3, "services.db is not a mapping", ""},
		{"services:\n  db: image\n", 2, "services.db is not a mapping", ""},
		{"services:\n  db:\n", 2, "services.db is not a mapping", ""},
		{"service:\n  db: {image: x}\n", 1, `key "service" is not allowed`, `did you mean "services"?`},
		{"services:\n  db: {image: x}\nnetworks: {}\n", 3, `key "networks" is not allowed`, "allowed are services, volumes, version"},
		{"include: [a]\n", 1, `key "include" is not allowed`, ""},
		{"configs: {}\n", 1, `key "configs" is not allowed`, ""},
		{"x-a: &a {privileged: true}\nservices: {db: {<<: *a}}\n", 1, `key "x-a" is not allowed`, ""},
		{"services:\n  ok: {image: x}\n  agent: {image: x}\n", 3, `service "agent" is our own`, "give it another name"},
		{"services:\n  egress: {image: x}\n", 2, `service "egress" is our own`, "give it another name"},
		{one("enviroment: {A: b}"), 4, `key "services.db.enviroment" is not allowed`, `did you mean "environment"?`},
		{one("Image: y"), 4, `key "services.db.Image" is not allowed`, `did you mean "image"?`},
		{one("? [privileged]\n    : true"), 4, "is not allowed", ""},
		{one("<<: {privileged: true}"), 4, `key "services.db.<<" is not allowed`, ""},
		{"services:\n  db: &a {image: x}\n  c: *a\n", 3, "services.c is not a mapping", ""},
		{"services: &s\n  db: {image: x}\nvolumes: *s\n", 0, "volumes.db additional properties 'image' not allowed", ""},
		{one("image: y"), 0, `mapping key "image" already defined`, ""},
		{"services:\n  db: {image: x}\n---\nservices:\n  agent: {image: x, privileged: true}\n", 3, "holds more than one document", ""},
		{"services:\n  db: {image: x}\n---\n{", 0, "holds more than one document", ""},
		{one("depends_on: [nothing]"), 0, `depends on undefined service "nothing"`, ""},
		{one("depends_on: [agent]"), 0, `depends on undefined service "agent"`, ""},
		{one("volumes: ['named:/a']"), 0, "refers to undefined volume named", ""},
		{one("environment: {A: '${MISSING:?not given}'}"), 0, "not given", ""},
		{one("environment: {A: '${MISSING}'}"), 0, "variable MISSING is not set", ""},
		{one("environment: {A: $MISSING}"), 0, "variable MISSING is not set", ""},
		{one("environment: {'A$B': c}"), 0, "with a $ in its name", ""},
		{one(`command: ["a", "\tb\nc"]`), 4, "may not begin with a tab", ""},
		{one(`environment: {A: "\n\n b"}`), 4, "an empty line and a space", ""},
		{one("env_file: absent.env"), 0, "env file /config/absent.env not found", ""},
		{one("build: {context: ., privileged: true}"), 0, `service "db" asks for a privileged build`, ""},
		{one("build: {context: ., network: host}"), 0, `service "db" asks for a privileged build`, ""},
		{one("build: {context: ., entitlements: [security.insecure]}"), 0, `service "db" asks for a privileged build`, ""},
		{one("ulimits: {A: {hard}}"), 0, "unreadable for Compose: ", ""}, // it panics
		{one("sysctls: {kernel.shmmax: 1}"), 0, "sets sysctl kernel.shmmax", ""},
		{one("sysctls: [net.core.somaxconn=1, vm.overcommit_memory=1]"), 0, "sets sysctl vm.overcommit_memory", ""},
		{"services:\n  db: {image: x}\nvolumes:\n  a:\n    <<: {driver: local}\n", 5, `key "volumes.a.<<" is not allowed`, ""},
		{"services:\n  db: {image: x}\nvolumes:\n  a: {driverr: local}\n", 4, `key "volumes.a.driverr" is not allowed`, `did you mean "driver"?`},
	}
	for _, row := range refused {
		e := servicesError(t, row.text, nil)
		if e.Line != row.line || !strings.Contains(e.Problem, row.problem) || !strings.HasPrefix(e.Hint, row.hint) {
			t.Errorf("%q: line %d, %s, hint %q; want line %d, %s, hint %q", row.text, e.Line, e.Problem, e.Hint, row.line, row.problem, row.hint)
		}
		if !strings.HasPrefix(e.Error(), servicesFile+":") || strings.Contains(e.Error(), "\n") {
			t.Errorf("%q: error %q is not one line that begins with the file", row.text, e)
		}
	}
}

func servicesError(t *testing.T, text string, env map[string]string) *ServicesError {
	t.Helper()
	_, err := parseText(text, env)
	var e *ServicesError
	if !errors.As(err, &e) || !IsServicesError(err) {
		t.Fatalf("%q: error is %T %v, want *ServicesError", text, err, err)
	}
	return e
}

func TestServicesVariableRefused(t *testing.T) {
	// A variable's value that would not survive the file must be refused as a text of the file itself is; any other must be taken as it is.
	for value, taken := range map[string]bool{"a\n b\n": true, " a\nb": true, "\n\na": true, "\ta": true, "\n b": false, "\n\n  b\nc": false, "\ta\nb": false, "\u2028": false} {
		s, err := parseText(one("environment: {A: $V}"), map[string]string{"V": value})
		if (err == nil) != taken || err != nil && !strings.Contains(err.Error(), "a text of several lines may not begin with") {
			t.Errorf("%q: %v", value, err)
		}
		if taken && (err != nil || *s.project.Services["db"].Environment["A"] != value) {
			t.Errorf("%q became something else", value)
		}
	}
}

func TestServicesPrivilegesRefused(t *testing.T) {
	// Every key that gives a service privileges, the host or another container must be refused by name, whatever its value.
	for _, key := range []string{
		"privileged: false", "cap_add: [NET_RAW]", "cap_drop: [ALL]", "security_opt: [seccomp=unconfined]", "devices: [/dev/kvm]", "device_cgroup_rules: ['a *:* rwm']", "gpus: all",
		"network_mode: host", "networks: [default]", "pid: host", "ipc: host", "uts: host", "userns_mode: host", "cgroup: host", "cgroup_parent: a", "ports: ['80:80']", "volumes_from: [agent]",
		"container_name: agent-container-other", "labels: {agent-container.name: other}", "extends: {file: a, service: b}", "deploy: {}", "secrets: [a]", "configs: [a]", "profiles: [a]",
		"restart: always", "runtime: runsc", "group_add: [docker]", "logging: {driver: none}", "use_api_socket: true", "post_start: []", "develop: {}", "credential_spec: {}", "isolation: a", "x-anything: 1",
	} {
		name, _, _ := strings.Cut(key, ":")
		e := servicesError(t, one(key), nil)
		if e.Line != 4 || !strings.Contains(e.Problem, `key "services.db.`+name+`" is not allowed`) || e.Hint == "" {
			t.Errorf("%s: %v, hint %q", key, e, e.Hint)
		}
	}
}

func TestServicesSocketRefused(t *testing.T) {
	// A bind of an engine's socket, or of a directory that holds one, must be refused in every spelling.
	for _, source := range []string{
		"/var/run/docker.sock", "/run/docker.sock", "//var/run/docker.sock", "/var/run/./docker.sock", "/home/../var/run/docker.sock", "./../run/docker.sock", "../run//docker.sock", "${SOCK}",
		"/run/podman/podman.sock", "/run/podman", "/run/user/1000/podman/podman.sock", "/run/user/1000/podman", "/run/user/1000", "/run/user", "/run/user/1000/docker.sock",
		"/var/run/user/1000", "/var/run/podman", "/run/containerd/containerd.sock", "/run/containerd", "/run/docker", "/home/me/.docker/run/docker.sock", "/run", "/run/", "/var/run", "/var", "/",
	} {
		for _, text := range []string{
			one("volumes: ['" + source + ":/s']"),
			one("volumes: ['" + source + ":/s:ro']"),
			one("volumes: [{type: bind, source: '" + source + "', target: /s, read_only: true}]"),
			"services: {db: {image: x, volumes: ['vol:/s']}}\nvolumes: {vol: {driver: local, driver_opts: {type: none, o: bind, device: '" + source + "'}}}\n",
		} {
			if strings.HasPrefix(source, ".") && strings.Contains(text, "device") {
				continue // the engine's driver takes absolute paths only
			}
			if e := servicesError(t, text, map[string]string{"SOCK": "/var/run/docker.sock"}); !strings.Contains(e.Problem, "an engine's socket, which is root on the host") {
				t.Errorf("%q: %v", text, e)
			}
		}
	}
}

func TestNothingOfTheHostsOwnIsShown(t *testing.T) {
	// A bind through which the host can be reached must be refused: a process of the same user writes through /proc/PID/root.
	for _, source := range []string{"/proc", "/proc/1/root", "/proc/self", "/sys", "/dev", "/dev/shm", "/var/lib/docker", "/var/lib/docker/volumes/x", "/var/lib", "/var/lib/containers/storage", "/./proc"} {
		for _, text := range []string{
			one("volumes: ['" + source + ":/s:ro']"),
			"services: {db: {image: x, volumes: ['vol:/s']}}\nvolumes: {vol: {driver: local, driver_opts: {type: none, o: bind, device: '" + source + "'}}}\n",
		} {
			if e := servicesError(t, text, nil); !strings.Contains(e.Problem, "through which the host is reached") {
				t.Errorf("%q: %v", text, e)
			}
		}
		if NeverShown(source) == "" {
			t.Errorf("%s may be shown", source)
		}
	}
	for _, source := range []string{"/srv", "/home/me/proc", "/procs", "/var/lib/dockerish", "/etc", "/home"} {
		if why := NeverShown(source); why != "" {
			t.Errorf("%s: %s", source, why)
		}
	}
}

func TestServicesBindAllowed(t *testing.T) {
	// A bind that holds no engine's socket must be accepted, however near its name is.
	for _, source := range []string{"/srv/data", "/run/mine", "/runner", "/var/lib/data", "/run/user/1000/mine", "/var/running", "./docker.sock.d", "/run/dockerx"} {
		if _, err := parseText(one("volumes: ['"+source+":/s']"), nil); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// emptyIsNone takes an empty list for none, where it means the same: not for what
// an image has words of its own for.
var emptyIsNone = cmp.FilterPath(func(p cmp.Path) bool {
	return !slices.Contains([]string{".Command", ".Entrypoint", ".Test"}, p.Last().String())
}, cmpopts.EquateEmpty())

func FuzzParseServices(f *testing.F) {
	// Arbitrary bytes must be refused as a *ServicesError of one line, or hold nothing but allowed services, confined as all are, that survive the file and Compose's reading of it.
	for _, s := range []string{
		goldenServices, one("privileged: true"), "services:\n  a: {image: x}\n---\nservices: {agent: {image: x}}", "services: {a: {<<: &x {image: b}}}", "services: !reset null",
		one("environment: {A: $TAB, B: $PLAIN}"), one("command: [a, $SPACE]"), one("build: {context: ./x, args: {A}}"),
		one("volumes: ['/srv/a:/b:ro', 'c:/d']") + "volumes: {c: {driver_opts: {type: none, o: bind, device: /srv}}}\n",
		one("environment: {A: \"$$B ${C:-d}\\n\\te\"}"), one("command: [sh, -c, 'echo $$HOME']"), one("healthcheck: {test: [CMD, x], interval: 1s}"),
		"services: {\"0\\n\\e[2J\"}", one("ulimits: {A: {hard}}"), one("build: {context: ./x, args: {A: '$$'}}"), one("ulimits: {nofile: {soft: 1, hard: 2}}"), one("tmpfs: /tmp\n    sysctls: {net.core.somaxconn: 1}"),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseText(text, map[string]string{"TAB": "\tb\nc", "SPACE": "\n b", "PLAIN": "a\n b"})
		if err != nil {
			line := err.Error()
			if !IsServicesError(err) || line != spec.Printable(line, len(line)) || len(line) > 5000 || !strings.HasPrefix(line, servicesFile+":") {
				t.Errorf("%q: %T %q", text, err, err)
			}
			return
		}
		m := model("web", spec.Interactive, spec.Persistent)
		m.Host.Subnet, m.Services = "10.213.0.0/28", s
		p := m.Project()
		for name, svc := range p.Services {
			if name == AgentService {
				continue
			}
			if svc.Privileged || svc.NetworkMode+svc.Pid+svc.Ipc+svc.Uts+svc.UserNSMode+svc.Cgroup+svc.CgroupParent+svc.Runtime != "" ||
				len(svc.Devices)+len(svc.Ports)+len(svc.VolumesFrom)+len(svc.GroupAdd)+len(svc.Secrets)+len(svc.Configs)+len(svc.DeviceCgroupRules) > 0 ||
				len(svc.CapAdd) != 6 || len(svc.CapDrop) != 1 || len(svc.SecurityOpt) != 1 || !Owned(svc.Labels, "web") || svc.ContainerName != "agent-container-web."+name {
				t.Errorf("%q: service %s was accepted: %+v", text, name, svc)
			}
			for _, v := range svc.Volumes {
				if v.Type == "bind" && NeverShown(v.Source) != "" {
					t.Errorf("%q: service %s mounts %s", text, name, v.Source)
				}
			}
		}
		content, err := m.YAML()
		if err != nil {
			t.Fatal(err)
		}
		got := load(t, content)
		for name, svc := range p.Services {
			for k, v := range svc.Environment {
				if v == nil { // not set here, and so not set for Compose either, but by load
					delete(svc.Environment, k)
					delete(got.Services[name].Environment, k)
				}
			}
		}
		if d := sameProject(p, got, emptyIsNone); d != "" {
			t.Errorf("%q does not survive: %s", text, d)
		}
	})
}
