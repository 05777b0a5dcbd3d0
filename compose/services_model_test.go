package compose

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

// withServices is a deployment with the services of text.
func withServices(t *testing.T, mode spec.Mode, text string) Model {
	t.Helper()
	m := model("web", mode, spec.Persistent)
	m.Host.Subnet = "10.213.0.0/28"
	m.Services = parse(t, text, nil)
	return m
}

func TestServicesAreConfined(t *testing.T) {
	// A service must keep at most six capabilities, carry our label and name, and live on the deployment's own network.
	p := withServices(t, spec.Interactive, "services:\n  db: {image: x}\n  cache: {image: y, pids_limit: 7}\n").Project()
	for name, pids := range map[string]int64{"db": 2048, "cache": 7} {
		svc := p.Services[name]
		if d := cmp.Diff([]string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"}, slices.Sorted(slices.Values(svc.CapAdd))); d != "" {
			t.Errorf("%s: cap_add %s", name, d)
		}
		if d := cmp.Diff([]string{"ALL"}, svc.CapDrop); d != "" {
			t.Errorf("%s: cap_drop %s", name, d)
		}
		if d := cmp.Diff(types.Labels{"agent-container.name": "web"}, svc.Labels); d != "" {
			t.Errorf("%s: labels %s", name, d)
		}
		if d := cmp.Diff(map[string]*types.ServiceNetworkConfig{"default": nil}, svc.Networks); d != "" {
			t.Errorf("%s: networks %s", name, d)
		}
		if svc.ContainerName != "agent-container-web."+name || svc.PidsLimit != pids || len(svc.SecurityOpt) != 1 || svc.Logging == nil {
			t.Errorf("%s: container %s, pids %d, security_opt %v, logging %v", name, svc.ContainerName, svc.PidsLimit, svc.SecurityOpt, svc.Logging)
		}
	}
}

func TestServicesNetwork(t *testing.T) {
	// Without services the shared bridge must be used as it is; with them the network must be the deployment's own, labelled, with its subnet.
	shared := types.Networks{"default": {Name: "agent-container", External: true}}
	if d := cmp.Diff(shared, model("web", spec.Idle, spec.Persistent).Project().Networks); d != "" {
		t.Error(d)
	}
	own := types.NetworkConfig{Name: "agent-container-web", Driver: "bridge", Labels: types.Labels{"agent-container.name": "web"}}
	own.Ipam.Config = []*types.IPAMPool{{Subnet: "10.213.0.0/28"}}
	if d := cmp.Diff(types.Networks{"default": own}, withServices(t, spec.Idle, one("")).Project().Networks); d != "" {
		t.Error(d)
	}
}

func TestServicesRestart(t *testing.T) {
	// The services of a job must end with it; the others must come back with the agent.
	for mode, want := range map[spec.Mode]string{spec.Headless: "no", spec.Interactive: "unless-stopped", spec.Idle: "unless-stopped"} {
		if got := withServices(t, mode, one("")).Project().Services["db"].Restart; got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
}

func TestAgentWaitsForServices(t *testing.T) {
	// The agent must wait until services with a health check are healthy, and until the others are started.
	p := withServices(t, spec.Headless, "services:\n  db: {image: x, healthcheck: {test: [CMD, ok]}}\n  off: {image: x, healthcheck: {disable: true}}\n  web: {image: x}\n").Project()
	want := types.DependsOnConfig{
		"db":  {Condition: "service_healthy", Required: true},
		"off": {Condition: "service_started", Required: true},
		"web": {Condition: "service_started", Required: true},
	}
	if d := cmp.Diff(want, p.Services[AgentService].DependsOn); d != "" {
		t.Error(d)
	}
}

func TestServicesKeepWhatIsAllowed(t *testing.T) {
	// What an allowed key says must take effect: interpolation, env files, relative binds, ulimits beside ours.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "db.env"), []byte("FROM_FILE=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := one("env_file: db.env\n    environment: {TAG: 'v${TAG}', RAW: 'a$$b', GIVEN: }\n    volumes: ['./init:/init:ro']\n    ulimits: {memlock: -1, core: 5}\n    build: ./sub")
	s, err := ParseServices(context.Background(), "web", servicesFile, dir, []byte(text), map[string]string{"TAG": "17", "GIVEN": "g"})
	if err != nil {
		t.Fatal(err)
	}
	m := model("web", spec.Idle, spec.Persistent)
	m.Services = s
	svc := m.Project().Services["db"]
	env := map[string]string{}
	for k, v := range svc.Environment {
		env[k] = *v
	}
	if d := cmp.Diff(map[string]string{"FROM_FILE": "1", "TAG": "v17", "RAW": "a$b", "GIVEN": "g"}, env); d != "" {
		t.Error(d)
	}
	if v := svc.Volumes[0]; v.Source != filepath.Join(dir, "init") || !v.ReadOnly || svc.Build.Context != filepath.Join(dir, "sub") {
		t.Errorf("volume %+v, build context %s", v, svc.Build.Context)
	}
	if svc.Ulimits["memlock"].Single != -1 || svc.Ulimits["core"].Single != 5 || svc.Ulimits["nofile"].Hard != 16384 {
		t.Errorf("ulimits %+v", svc.Ulimits)
	}
	if agent := m.Project().Services[AgentService].Ulimits; agent["core"].Single != 0 || agent["memlock"] != nil {
		t.Errorf("the agent's ulimits are a service's: %+v", agent)
	}
}

func TestServiceVolumes(t *testing.T) {
	// Volumes of services must get names and labels of ours, never those of another volume; external and anonymous ones stay as they are.
	m := withServices(t, spec.Idle, `
services:
  db: {image: x, volumes: ['data:/a', 'services-data:/b', 'claude:/c', 'mine:/d', '/e']}
volumes:
  data: {name: agent-container-other-claude, labels: {agent-container.name: other}}
  services-data:
  claude: {}
  mine: {external: true, name: kept}
`)
	p := m.Project()
	names := map[string]string{}
	for _, v := range p.Services["db"].Volumes {
		names[v.Target] = p.Volumes[v.Source].Name
		if own := v.Target != "/d" && v.Target != "/e"; own != Owned(p.Volumes[v.Source].Labels, "web") {
			t.Errorf("%s: labels %v", v.Target, p.Volumes[v.Source].Labels)
		}
	}
	want := map[string]string{
		"/a": "agent-container-web.data", "/b": "agent-container-web.services-data", "/c": "agent-container-web.claude", "/d": "kept", "/e": "",
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	if p.Volumes["claude"].Name != "agent-container-web-claude" {
		t.Errorf("the agent's volume became %s", p.Volumes["claude"].Name)
	}
	if again := m.Project(); cmp.Diff(p, again) != "" {
		t.Errorf("a second call gives another project: %s", cmp.Diff(p, again))
	}
}

func TestContainerNames(t *testing.T) {
	// The containers of a deployment must be the agent's and one per service, in order.
	if d := cmp.Diff([]string{"agent-container-web"}, model("web", spec.Idle, spec.Persistent).ContainerNames()); d != "" {
		t.Error(d)
	}
	m := withServices(t, spec.Idle, "services:\n  z: {image: x}\n  a: {image: x}\n")
	if d := cmp.Diff([]string{"agent-container-web", "agent-container-web.a", "agent-container-web.z"}, m.ContainerNames()); d != "" {
		t.Error(d)
	}
}
