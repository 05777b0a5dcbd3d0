package cli

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// checkCPUs refuses more processors than the engine's host has.
func checkCPUs(ctx context.Context, e *engine.Engine, wanted float64) error {
	if wanted == 0 {
		return nil
	}
	n, err := e.CPUs(ctx)
	if err == nil && wanted > float64(n) {
		err = refuse(fmt.Sprintf("--cpus %d or less, or limits.cpus in settings.yaml", n), "limits.cpus: the engine's host has %d processors, not %g", n, wanted)
	}
	return err
}

// serviceTroubles are what Compose says of a user's service, and what to do.
var serviceTroubles = []struct {
	words *regexp.Regexp
	hint  string
}{
	{regexp.MustCompile(`container (\S+) is unhealthy`), "see why: docker logs $1"},
	{regexp.MustCompile(`container (\S+) exited \(\d+\)`), "see why: docker logs $1"},
	{regexp.MustCompile(`No such image: (\S+)`), "correct the image in the services file, or load it: docker load, docker pull $1"},
}

// attempted says what was attempted on which deployment, and keeps nil.
func attempted(verb, name string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s %s: %w", verb, name, err)
	for _, t := range serviceTroubles {
		if m := t.words.FindStringSubmatchIndex(err.Error()); m != nil {
			return fail(exitFailed, string(t.words.ExpandString(nil, t.hint, err.Error(), m)), "%w", err)
		}
	}
	return err
}

// serviceImages pulls and builds what the services need while the container
// that is replaced still runs: a mistyped image must not take it down.
func (a *app) serviceImages(ctx context.Context, e *engine.Engine, m compose.Model, file string) error {
	if m.Services == nil {
		return nil
	}
	project := compose.ProjectName(m.Spec.Name)
	missing, err := a.missingImages(ctx, e, m.Services.Pulled())
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		a.say("pulling the images of %s", strings.Join(missing, ", "))
		if err := e.PullServices(ctx, project, file, missing); err != nil {
			return fail(exitFailed, "correct the image in "+m.Services.File+", or check the registry", "images of the services %s: %w", strings.Join(missing, ", "), err)
		}
	}
	if built := m.Services.Built(); len(built) > 0 {
		a.say("building %s", strings.Join(built, ", "))
		if err := e.BuildServices(ctx, project, file, built); err != nil {
			return fail(exitFailed, "correct build in "+m.Services.File, "build of the services %s: %w", strings.Join(built, ", "), err)
		}
	}
	return nil
}

// missingImages returns the services among images whose image is not on the
// engine, in order.
func (a *app) missingImages(ctx context.Context, e *engine.Engine, images map[string]string) ([]string, error) {
	var missing []string
	for _, service := range slices.Sorted(maps.Keys(images)) {
		found, err := e.FindImage(ctx, images[service])
		if err != nil {
			return nil, err
		}
		if found == nil {
			missing = append(missing, service)
		}
	}
	return missing, nil
}

// checkForeign returns a *engine.ForeignError when anything that d would use by
// name is there without our label. Compose would take such a volume, and ends
// half way at the others.
func checkForeign(ctx context.Context, e *engine.Engine, d *deployment) error {
	name, volumes, m := d.spec.Name, volumeNames(d.spec), newModel(e, d)
	if !m.OwnNetwork() {
		return e.CheckVolumes(ctx, name, volumes)
	}
	if d.services != nil {
		volumes = append(volumes, d.services.VolumeNames(name)...)
	}
	if err := e.CheckVolumes(ctx, name, volumes); err != nil {
		return err
	}
	if err := e.CheckNetwork(ctx, name, compose.ProjectName(name)); err != nil {
		return err
	}
	return e.CheckContainers(ctx, name, m.ContainerNames())
}

// createAttempts bounds how often a create is tried.
const createAttempts = 10

// create makes the containers of m, written to file. Whoever does not share our
// locks, another user say, may meanwhile take the subnet, which is then another
// one, or remove the shared bridge with the last deployment on it; and the engine
// may still be at the create of a command that was killed.
func (a *app) create(ctx context.Context, e *engine.Engine, m compose.Model, file string) error {
	for attempt := 1; ; attempt++ {
		err := e.Create(ctx, compose.ProjectName(m.Spec.Name), file)
		holder, taken := engine.NameTaken(err)
		switch {
		case attempt == createAttempts:
			return err
		case !m.OwnNetwork() && engine.NetworkGone(err):
			err = e.EnsureSharedNetwork(ctx)
		case m.OwnNetwork() && engine.SubnetTaken(err):
			if m.Host.Subnet, err = a.subnet(ctx, e, m.Spec.Name); err == nil {
				file, err = a.writeModel(m)
			}
		case taken:
			err = a.freeName(ctx, e, m.Spec.Name, holder, err)
		default:
			return err
		}
		if err != nil {
			return err
		}
	}
}

// startCreated starts what was created and filled. Meanwhile the removal of the
// last deployment beside this one, which need not share our locks, may have taken
// the shared bridge with it, and anybody the port. A container keeps the network
// and the port that it was created with, so it is made and filled again.
func (a *app) startCreated(ctx context.Context, e *engine.Engine, d *deployment, m compose.Model, file string) error {
	var refused []int
	for attempt := 1; ; attempt++ {
		err := e.Start(ctx, d.spec.Name, d.beside())
		switch {
		case attempt == createAttempts:
			return err
		case !m.OwnNetwork() && engine.NetworkGone(err):
			err = e.EnsureSharedNetwork(ctx)
		case d.spec.HasSSH() && engine.PortTaken(err):
			refused = append(refused, m.Host.SSHPort)
			file, err = a.otherPort(ctx, e, &m, refused)
		default:
			return err
		}
		if err != nil {
			return err
		}
		if err := a.create(ctx, e, m, file); err != nil {
			return err
		}
		if err := d.fillAll(ctx, e); err != nil {
			return err
		}
	}
}

// otherPort gives m another port than those that the engine refused, and writes
// the model anew.
func (a *app) otherPort(ctx context.Context, e *engine.Engine, m *compose.Model, refused []int) (file string, err error) {
	port, release, err := a.sshPort(ctx, e, m.Spec, nil, refused...)
	if err != nil {
		return "", err
	}
	defer release()
	a.say("port %d is taken by something else; %s gets %d", m.Host.SSHPort, m.Spec.Name, port)
	m.Host.SSHPort = port
	return a.writeModel(*m)
}

// volumeNames are the engine's names of the volumes that s needs.
func volumeNames(s spec.Spec) []string {
	var names []string
	for _, v := range spec.Volumes(s.Workspace) {
		names = append(names, compose.VolumeName(s.Name, v.Suffix))
	}
	return names
}
