// Package compose turns a spec into a Compose project and back. It is pure: it
// starts no process and reads no file but what its caller hands in.
package compose

import (
	"strings"

	"github.com/agent-container/agent-container/spec"
)

// Prefix begins the name of every container, volume and project of ours.
const Prefix = "agent-container-"

// SharedNetwork is the bridge of all deployments without services. Traffic
// between its containers is off.
const SharedNetwork = "agent-container"

// GatewayService is the name of the gateway's service where egress is declared.
const GatewayService = "egress"

// AgentService is the name of the agent's service in every project.
const AgentService = "agent"

// ProjectName returns the Compose project of a deployment, which is also the
// name of its agent container and of its own network.
func ProjectName(name string) string { return Prefix + name }

// GatewayContainer returns the name of a deployment's gateway container.
func GatewayContainer(name string) string { return "agent-egress-" + name }

// VolumeName returns the engine's name of a deployment's volume.
func VolumeName(name, suffix string) string { return Prefix + name + "-" + suffix }

// ServiceVolumeName returns the engine's name of a volume that a user's service
// declares. The dot, which no deployment's name has, keeps it apart from the
// volumes of other deployments.
func ServiceVolumeName(name, volume string) string { return Prefix + name + "." + volume }

// ServiceContainer returns the name of the container of a user's service, kept
// apart by a dot likewise.
func ServiceContainer(name, service string) string { return Prefix + name + "." + service }

// ImageName returns the name of an agent image with its content digest. The
// localhost/ prefix keeps every engine from asking a registry for it.
func ImageName(agent, digest string) string {
	return "localhost/" + Prefix + agent + ":" + digest
}

// GatewayImage returns the name of the gateway's image with its content digest.
func GatewayImage(digest string) string { return "localhost/agent-container-egress:" + digest }

// BootstrapImage is the base made on this host where no registry answers.
const BootstrapImage = "localhost/agent-container-base:trixie"

// The labels. LabelName is on everything of a deployment and never changes
// value: newer Compose versions offer to recreate a volume whose labels differ.
// The others are on the agent's container only.
const (
	LabelName    = "agent-container.name"    // the deployment
	LabelShared  = "agent-container.shared"  // "true" on what no one deployment owns
	LabelVersion = "agent-container.version" // the CLI that made the container
	LabelImage   = "agent-container.image"   // the image's name by content
	LabelSpec    = "agent-container.spec"    // the spec as JSON: names, never values
	LabelSSH     = "agent-container.ssh"     // ADDRESS:PORT of its sshd, where the gateway's container publishes it
	LabelBuilt   = "agent-container.built"   // on images: when, RFC 3339
)

// SpecOf reads the spec back from a container's labels.
func SpecOf(labels map[string]string) (spec.Spec, error) {
	return spec.FromLabel(labels[LabelSpec])
}

// Owned reports whether labels say that a thing belongs to deployment name.
func Owned(labels map[string]string, name string) bool {
	return name != "" && labels[LabelName] == name
}

// DeploymentOf returns the deployment that a container name claims, or "".
func DeploymentOf(container string) string {
	name, ok := strings.CutPrefix(strings.TrimPrefix(container, "/"), Prefix)
	if !ok {
		return ""
	}
	return name
}
