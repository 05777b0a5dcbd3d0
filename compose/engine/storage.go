package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/agent-container/agent-container/compose"
)

// ForeignError says that something has a name of ours and not our label. It is
// never touched.
type ForeignError struct {
	Kind string // container, volume or network
	Name string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s %s exists and is not ours: it has no %s label", e.Kind, e.Name, compose.LabelName)
}

// Named is a volume or network with its labels.
type Named struct {
	Name   string
	Labels map[string]string
	IPAM   struct{ Config []struct{ Subnet string } }
}

// CheckVolumes returns a *ForeignError when one of names exists without the
// label of deployment. Compose would use such a volume with no more than a
// warning, and purge would delete it.
func (e *Engine) CheckVolumes(ctx context.Context, deployment string, names []string) error {
	return e.checkNamed(ctx, "volume", deployment, names)
}

// CheckNetwork returns a *ForeignError when the network called name exists
// without the label of deployment.
func (e *Engine) CheckNetwork(ctx context.Context, deployment, name string) error {
	return e.checkNamed(ctx, "network", deployment, []string{name})
}

func (e *Engine) checkNamed(ctx context.Context, kind, deployment string, names []string) error {
	list, err := e.named(ctx, kind, names)
	if err != nil {
		return err
	}
	for _, v := range list {
		if !compose.Owned(v.Labels, deployment) {
			return &ForeignError{Kind: kind, Name: v.Name}
		}
	}
	return nil
}

// CheckContainers returns a *ForeignError when one of names is a container
// without the label of deployment.
func (e *Engine) CheckContainers(ctx context.Context, deployment string, names []string) error {
	list, err := e.inspect(ctx, names)
	if err != nil {
		return err
	}
	for _, c := range list {
		if !compose.Owned(c.Config.Labels, deployment) {
			return &ForeignError{Kind: "container", Name: c.Name}
		}
	}
	return nil
}

// RemoveVolumes removes the volumes that carry the label of deployment and
// returns their names. Compose would also remove a foreign volume of that name.
func (e *Engine) RemoveVolumes(ctx context.Context, deployment string) ([]string, error) {
	owned, err := e.owned(ctx, "volume", deployment)
	if err != nil || len(owned) == 0 {
		return owned, err
	}
	// One call goes on after a volume that cannot be removed, and says which.
	if _, err := e.docker(ctx, append([]string{"volume", "rm"}, owned...)...); err != nil && !missing(err) {
		return nil, err
	}
	return owned, nil
}

// RemoveNetworks removes the networks that carry the label of deployment.
func (e *Engine) RemoveNetworks(ctx context.Context, deployment string) error {
	owned, err := e.owned(ctx, "network", deployment)
	if err != nil {
		return err
	}
	for _, name := range owned {
		if _, err := e.docker(ctx, "network", "rm", name); err != nil && !missing(err) {
			return err
		}
	}
	return nil
}

// owned lists the names of the volumes or networks of a deployment.
func (e *Engine) owned(ctx context.Context, kind, deployment string) ([]string, error) {
	out, err := e.docker(ctx, kind, "ls", "--quiet", "--filter", "label="+compose.LabelName+"="+deployment)
	return strings.Fields(string(out)), err
}

// Anything reports whether a container, volume or network of deployment exists.
func (e *Engine) Anything(ctx context.Context, deployment string) (bool, error) {
	filter := "label=" + compose.LabelName + "=" + deployment
	for _, list := range [][]string{
		{"ps", "--all", "--quiet", "--filter", filter},
		{"volume", "ls", "--quiet", "--filter", filter},
		{"network", "ls", "--quiet", "--filter", filter},
	} {
		out, err := e.docker(ctx, list...)
		if err != nil || len(strings.Fields(string(out))) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// EnsureSharedNetwork makes the shared bridge unless it is there. It returns a
// *ForeignError when another network has its name.
func (e *Engine) EnsureSharedNetwork(ctx context.Context) error {
	list, err := e.named(ctx, "network", []string{compose.SharedNetwork})
	if err != nil {
		return err
	}
	if len(list) > 0 {
		if list[0].Labels[compose.LabelShared] != "true" {
			return &ForeignError{Kind: "network", Name: compose.SharedNetwork}
		}
		return nil
	}
	_, err = e.docker(ctx, "network", "create",
		"--driver", "bridge",
		"--label", compose.LabelShared+"=true",
		"--opt", "com.docker.network.bridge.enable_icc=false", // agents do not reach each other
		compose.SharedNetwork)
	if err != nil && containsAny(err.Error(), "already exists") {
		return nil // another up was faster
	}
	return err
}

// RemoveSharedNetwork removes the shared bridge when no container of ours is
// left; a container that is stopped counts, because it could not start again.
func (e *Engine) RemoveSharedNetwork(ctx context.Context) error {
	left, err := e.docker(ctx, "ps", "--all", "--quiet", "--filter", "label="+compose.LabelName)
	if err != nil || len(strings.Fields(string(left))) > 0 {
		return err
	}
	out, err := e.docker(ctx, "network", "ls", "--quiet", "--filter", "label="+compose.LabelShared+"=true", "--filter", "name=^"+compose.SharedNetwork+"$")
	if err != nil || len(strings.Fields(string(out))) == 0 {
		return err
	}
	_, err = e.docker(ctx, "network", "rm", compose.SharedNetwork)
	if err != nil && (missing(err) || containsAny(err.Error(), "active endpoints")) {
		return nil // in use or gone: either way not ours to remove now
	}
	return err
}

// Subnets returns the subnet that deployment's own network has, if it exists,
// and those of all networks.
func (e *Engine) Subnets(ctx context.Context, deployment string) (own netip.Prefix, all []netip.Prefix, err error) {
	out, err := e.docker(ctx, "network", "ls", "--quiet")
	if err != nil {
		return own, nil, err
	}
	list, err := e.named(ctx, "network", strings.Fields(string(out)))
	for _, n := range list {
		for _, c := range n.IPAM.Config {
			p, err := netip.ParsePrefix(c.Subnet)
			if err != nil {
				continue // IPv6 zones and the like; none of them overlaps a pool of ours
			}
			if compose.Owned(n.Labels, deployment) {
				own = p
			}
			all = append(all, p)
		}
	}
	return own, all, err
}

// SubnetTaken reports whether err says that a network's subnet is in use.
func SubnetTaken(err error) bool {
	return err != nil && containsAny(err.Error(), "overlaps with other one")
}

// NetworkGone reports whether err says that a network is gone that a create or
// a start expects to be there.
func NetworkGone(err error) bool { return networkGoneWords.MatchString(stderrOf(err)) }

// named inspects the volumes or networks that exist among names.
func (e *Engine) named(ctx context.Context, kind string, names []string) ([]Named, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out, err := e.docker(ctx, append([]string{kind, "inspect"}, names...)...)
	if err != nil && !missing(err) {
		return nil, fmt.Errorf("inspect %ss: %w", kind, err)
	}
	var list []Named
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("inspect %ss: unreadable answer of the engine: %w", kind, err)
	}
	return list, nil
}

func containsAny(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}
