package compose

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata; read the difference afterwards")

// model is a deployment of name with the defaults.
func model(name string, mode spec.Mode, w spec.Workspace) Model {
	s := spec.Spec{
		Name: name, Agent: "claude", Mode: mode, Workspace: w, Limits: spec.Limits{Pids: 2048}, RecordTask: true,
		BaseImage: "debian:trixie-slim", CABundle: "auto", Timezone: "Europe/Berlin",
	}
	if w == spec.Bind {
		s.WorkspaceDir = "/srv/web"
	}
	return Model{Spec: s, Image: ImageName("claude", "0123456789abcdef"), Version: "v1.2.3", Host: Host{StartInterval: true}}
}

// nasty holds what YAML, Compose's interpolation and a shell would change.
const nasty = "$HOME ${HOME} ${X:-y} ${X:?z} $$ $ \"q\" 'q' \\ # : - é 🙂 \t \u0085 \u2028 %s {{.X}}\nsecond line\n"

const goldenServices = `
services:
  db:
    image: postgres:${TAG}
    environment: {PASSWORD: 'a$$b "c"', SCRIPT: "echo $$HOME\n\ttwo\n", HOST: "${UNQUOTED}"}
    volumes: ["data:/var/lib/postgresql/data", "./init:/init:ro", "/anonymous"]
    healthcheck: {test: [CMD, pg_isready], interval: 1s}
    ulimits: {memlock: -1}
  models:
    build: ./models
    command: ["--port", "8080"]
    depends_on: [db]
    pids_limit: 7
    volumes: [{type: volume, source: shared, target: /shared}]
volumes:
  data: {}
  shared: {external: true, name: my-own}
`

// golden are the models whose files lie in testdata.
func golden(t *testing.T) map[string]Model {
	all := map[string]Model{}
	for _, mode := range spec.Modes {
		for _, w := range spec.Workspaces {
			all[string(mode)+"-"+string(w)] = model("web", mode, w)
		}
	}
	m := model("web", spec.Headless, spec.Persistent)
	m.Spec.Limits = spec.Limits{MemoryBytes: 512 << 20, CPUs: 1.1, Pids: 99}
	m.Spec.Restart = spec.Restart{OnFailure: true, Max: 3}
	m.Host.StartInterval = false
	all["limits"] = m

	m = model("web", spec.Interactive, spec.Persistent)
	m.Host.Subnet = "10.213.0.16/28"
	m.Services = parse(t, goldenServices, map[string]string{"TAG": "17", "UNQUOTED": "$HOME ${HOME}"})
	all["services"] = m

	m = model("web", spec.Interactive, spec.Persistent)
	m.Host.Subnet, m.Host.SSHPort, m.Gateway = "10.213.0.16/28", 22001, GatewayImage("0123456789abcdef")
	m.Spec.SSHBind, m.Spec.Egress = "127.0.0.1", &spec.Egress{Enforcement: spec.Strict, Allow: []string{"provider:agent"}}
	all["egress"] = m

	m.Services = parse(t, goldenServices, map[string]string{"TAG": "17", "UNQUOTED": "$HOME ${HOME}"})
	m.Spec.Egress = &spec.Egress{Enforcement: spec.Advisory, Allow: []string{"service:models:8080"}, Outside: []string{"models"}}
	m.Spec.Mode, m.Host.StartInterval = spec.Headless, false
	all["egress-services"] = m

	m = model("web", spec.Idle, spec.Persistent)
	m.Spec.Mounts = []spec.Mount{{Source: "/srv/lib", Path: "/mnt/lib"}, {Source: "/srv/data", Path: "/opt/data set"}}
	all["mounts"] = m

	m = model("web", spec.Interactive, spec.Bind)
	m.Host.StartInterval = false
	m.Spec.WorkspaceDir, m.Spec.Timezone, m.Spec.CABundle = "/srv/"+nasty, nasty, "/ca/"+nasty
	m.Spec.EnvNames, m.Spec.EnvFiles = []string{nasty, "$A"}, []string{"/env/" + nasty}
	m.Spec.Mounts = []spec.Mount{{Source: "/mount/" + nasty, Path: "/mnt/$HOME ${X} 'q' # : é"}}
	all["strings"] = m
	return all
}

// load reads a Compose file as Compose does, with variables that would show an
// interpolation.
func load(t *testing.T, content []byte) *types.Project {
	t.Helper()
	p, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  "/elsewhere",
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: content}},
		Environment: map[string]string{"HOME": "INTERPOLATED", "X": "INTERPOLATED", "A": "INTERPOLATED", "q": "INTERPOLATED"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sameProject compares what a project declares, not where it was loaded.
func sameProject(want, got *types.Project, options ...cmp.Option) string {
	bare := func(p *types.Project) types.Project {
		return types.Project{Name: p.Name, Services: p.Services, Networks: p.Networks, Volumes: p.Volumes, Secrets: p.Secrets, Configs: p.Configs, Extensions: p.Extensions}
	}
	return cmp.Diff(bare(want), bare(got), options...)
}

func TestGolden(t *testing.T) {
	// The file of every mode and workspace must be exactly the golden one, and Compose must read back every string unchanged.
	for name, m := range golden(t) {
		t.Run(name, func(t *testing.T) {
			got, err := m.YAML()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("%s differs; go test ./compose -update rewrites it: %s", path, d)
			}
			if d := sameProject(m.Project(), load(t, want)); d != "" {
				t.Errorf("%s reads back differently: %s", path, d)
			}
		})
	}
}

func TestGoldenFilesAreOwned(t *testing.T) {
	// Every golden file must belong to a model, so that none goes stale.
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	models := golden(t)
	for _, f := range files {
		if _, ok := models[strings.TrimSuffix(filepath.Base(f), ".yaml")]; !ok {
			t.Errorf("%s belongs to no model", f)
		}
	}
}

func TestSpecOf(t *testing.T) {
	// The spec must come back from the labels of the model's container, also after Compose has read the file.
	for name, m := range golden(t) {
		content, err := m.YAML()
		if err != nil {
			t.Fatal(err)
		}
		labels := load(t, content).Services[AgentService].Labels
		got, err := SpecOf(labels)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m.Spec, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if labels[LabelImage] != m.Image || labels[LabelVersion] != m.Version || !Owned(labels, m.Spec.Name) || Owned(labels, "other") {
			t.Errorf("%s: labels %v", name, labels)
		}
	}
}

func TestModelHoldsNoSecret(t *testing.T) {
	// The file must hold names of the user's environment only: no value from the caller's environment or from an env file.
	const canary = "canary-5e1f"
	t.Setenv("API_KEY", canary)
	file := filepath.Join(t.TempDir(), "secrets.env")
	if err := os.WriteFile(file, []byte("TOKEN="+canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := model("web", spec.Headless, spec.Persistent)
	m.Spec.EnvNames, m.Spec.EnvFiles = []string{"API_KEY"}, []string{file}
	content, err := m.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(content); strings.Contains(text, canary) || !strings.Contains(text, "API_KEY") || !strings.Contains(text, file) {
		t.Errorf("the canary, or not the names, are in:\n%s", text)
	}
	var names []string
	for name := range m.Project().Services[AgentService].Environment {
		names = append(names, name)
	}
	slices.Sort(names)
	if d := cmp.Diff([]string{"AGENT_CONTAINER_AGENT", "AGENT_CONTAINER_MODE", "AGENT_CONTAINER_NAME", "LANG", "TZ"}, names); d != "" {
		t.Errorf("environment of the container: %s", d)
	}
}
