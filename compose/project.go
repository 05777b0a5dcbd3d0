package compose

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/agent-container/agent-container/entrypoint"
	"github.com/agent-container/agent-container/spec"
)

// StopGrace is how long a container may take to end after TERM. The engine's
// ten seconds are too short for an agent that finishes a tool call.
const StopGrace = 15 * time.Second

// Host is what a model needs to know of where it will run.
type Host struct {
	// StartInterval is whether the engine knows a health check's
	// start_interval (Docker 25 and later; Compose refuses it elsewhere).
	StartInterval bool
	// SSHPort is the host's port for sshd, needed when the spec has SSH.
	SSHPort int
	// Subnet is the deployment's own /28, needed when it has its own network.
	Subnet string
}

// Model is a deployment ready to be written as a Compose project.
type Model struct {
	Spec     spec.Spec
	Image    string // the agent image's name
	Version  string // of the CLI
	Host     Host
	Services *Services // nil without a services file
	Gateway  string    // the gateway image's name, needed when the spec has egress
}

// Project builds the Compose project of m, by assignment: compose-go moves
// fields between embedded structs from version to version, which breaks keyed
// literals and leaves assignments alone.
func (m Model) Project() *types.Project {
	p := &types.Project{Name: ProjectName(m.Spec.Name)}
	p.Services = types.Services{AgentService: m.agentService()}
	p.Volumes = types.Volumes{}
	for _, v := range spec.Volumes(m.Spec.Workspace) {
		p.Volumes[v.Suffix] = types.VolumeConfig{Name: VolumeName(m.Spec.Name, v.Suffix), Labels: m.ownLabels()}
	}
	p.Networks = types.Networks{"default": m.network()}
	if m.Services != nil {
		m.addServices(p)
	}
	if m.Spec.Egress != nil {
		m.addGateway(p)
	}
	return p
}

// ownLabels marks what belongs to this deployment.
func (m Model) ownLabels() types.Labels { return types.Labels{LabelName: m.Spec.Name} }

func (m Model) agentService() types.ServiceConfig {
	s := m.Spec
	var svc types.ServiceConfig
	svc.Name = AgentService
	svc.ContainerName = ProjectName(s.Name)
	svc.Hostname = s.Name
	svc.Image = m.Image
	svc.PullPolicy = types.PullPolicyNever // it exists nowhere but here
	svc.User = fmt.Sprintf("%d:%d", spec.ContainerUID, spec.ContainerUID)
	svc.WorkingDir = spec.ContainerWorkspace
	svc.Labels = m.ownLabels().Add(LabelVersion, m.Version).Add(LabelImage, m.Image).Add(LabelSpec, s.Label())
	svc.Environment = m.environment()
	// A job is tried again by the guest, which knows why it ended: the engine
	// would also run again what timed out, was killed or had succeeded before the
	// engine itself was restarted, and every attempt is billed.
	svc.Restart = types.RestartPolicyNo
	if s.Mode != spec.Headless {
		svc.Restart = types.RestartPolicyUnlessStopped
	}
	if s.Mode != spec.Headless || s.ClonesBySSH() {
		svc.HealthCheck = m.healthCheck()
	}
	grace := types.Duration(StopGrace)
	svc.StopGracePeriod = &grace
	svc.Volumes = m.mounts()
	svc.Networks = map[string]*types.ServiceNetworkConfig{"default": nil}
	if s.HasSSH() {
		svc.Ports = []types.ServicePortConfig{{Mode: "ingress", HostIP: s.SSHBind, Target: spec.SSHPort, Published: strconv.Itoa(m.Host.SSHPort), Protocol: "tcp"}}
	}
	harden(&svc)
	svc.PidsLimit = s.Limits.Pids
	svc.MemLimit = types.UnitBytes(s.Limits.MemoryBytes)
	svc.MemSwapLimit = types.UnitBytes(s.Limits.MemoryBytes) // equal: no swap beyond the limit
	svc.CPUS = float32(s.Limits.CPUs)
	return svc
}

// harden gives svc what every container of ours has.
func harden(svc *types.ServiceConfig) {
	svc.CapDrop = []string{"ALL"}
	svc.SecurityOpt = []string{"no-new-privileges:true"} // setuid programs gain nothing
	svc.Ulimits = map[string]*types.UlimitsConfig{
		// The engine's default may be infinite, which makes some programs close
		// a billion descriptors; more than the engine itself has is refused.
		"nofile": {Soft: 8192, Hard: 16384},
		"core":   {Single: 0}, // a core dump holds the environment
	}
	// json-file is the one driver every engine can read back; unbounded by
	// default, it fills the host's disk.
	svc.Logging = &types.LoggingConfig{Driver: "json-file", Options: types.Options{"max-size": "10m", "max-file": "5"}}
}

func (m Model) environment() types.MappingWithEquals {
	params := entrypoint.Params{Mode: m.Spec.Mode, Agent: m.Spec.Agent, Name: m.Spec.Name, CloneURL: m.Spec.Repo}
	if m.Spec.Egress != nil {
		params.Egress = string(m.Spec.Egress.Enforcement)
	}
	env := types.MappingWithEquals{"LANG": ptr("C.UTF-8"), "TZ": ptr(m.Spec.Timezone)}
	for k, v := range params.Environment() {
		env[k] = ptr(v)
	}
	return env
}

// healthCheck reports a set-up that failed or waits, so that list sees it in what inspect
// says and never enters a container. It runs every second until the container
// is ready and rarely afterwards: a state that was reached does not change.
func (m Model) healthCheck() *types.HealthCheckConfig {
	h := &types.HealthCheckConfig{
		Test:        types.HealthCheckTest{"CMD", spec.ContainerGuest, "status", "check"},
		Interval:    duration(5 * time.Minute),
		Timeout:     duration(10 * time.Second),
		StartPeriod: duration(60 * time.Second),
		Retries:     ptr(uint64(1)),
	}
	if m.Spec.Repo != "" { // a clone may take long
		h.StartPeriod = duration(30 * time.Minute)
	}
	if m.Host.StartInterval {
		h.StartInterval = duration(time.Second)
	} else {
		h.Interval = duration(30 * time.Second) // old engines have no other pace
	}
	return h
}

func (m Model) mounts() []types.ServiceVolumeConfig {
	var list []types.ServiceVolumeConfig
	for _, v := range spec.Volumes(m.Spec.Workspace) {
		list = append(list, types.ServiceVolumeConfig{Type: types.VolumeTypeVolume, Source: v.Suffix, Target: v.Path})
	}
	if m.Spec.Workspace == spec.Bind {
		list = append(list, bind(m.Spec.WorkspaceDir, spec.ContainerWorkspace))
	}
	for _, b := range m.Spec.Mounts {
		list = append(list, bind(b.Source, b.Path))
	}
	return list
}

// bind shows a directory of the host, read-only: it is an input.
func bind(source, target string) types.ServiceVolumeConfig {
	return types.ServiceVolumeConfig{
		Type: types.VolumeTypeBind, Source: filepath.Clean(source), Target: target, ReadOnly: true,
		// A directory that is missing must fail, not appear as root's.
		Bind: &types.ServiceVolumeBind{CreateHostPath: false},
	}
}

// network is the shared bridge, which the engine package makes beforehand, or
// an own one with an explicit subnet: Docker's default pools end at about 30.
func (m Model) network() types.NetworkConfig {
	if !m.OwnNetwork() {
		return types.NetworkConfig{Name: SharedNetwork, External: true}
	}
	n := types.NetworkConfig{Name: ProjectName(m.Spec.Name), Driver: "bridge", Labels: m.ownLabels()}
	n.Ipam = types.IPAMConfig{Config: []*types.IPAMPool{{Subnet: m.Host.Subnet}}}
	return n
}

// YAML returns the project as the file that Compose reads. compose-go does not
// escape "$", which Compose would interpolate, so it is doubled here, once, as
// docker compose config does.
func (m Model) YAML() ([]byte, error) {
	b, err := m.Project().MarshalYAML()
	if err != nil {
		return nil, fmt.Errorf("compose model of %s: %w", m.Spec.Name, err)
	}
	return bytes.ReplaceAll(b, []byte("$"), []byte("$$")), nil
}

func ptr[T any](v T) *T { return &v }

func duration(d time.Duration) *types.Duration { return ptr(types.Duration(d)) }
