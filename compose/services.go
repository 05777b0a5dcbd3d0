package compose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"gopkg.in/yaml.v3"

	"github.com/agent-container/agent-container/spec"
)

// Services are the user's own sidecars, read and checked.
type Services struct {
	project *types.Project
}

// Names returns the services' names in order.
func (s *Services) Names() []string { return slices.Sorted(maps.Keys(s.project.Services)) }

// ServicesError is a refusal of a services file.
type ServicesError struct {
	File    string
	Line    int // 0 where it concerns the file as a whole
	Problem string
	Hint    string
}

func (e *ServicesError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Problem)
}

// What a services file may hold. Everything else is refused by name: a list of
// what is forbidden would miss the key that a later Compose version adds.
var (
	topKeys     = []string{"services", "volumes", "version"}
	serviceKeys = []string{
		"build", "command", "cpus", "depends_on", "entrypoint", "env_file", "environment", "expose", "healthcheck",
		"hostname", "image", "init", "mem_limit", "mem_reservation", "pids_limit", "platform", "pull_policy",
		"read_only", "shm_size", "stop_grace_period", "stop_signal", "sysctls", "tmpfs", "ulimits", "user",
		"volumes", "working_dir",
	}
	volumeKeys = []string{"driver", "driver_opts", "external", "labels", "name"}
)

// reservedServices are names of our own.
var reservedServices = []string{AgentService, "egress"}

// serviceCapabilities is the most a service may have: what the entrypoints of
// ordinary images need to give up root. Docker's default also holds NET_RAW,
// which suffices to set a packet's mark.
var serviceCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"}

// ParseServices reads the user's own services file. name is the deployment's,
// file is what errors call it, dir is what relative paths in it start from and
// env is what it may interpolate. The error is a *ServicesError.
func ParseServices(ctx context.Context, name, file, dir string, content []byte, env map[string]string) (*Services, error) {
	if err := checkServiceKeys(file, content); err != nil {
		return nil, err
	}
	details := types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: file, Content: content}},
		Environment: env,
	}
	project, err := loader.LoadWithContext(ctx, details, func(o *loader.Options) {
		o.SetProjectName(ProjectName(name), true)
		o.SkipInclude, o.SkipExtends = true, true
	})
	if err != nil {
		return nil, &ServicesError{File: file, Problem: firstLine(err.Error())}
	}
	s := &Services{project: project}
	return s, s.check(file)
}

// checkServiceKeys holds the file's keys against the allow-lists, on the text
// itself, so that an error has a line.
func checkServiceKeys(file string, content []byte) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil {
		return &ServicesError{File: file, Problem: "not YAML: " + strings.TrimPrefix(firstLine(err.Error()), "yaml: ")}
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return &ServicesError{File: file, Problem: "holds no mapping with services"}
	}
	root := doc.Content[0]
	if err := onlyKeys(file, "", root, topKeys); err != nil {
		return err
	}
	services := child(root, "services")
	if services == nil || services.Kind != yaml.MappingNode || len(services.Content) == 0 {
		return &ServicesError{File: file, Line: root.Line, Problem: "declares no services"}
	}
	for i := 0; i+1 < len(services.Content); i += 2 {
		key, value := services.Content[i], services.Content[i+1]
		if slices.Contains(reservedServices, key.Value) {
			return &ServicesError{File: file, Line: key.Line, Problem: fmt.Sprintf("service %q is our own", key.Value), Hint: "give it another name"}
		}
		if err := onlyKeys(file, "services."+key.Value, value, serviceKeys); err != nil {
			return err
		}
	}
	return checkVolumeKeys(file, child(root, "volumes"))
}

func checkVolumeKeys(file string, volumes *yaml.Node) error {
	if volumes == nil || volumes.Kind != yaml.MappingNode {
		return nil // nothing, or loading says what is wrong
	}
	for i := 0; i+1 < len(volumes.Content); i += 2 {
		if value := volumes.Content[i+1]; value.Kind == yaml.MappingNode {
			if err := onlyKeys(file, "volumes."+volumes.Content[i].Value, value, volumeKeys); err != nil {
				return err
			}
		}
	}
	return nil
}

// onlyKeys refuses a mapping with a key that is not allowed. Aliases and merge
// keys are refused too: they would bring keys past this check.
func onlyKeys(file, where string, node *yaml.Node, allowed []string) error {
	if node.Kind != yaml.MappingNode {
		return &ServicesError{File: file, Line: node.Line, Problem: strings.TrimSpace(where + " is not a mapping")}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if slices.Contains(allowed, key.Value) && key.Kind == yaml.ScalarNode {
			continue
		}
		name := strings.TrimPrefix(where+"."+key.Value, ".")
		e := &ServicesError{File: file, Line: key.Line, Problem: fmt.Sprintf("key %q is not allowed", name)}
		if near := spec.Nearest(key.Value, allowed); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		} else {
			e.Hint = "allowed are " + strings.Join(allowed, ", ")
		}
		return e
	}
	return nil
}

// child returns the value of key in a mapping, or nil.
func child(node *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// check refuses what an allowed key can still hold.
func (s *Services) check(file string) error {
	for _, name := range s.Names() {
		svc := s.project.Services[name]
		for _, v := range svc.Volumes {
			if v.Type == types.VolumeTypeBind && holdsSocket(v.Source) {
				return &ServicesError{File: file, Problem: fmt.Sprintf("service %q mounts %s: an engine's socket is root on the host, read-only too", name, v.Source)}
			}
		}
		if svc.Build != nil && (svc.Build.Privileged || len(svc.Build.Entitlements) > 0 || svc.Build.Network == "host") {
			return &ServicesError{File: file, Problem: fmt.Sprintf("service %q asks for a privileged build", name)}
		}
		for k := range svc.Sysctls {
			if !strings.HasPrefix(k, "net.") {
				return &ServicesError{File: file, Problem: fmt.Sprintf("service %q sets sysctl %s: only net.* is its own", name, k)}
			}
		}
	}
	for name, v := range s.project.Volumes {
		// The local driver's options can make a volume of any host directory.
		if device := v.DriverOpts["device"]; device != "" && holdsSocket(device) {
			return &ServicesError{File: file, Problem: fmt.Sprintf("volume %q is %s: an engine's socket is root on the host", name, device)}
		}
	}
	return nil
}

// holdsSocket reports whether a host path is, or contains, the place of an
// engine's socket.
func holdsSocket(source string) bool {
	clean := filepath.ToSlash(filepath.Clean(source))
	base := path.Base(clean)
	if strings.HasSuffix(base, ".sock") || base == "docker.sock" {
		return true
	}
	for _, dir := range []string{"/", "/run", "/var", "/var/run"} {
		if clean == dir {
			return true
		}
	}
	for _, dir := range []string{"/run/docker", "/run/podman", "/run/containerd", "/var/run/docker", "/var/run/podman", "/var/run/containerd"} {
		if clean == dir || strings.HasPrefix(clean, dir+"/") {
			return true
		}
	}
	return strings.HasPrefix(clean, "/run/user/") && strings.Contains(clean+"/", "/podman/")
}

// ContainerNames lists the names of the containers of m.
func (m Model) ContainerNames() []string {
	names := []string{ProjectName(m.Spec.Name)}
	if m.Services != nil {
		for _, s := range m.Services.Names() {
			names = append(names, serviceContainer(m.Spec.Name, s))
		}
	}
	return names
}

func serviceContainer(name, service string) string { return ProjectName(name) + "-" + service }

// addServices puts the user's services beside the agent, on its network, with
// our labels and limits. The agent waits for those with a health check.
func (m Model) addServices(p *types.Project) {
	agent := p.Services[AgentService]
	agent.DependsOn = types.DependsOnConfig{}
	for _, name := range m.Services.Names() {
		svc := m.Services.project.Services[name]
		svc.ContainerName = serviceContainer(m.Spec.Name, name)
		svc.Labels = m.ownLabels()
		svc.Networks = map[string]*types.ServiceNetworkConfig{"default": nil}
		harden(&svc)
		svc.CapAdd = serviceCapabilities
		if svc.PidsLimit == 0 {
			svc.PidsLimit = m.Spec.Limits.Pids
		}
		svc.Restart = types.RestartPolicyNo // a job's services end with it
		if m.Spec.Mode != spec.Headless {
			svc.Restart = types.RestartPolicyUnlessStopped
		}
		condition := types.ServiceConditionStarted
		if svc.HealthCheck != nil && !svc.HealthCheck.Disable {
			condition = types.ServiceConditionHealthy
		}
		agent.DependsOn[name] = types.ServiceDependency{Condition: condition, Required: true}
		p.Services[name] = svc
	}
	p.Services[AgentService] = agent
	m.addServiceVolumes(p)
}

// addServiceVolumes declares the services' named volumes under names of ours,
// with our label; external ones stay the user's.
func (m Model) addServiceVolumes(p *types.Project) {
	for _, name := range slices.Sorted(maps.Keys(m.Services.project.Volumes)) {
		v := m.Services.project.Volumes[name]
		key := "services-" + name
		if !bool(v.External) {
			v.Name = ServiceVolumeName(m.Spec.Name, name)
			v.Labels = m.ownLabels()
		}
		p.Volumes[key] = v
		for _, service := range m.Services.Names() {
			svc := p.Services[service]
			svc.Volumes = slices.Clone(svc.Volumes)
			for i, mount := range svc.Volumes {
				if mount.Type == types.VolumeTypeVolume && mount.Source == name {
					svc.Volumes[i].Source = key
				}
			}
			p.Services[service] = svc
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// IsServicesError reports whether err is a refusal of a services file.
func IsServicesError(err error) bool {
	var e *ServicesError
	return errors.As(err, &e)
}
