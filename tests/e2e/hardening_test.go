package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A container must be as hard to leave as the model says, seen by the engine.
func TestContainerIsHardened(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.write("config/settings.yaml", "limits:\n  memory: 300m\n  cpus: 0.75\n  pids: 321\n")
	u.env = append(u.env, "TZ=Europe/Prague")
	u.must("up", u.name, "--mode", "idle")

	for field, want := range map[string]string{
		".Config.User":                    `"1000:1000"`,
		".HostConfig.CapAdd":              "null",
		".HostConfig.CapDrop":             `["ALL"]`,
		".HostConfig.SecurityOpt":         `["no-new-privileges:true"]`,
		".HostConfig.Privileged":          "false",
		".HostConfig.Devices":             "null",
		".HostConfig.Binds":               "null",
		".HostConfig.PortBindings":        "{}",
		".HostConfig.PidMode":             `""`,
		".HostConfig.IpcMode":             `"private"`,
		".HostConfig.LogConfig":           `{"Type":"json-file","Config":{"max-file":"5","max-size":"10m"}}`,
		".HostConfig.PidsLimit":           "321",
		".HostConfig.Memory":              "314572800",
		".HostConfig.MemorySwap":          "314572800",
		".HostConfig.NanoCpus":            "750000000",
		".HostConfig.RestartPolicy.Name":  `"unless-stopped"`,
		".Config.StopTimeout":             "15",
		".Path":                           `"/usr/bin/tini"`,
		".NetworkSettings.Networks | len": "1",
		"(index .NetworkSettings.Networks \"agent-container\").GlobalIPv6Address": `""`,
	} {
		if got := u.inspect("{{json (" + field + ")}}"); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	// In the engine's order, which is any.
	ulimits := u.inspect("{{range .HostConfig.Ulimits}}{{.Name}}={{.Soft}}:{{.Hard}} {{end}}")
	if limits := strings.Fields(ulimits); len(limits) != 2 || !slices.Contains(limits, "core=0:0") || !slices.Contains(limits, "nofile=8192:16384") {
		t.Errorf("ulimits are %s, want core=0:0 and nofile=8192:16384", ulimits)
	}
	if bridge := docker(t, "network", "inspect", "agent-container", "--format",
		`{{index .Labels "agent-container.shared"}} {{index .Options "com.docker.network.bridge.enable_icc"}}`); bridge != "true false" {
		t.Errorf("the shared bridge: label and traffic between containers: %s", bridge)
	}
	u.insideIsHardened("Europe/Prague")
}

// insideIsHardened checks from within what the engine promises from without.
func (u *user) insideIsHardened(zone string) {
	u.t.Helper()
	in := func(script string) string {
		u.t.Helper()
		return strings.TrimSpace(u.must("exec", u.name, "--", "sh", "-c", "{ "+script+"; } || true").stdout)
	}
	for script, want := range map[string]string{
		"id":                                "uid=1000(agent) gid=1000(agent) groups=1000(agent)",
		"cat /proc/1/comm":                  "tini",
		"stat -c %u /proc/[0-9]* | sort -u": "1000",
		"grep ^CapEff /proc/1/status /proc/self/status | cut -f2 | sort -u":     "0000000000000000",
		"grep ^CapBnd /proc/1/status /proc/self/status | cut -f2 | sort -u":     "0000000000000000",
		"grep ^NoNewPrivs /proc/1/status /proc/self/status | cut -f2 | sort -u": "1",
		"grep ^Seccomp: /proc/1/status /proc/self/status | cut -f2 | sort -u":   "2",
		"find / -xdev -perm /6000 2>/dev/null":                                  "",
		"find / -xdev -type s -name '*.sock' 2>/dev/null":                       "",
		"find /home/agent /workspace ! -user agent 2>/dev/null":                 "",
		"ulimit -c": "0",
		// Of the first process: to one that exec starts runc may leave the hard limit as
		// the soft one, by a race with Go's runtime (opencontainers/runc#4195).
		"awk '/^Max open files/ {print $4}' /proc/1/limits": "8192",
		"ulimit -Hn":                             "16384",
		"echo $TZ; date +%Z | grep -c '^CES*T$'": zone + "\n1",
		"locale charmap":                         "UTF-8",
		"echo $LANG":                             "C.UTF-8",
		"command -v sudo su | xargs -r ls -l | cut -c4 | sort -u | tr -d x": "",
	} {
		if got := in(script); got != want {
			u.t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// No image may hold a file that gives privileges to who runs it.
func TestImagesHoldNoSetuidFiles(t *testing.T) {
	u := newUser(t)
	for _, image := range u.built("--all") {
		out := docker(t, "run", "--rm", "--label", "agent-container-e2e="+u.name, "--network", "none", "--user", "0", "--entrypoint", "find",
			image, "/", "-xdev", "-perm", "/6000")
		if out != "" {
			t.Errorf("%s has setuid or setgid files: %s", image, out)
		}
	}
}

// built builds images, or finds them there, and returns their names.
func (u *user) built(flags ...string) []string {
	u.t.Helper()
	r := u.must(append([]string{"build", "--json"}, flags...)...)
	var e struct {
		Data struct{ Images []struct{ Image string } }
	}
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || len(e.Data.Images) == 0 {
		u.t.Fatalf("no images: %v: %s", err, r)
	}
	var names []string
	for _, i := range e.Data.Images {
		names = append(names, i.Image)
	}
	return names
}

// Each mode must have its restart policy: a finished job is not resurrected.
func TestRestartPolicies(t *testing.T) {
	for _, c := range []struct{ mode, setting, want string }{
		{"interactive", "", "unless-stopped 0"},
		{"headless", "", "no 0"},
		{"headless", "on-failure:2", "no 0"}, // the guest tries it again, and knows when not to
	} {
		t.Run(c.mode+" "+c.setting, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			if c.setting != "" {
				u.write("config/settings.yaml", "headless_restart: "+c.setting+"\n")
			}
			u.must(append([]string{"up", u.name}, u.modeFlags(c.mode, "persistent")...)...)
			if got := u.inspect("{{.HostConfig.RestartPolicy.Name}} {{.HostConfig.RestartPolicy.MaximumRetryCount}}"); got != c.want {
				t.Errorf("the policy is %s, want %s", got, c.want)
			}
		})
	}
}

// Containers and volumes must carry exactly our labels: the name on all, the
// rest on the agent's container only, and no value of the user's environment.
func TestLabels(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle", "--env", "SECRET=label-canary")
	var labels map[string]string
	if err := json.Unmarshal([]byte(u.inspect("{{json .Config.Labels}}")), &labels); err != nil {
		t.Fatal(err)
	}
	ours := maps.Clone(labels)
	maps.DeleteFunc(ours, func(k, _ string) bool { return !strings.HasPrefix(k, "agent-container.") })
	image := u.inspect("{{.Config.Image}}")
	delete(ours, "agent-container.built") // the image's own
	for _, present := range []string{"agent-container.version", "agent-container.spec"} {
		if ours[present] == "" {
			t.Errorf("label %s is empty", present)
		}
		delete(ours, present)
	}
	if diff := cmp.Diff(map[string]string{"agent-container.name": u.name, "agent-container.image": image}, ours); diff != "" {
		t.Error(diff)
	}
	var spec map[string]any
	if err := json.Unmarshal([]byte(labels["agent-container.spec"]), &spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"SECRET"}, spec["env_names"]); diff != "" {
		t.Error(diff)
	}
	if everything := docker(t, "inspect", u.container()); contains(everything, "label-canary") {
		t.Error("inspect shows the value of a variable")
	}

	volumes := strings.Fields(docker(t, "volume", "ls", "--quiet", "--filter", "label=agent-container.name="+u.name))
	var suffixes []string
	for _, v := range volumes {
		suffixes = append(suffixes, strings.TrimPrefix(v, u.container()+"-"))
		keys := docker(t, "volume", "inspect", v, "--format", `{{range $k, $v := .Labels}}{{$k}} {{end}}`)
		for _, k := range strings.Fields(keys) {
			if strings.HasPrefix(k, "agent-container.") && k != "agent-container.name" {
				t.Errorf("volume %s has label %s", v, k)
			}
		}
	}
	slices.Sort(suffixes)
	want := []string{"claude", "codex", "opencode", "opencode-data", "pi", "runs", "secrets", "shellenv", "ssh", "tmux", "workspace"}
	if diff := cmp.Diff(want, suffixes); diff != "" {
		t.Error(diff)
	}
}
