package compose

import (
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/agent-container/agent-container/spec"
)

// gatewayMemory bounds the gateway: it takes half of that with every connection
// that it allows (docs/egress-tests.md).
const gatewayMemory = 384 << 20

// OwnNetwork reports whether the deployment has a network of its own and not the
// shared bridge.
func (m Model) OwnNetwork() bool { return m.Services != nil || m.Spec.Egress != nil }

// addGateway puts the agent and the services that are not outside into the
// network namespace of a gateway, which takes over network, name and port.
func (m Model) addGateway(p *types.Project) {
	gateway := m.gatewayService()
	agent := p.Services[AgentService]
	gateway.Ports = agent.Ports
	if m.Spec.HasSSH() { // the engine publishes nothing for a container in another's namespace
		agent.Labels = agent.Labels.Add(LabelSSH, net.JoinHostPort(m.Spec.SSHBind, strconv.Itoa(m.Host.SSHPort)))
	}
	for _, name := range p.ServiceNames() {
		svc := p.Services[name]
		if slices.Contains(m.Spec.Egress.Outside, name) {
			continue
		}
		svc.NetworkMode = types.ServicePrefix + GatewayService
		svc.Networks, svc.Ports, svc.Hostname, svc.Expose = nil, nil, "", nil // the gateway's count
		if svc.DependsOn == nil {
			svc.DependsOn = types.DependsOnConfig{}
		}
		// A service sends as soon as it runs; the agent waits for the gateway's own
		// proof, also when a restart asks nobody for an order.
		condition := types.ServiceConditionHealthy
		if name == AgentService {
			condition = types.ServiceConditionStarted
		} else {
			// The namespace is open until the gateway's rules are there. Only the agent
			// can wait for them, so no engine may start anything else by itself.
			svc.Restart = types.RestartPolicyNo
			// The hosts file is one for all in a namespace.
			if gateway.ExtraHosts == nil {
				gateway.ExtraHosts = types.HostsList{}
			}
			gateway.ExtraHosts[name] = []string{"127.0.0.1"}
		}
		svc.DependsOn[GatewayService] = types.ServiceDependency{Condition: condition, Required: true}
		p.Services[name] = svc
	}
	p.Services[GatewayService] = gateway
}

func (m Model) gatewayService() types.ServiceConfig {
	var svc types.ServiceConfig
	svc.Name = GatewayService
	svc.ContainerName = GatewayContainer(m.Spec.Name)
	svc.Hostname = m.Spec.Name // of all in the namespace
	svc.Image = m.Gateway
	svc.PullPolicy = types.PullPolicyNever
	svc.Entrypoint = types.ShellCommand{spec.GatewayGuest}
	svc.Command = types.ShellCommand{"gateway"}
	svc.User = "0:0" // capabilities are root's; it has one
	svc.Labels = m.ownLabels().Add(LabelVersion, m.Version)
	// Never by the engine itself: between its start and its rules a service could
	// be started beside it.
	svc.Restart = types.RestartPolicyNo
	svc.HealthCheck = &types.HealthCheckConfig{
		Test:     types.HealthCheckTest{"CMD", spec.GatewayGuest, "gateway", "check"}, // whether it enforces, not whether it lives
		Interval: duration(time.Minute), Timeout: duration(10 * time.Second), StartPeriod: duration(30 * time.Second), Retries: ptr(uint64(1)),
	}
	if m.Host.StartInterval {
		svc.HealthCheck.StartInterval = duration(200 * time.Millisecond)
	} else {
		svc.HealthCheck.Interval = duration(5 * time.Second)
	}
	svc.Environment = types.MappingWithEquals{}
	svc.Networks = map[string]*types.ServiceNetworkConfig{"default": nil}
	harden(&svc)
	svc.CapAdd = []string{"NET_ADMIN"}                                     // its rules, and the mark on its own packets
	svc.Ulimits["nofile"] = &types.UlimitsConfig{Soft: 16384, Hard: 16384} // each connection takes some
	svc.PidsLimit = 256                                                    // threads
	svc.MemLimit, svc.MemSwapLimit = gatewayMemory, gatewayMemory
	return svc
}
