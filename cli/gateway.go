package cli

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/images"
	"github.com/agent-container/agent-container/spec"
)

// gatewayPart is what stands beside an agent whose egress is declared.
type gatewayPart struct {
	image images.Gateway
	job   spec.GatewayJob
	key   []byte
}

// prepareGateway adds to d the gateway that its spec asks for, with a new key.
func (a *app) prepareGateway(e *engine.Engine, d *deployment) error {
	policy, err := d.spec.Egress.Policy(d.agent)
	if err != nil || policy == nil {
		return err
	}
	source, err := a.imageSource()
	if err != nil {
		return err
	}
	g := &gatewayPart{job: spec.GatewayJob{Policy: policy, Local: []string{"localhost", d.spec.Name}, Inbound: []uint16{}}, key: make([]byte, 32)}
	if d.services != nil {
		for _, name := range d.services.Names() {
			if d.inside(name) {
				g.job.Local = append(g.job.Local, strings.ToLower(name))
			}
		}
	}
	if g.image, err = source.Gateway(e.Arch); err != nil {
		return err
	}
	if d.spec.HasSSH() {
		g.job.Inbound = append(g.job.Inbound, spec.SSHPort)
	}
	if _, err := rand.Read(g.key); err != nil {
		return err
	}
	d.gateway = g
	return nil
}

// ensureGatewayImage makes the gateway's image unless it is there.
func (a *app) ensureGatewayImage(ctx context.Context, e *engine.Engine, g *gatewayPart) error {
	if g == nil {
		return nil
	}
	name := compose.GatewayImage(g.image.Digest())
	if found, err := e.FindImage(ctx, name); err != nil || found != nil {
		return err
	}
	labels := map[string]string{compose.LabelBuilt: time.Now().UTC().Format(time.RFC3339)}
	return attempted("make the gateway's image", name, e.Import(ctx, name, labels, g.image.WriteTar))
}

// writeKey writes the key with which the gateway proves itself.
func (g *gatewayPart) writeKey(t *tar.Writer) error {
	w := fillWriter{tar: t, dirs: map[string]bool{}}
	w.file(spec.FillKey, 0o600, g.key)
	return w.err
}

// write writes the fill of the gateway's own container, which is root's.
func (g *gatewayPart) write(t *tar.Writer) error {
	job, err := json.Marshal(g.job)
	if err != nil {
		return err
	}
	w := fillWriter{tar: t, dirs: map[string]bool{}, root: true}
	w.file(spec.FillGateway, 0o600, job)
	w.file(spec.FillKey, 0o600, g.key)
	return w.err
}

// freshResolvers has the gateway read the engine's resolvers once more, which it
// keeps over the starts that are not ours.
func freshResolvers(t *tar.Writer) error {
	w := fillWriter{tar: t, dirs: map[string]bool{}, root: true}
	w.file(spec.FileResolvers, 0o600, nil)
	return w.err
}

// fillAll fills the containers of d: the gateway's, then the agent's.
func (d *deployment) fillAll(ctx context.Context, e *engine.Engine) error {
	if d.gateway != nil {
		if err := e.Fill(ctx, compose.GatewayContainer(d.spec.Name), d.gateway.write); err != nil {
			return err
		}
	}
	return e.Fill(ctx, compose.ProjectName(d.spec.Name), d.write)
}

// beside is what starts before the agent of d.
func (d *deployment) beside() engine.Beside {
	return engine.Beside{Gateway: d.gateway != nil, Services: d.services != nil}
}
