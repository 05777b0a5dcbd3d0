package cli

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
)

// newModel is the Compose model of d, but for its agent image and subnet.
func newModel(e *engine.Engine, d *deployment) compose.Model {
	m := compose.Model{Spec: d.spec, Version: version(), Services: d.services}
	if d.gateway != nil {
		m.Gateway = compose.GatewayImage(d.gateway.image.Digest())
	}
	m.Host.StartInterval = e.Major() >= 25
	return m
}

// imageOf is the image that d says, or the one that is made for it.
func (a *app) imageOf(ctx context.Context, e *engine.Engine, d *deployment) (string, error) {
	if d.image != "" {
		return d.image, nil
	}
	return a.ensureImage(ctx, e, d.imageWish())
}

// subnet is the network that the deployment has, or a free one of the pool.
func (a *app) subnet(ctx context.Context, e *engine.Engine, name string) (string, error) {
	pool, err := compose.ParsePool(a.settings.Get("subnet_pool").Text)
	if err != nil {
		return "", err
	}
	own, taken, err := e.Subnets(ctx, name)
	if err != nil {
		return "", err
	}
	if own != (netip.Prefix{}) {
		return own.String(), nil
	}
	free, err := compose.FreeSubnet(pool, taken)
	if err != nil {
		return "", fail(exitFailed, "widen subnet_pool in settings.yaml", "%w", err)
	}
	return free.String(), nil
}

// deploy is the one path that makes a deployment run: image, model, create,
// fill, start. The caller holds its lock. Nothing is created before the image
// is there, foreign things are ruled out, and old, the container that is to be
// replaced, is still the one that the decision was made on. It runs until then.
func (a *app) deploy(ctx context.Context, e *engine.Engine, verb string, d *deployment, old *engine.Container) error {
	if err := a.prepareGateway(e, d); err != nil {
		return err
	}
	name, m, file, release, releasePort := d.spec.Name, newModel(e, d), "", func() {}, func() {}
	defer func() { release(); releasePort() }()
	return take(ctx,
		step{"checked", func() error {
			return together(ctx,
				func(ctx context.Context) error { return a.unchanged(ctx, e, name, old) },
				func(ctx context.Context) error { return checkForeign(ctx, e, d) },
				func(ctx context.Context) error { return checkCPUs(ctx, e, d.spec.Limits.CPUs) },
				func(ctx context.Context) (err error) { m.Image, err = a.imageOf(ctx, e, d); return err },
				func(ctx context.Context) error { return a.ensureGatewayImage(ctx, e, d.gateway) },
			)
		}},
		step{"seen", func() error { return checkSeen(ctx, e, d.spec, m.Image) }},
		step{"begun", func() error { return errors.Join(a.keepTaskSum(d), a.beginOperation(verb, d, old)) }},
		step{"network", func() error {
			free, err := a.network(ctx, e, &m)
			if err == nil {
				release = free
			}
			return err
		}},
		step{"ssh-port", func() error {
			port, free, err := a.sshPort(ctx, e, d.spec, old)
			if m.Host.SSHPort = port; err == nil {
				releasePort = free
			}
			return err
		}},
		step{"model", func() (err error) { file, err = a.writeModel(m); return err }},
		step{"service-images", func() error { return a.serviceImages(ctx, e, m, file) }},
		step{"retired", func() error { return a.retire(ctx, e, d, old) }},
		step{"created", func() error {
			err := a.create(ctx, e, m, file)
			release() // the start may wait long for a service; subnet and port are taken now
			releasePort()
			return attempted("create", name, err)
		}},
		step{"stale-removed", func() error { return a.removeStale(ctx, e, m, old) }},
		step{"filled", func() (err error) {
			if d.spec.HasSSH() && d.kept == nil {
				if d.fill.access, err = a.accessKeys(d.spec, false); err != nil {
					return err
				}
			}
			return attempted("fill", name, d.fillAll(ctx, e))
		}},
		step{"started", func() error { return attempted("start", name, a.startCreated(ctx, e, d, m, file)) }},
	)
}

// network sees to the network of m: the shared bridge, or a free subnet for an own
// one. Subnets are chosen from what exists, so until release
// nobody else chooses.
func (a *app) network(ctx context.Context, e *engine.Engine, m *compose.Model) (release func(), err error) {
	if !m.OwnNetwork() {
		return func() {}, e.EnsureSharedNetwork(ctx)
	}
	if release, err = a.waitLock(ctx, "subnets"); err != nil {
		return nil, err
	}
	if m.Host.Subnet, err = a.subnet(ctx, e, m.Spec.Name); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// modelFile is the Compose file's name in a deployment's state directory.
const modelFile = "compose.yaml"

// writeModel keeps the Compose file in the state directory. It is a cache: the
// containers' labels are the truth.
func (a *app) writeModel(m compose.Model) (string, error) {
	content, err := m.YAML()
	if err != nil {
		return "", err
	}
	dir := a.dirs.Deployment(engine.LocalHost, m.Spec.Name)
	if err := settings.MakePrivate(dir); err != nil {
		return "", err
	}
	path := filepath.Join(dir, modelFile)
	return path, renameio.WriteFile(path, content, 0o600, renameio.WithTempDir(dir))
}

// forgetUntouched removes the state directory of a deployment that was refused
// or failed before anything was made: without a model it holds the lock alone.
// The lock's holder is told by the file's identity that it is gone.
func (a *app) forgetUntouched(name string) {
	dir := a.dirs.Deployment(engine.LocalHost, name)
	if _, err := os.Stat(filepath.Join(dir, modelFile)); absent(err) {
		_ = os.RemoveAll(dir) // a cache; nothing follows from its staying
	}
}

// dryRun is the deploy path cut short: the model that would be written. It
// makes nothing, also no image, whose name is part of the model.
func (a *app) dryRun(ctx context.Context, e *engine.Engine, d *deployment, old *engine.Container) (any, error) {
	if err := a.prepareGateway(e, d); err != nil {
		return nil, err
	}
	m := newModel(e, d)
	var err error
	if m.Image, err = a.imageName(ctx, e, d.imageWish()); err != nil {
		return nil, err
	}
	if m.OwnNetwork() {
		if m.Host.Subnet, err = a.subnet(ctx, e, m.Spec.Name); err != nil {
			return nil, err
		}
	}
	port, release, err := a.sshPort(ctx, e, d.spec, old)
	if err != nil {
		return nil, err
	}
	release()
	m.Host.SSHPort = port
	content, err := m.YAML()
	if err != nil {
		return nil, err
	}
	return modelAnswer{Name: d.spec.Name, Compose: string(content)}, nil
}
