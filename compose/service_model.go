package compose

import (
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/agent-container/agent-container/spec"
)

// serviceCapabilities is the most a service may have: what the entrypoints of
// ordinary images need to give up root. Docker's default also holds NET_RAW,
// which suffices to set a packet's mark.
var serviceCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"}

// ContainerNames lists the names of the containers of m.
func (m Model) ContainerNames() []string {
	names := []string{ProjectName(m.Spec.Name)}
	if m.Services != nil {
		for _, s := range m.Services.Names() {
			names = append(names, ServiceContainer(m.Spec.Name, s))
		}
	}
	if m.Spec.Egress != nil {
		names = append(names, GatewayContainer(m.Spec.Name))
	}
	return names
}

// addServices puts the user's services beside the agent, on its network, with
// our labels and limits. The agent waits for those with a health check.
func (m Model) addServices(p *types.Project) {
	agent := p.Services[AgentService]
	agent.DependsOn = types.DependsOnConfig{}
	for _, name := range m.Services.Names() {
		svc := m.Services.project.Services[name]
		svc.ContainerName = ServiceContainer(m.Spec.Name, name)
		svc.Labels = m.ownLabels()
		svc.Networks = map[string]*types.ServiceNetworkConfig{"default": nil}
		ulimits := svc.Ulimits
		harden(&svc)
		maps.Copy(svc.Ulimits, ulimits)
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
	}
	for _, service := range m.Services.Names() {
		svc := p.Services[service]
		svc.Volumes = slices.Clone(svc.Volumes)
		for i, mount := range svc.Volumes {
			if mount.Type == types.VolumeTypeVolume && mount.Source != "" { // else anonymous
				svc.Volumes[i].Source = "services-" + mount.Source
			}
		}
		p.Services[service] = svc
	}
}
