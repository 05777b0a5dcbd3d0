package cli

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// deployment is everything that up and redeploy need, read and checked before
// anything is created.
type deployment struct {
	spec     spec.Spec
	agent    spec.Agent
	services *compose.Services
	fill     fill
	brought  brought   // what it takes from a project
	kept     *keptFill // put in instead of fill, when there is one
	image    string    // the one to use, whatever image files there are now; or empty
}

// write writes the tar that its container is filled with.
func (d *deployment) write(t *tar.Writer) error {
	if d.kept != nil {
		return d.kept.write(t)
	}
	return d.fill.write(t)
}

// kept is what a redeploy takes out of the container before, where alone it is.
type kept struct {
	env  environment // values that were typed
	task []byte      // what no agent has got yet; nil for none
	// begun says that this may be an operation once more that was interrupted. Its
	// task may be an agent's by now; then none is asked for.
	begun bool
}

// prepare reads all that s names. from is empty on a first deploy.
func (a *app) prepare(ctx context.Context, c *ucli.Context, s spec.Spec, from kept) (*deployment, error) {
	d, err := a.prepareFiles(ctx, c, s, from.env)
	if err != nil {
		return nil, err
	}
	return d, a.prepareTask(c, d, from)
}

// prepareTask reads the task. It is last: it may read standard input, which
// cannot be read again.
func (a *app) prepareTask(c *ucli.Context, d *deployment, from kept) (err error) {
	d.fill.task, err = a.readTask(c, d.spec.Mode, from)
	d.fill.carried = !c.IsSet("task") && d.fill.task != nil
	d.fill.keeps = !c.IsSet("task") && from.task != nil
	return err
}

// prepareFiles is prepare but for the task. inherited holds the environment
// values kept from a container before.
func (a *app) prepareFiles(ctx context.Context, c *ucli.Context, s spec.Spec, inherited environment) (*deployment, error) {
	d := &deployment{spec: s}
	var err error
	if d.agent, err = spec.LookupAgent(s.Agent); err != nil {
		return nil, err
	}
	if c.Bool("foreground") && s.Mode != spec.Headless {
		return nil, refuse("add --mode headless, or drop --foreground", "--foreground follows a headless run; this one is %s", s.Mode)
	}
	if err := a.checkShown(ctx, s); err != nil {
		return nil, err
	}
	if d.brought, err = a.broughtTo(s); err != nil {
		return nil, err
	}
	d.spec.Project = d.brought.project
	if d.services, err = a.readServices(ctx, s.Name, d.brought); err != nil {
		return nil, err
	}
	if d.fill.env, err = a.readEnvironment(s, d.brought, inherited, c); err != nil {
		return nil, err
	}
	if d.fill.config, err = readConfig(a.dirs.AgentConfig(s.Name, s.Agent)); err != nil {
		return nil, err
	}
	d.fill.config = append(d.fill.config, d.brought.config(s.Name, s.Agent)...) // of one only there is any
	if d.fill.ca, err = readCA(s.CABundle); err != nil {
		return nil, err
	}
	if s.HasSSH() {
		if _, err = a.accessKeys(s, true); err != nil {
			return nil, err
		}
	}
	d.fill.job.RecordTask, d.fill.job.Restart, d.fill.job.Limits = s.RecordTask, s.Restart, s.Limits
	d.fill.job.Depth = s.Depth
	if d.fill.job.Credentials, err = settings.ParseCredentials(a.settings.Get("git.credentials").Text); err != nil {
		return nil, err
	}
	d.fill.job.GitName, d.fill.job.GitEmail = a.gitIdentity(ctx)
	return d, nil
}

// readServices reads the user's services file, else the project's, nil when
// there is none.
func (a *app) readServices(ctx context.Context, name string, b brought) (*compose.Services, error) {
	path := a.dirs.ServicesFile(name)
	content, err := settings.ReadRegular(path, 1<<20)
	if absent(err) {
		return b.services(ctx, name)
	}
	if err != nil {
		return nil, refuse("", "services: %v", err)
	}
	return compose.ParseServices(ctx, name, path, a.dirs.Config, content, environmentMap())
}

func environmentMap() map[string]string {
	env := map[string]string{}
	for _, e := range os.Environ() {
		for i := range len(e) {
			if e[i] == '=' {
				env[e[:i]] = e[i+1:]
				break
			}
		}
	}
	return env
}

// newModel is the Compose model of d, but for its image and subnet.
func newModel(e *engine.Engine, d *deployment) compose.Model {
	m := compose.Model{Spec: d.spec, Version: version(), Services: d.services}
	m.Host.StartInterval = e.Major() >= 25
	return m
}

// imageWish is the image that d runs in.
func (d *deployment) imageWish() imageWish {
	return imageWish{agent: d.agent, base: d.spec.BaseImage, caBundle: d.spec.CABundle}
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
	name, m, file, release, releasePort := d.spec.Name, newModel(e, d), "", func() {}, func() {}
	defer func() { release(); releasePort() }()
	return take(ctx,
		step{"checked", func() error {
			return together(ctx,
				func(ctx context.Context) error { return a.unchanged(ctx, e, name, old) },
				func(ctx context.Context) error { return checkForeign(ctx, e, d) },
				func(ctx context.Context) error { return checkCPUs(ctx, e, d.spec.Limits.CPUs) },
				func(ctx context.Context) (err error) { m.Image, err = a.imageOf(ctx, e, d); return err },
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
			return attempted("fill", name, e.Fill(ctx, compose.ProjectName(name), d.write))
		}},
		step{"started", func() error { return attempted("start", name, a.startCreated(ctx, e, d, m, file)) }},
	)
}

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
	name, volumes := d.spec.Name, volumeNames(d.spec)
	if d.services == nil {
		return e.CheckVolumes(ctx, name, volumes)
	}
	if err := e.CheckVolumes(ctx, name, append(volumes, d.services.VolumeNames(name)...)); err != nil {
		return err
	}
	if err := e.CheckNetwork(ctx, name, compose.ProjectName(name)); err != nil {
		return err
	}
	return e.CheckContainers(ctx, name, compose.Model{Spec: d.spec, Services: d.services}.ContainerNames())
}

// createAttempts bounds how often a create is tried.
const createAttempts = 10

// create makes the containers of m, written to file. Whoever does not share our
// locks, another user say, may meanwhile take the subnet, which is then another
// one, or remove the shared bridge with the last deployment on it.
func (a *app) create(ctx context.Context, e *engine.Engine, m compose.Model, file string) error {
	for attempt := 1; ; attempt++ {
		err := e.Create(ctx, compose.ProjectName(m.Spec.Name), file)
		switch {
		case attempt == createAttempts:
			return err
		case m.Services == nil && engine.NetworkGone(err):
			err = e.EnsureSharedNetwork(ctx)
		case m.Services != nil && engine.SubnetTaken(err):
			if m.Host.Subnet, err = a.subnet(ctx, e, m.Spec.Name); err == nil {
				file, err = a.writeModel(m)
			}
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
		err := e.Start(ctx, d.spec.Name, d.services != nil)
		switch {
		case attempt == createAttempts:
			return err
		case m.Services == nil && engine.NetworkGone(err):
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
		if err := e.Fill(ctx, compose.ProjectName(d.spec.Name), d.write); err != nil {
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

// network sees to the network of m: the shared bridge, or with services a free
// subnet for an own one. Subnets are chosen from what exists, so until release
// nobody else chooses.
func (a *app) network(ctx context.Context, e *engine.Engine, m *compose.Model) (release func(), err error) {
	if m.Services == nil {
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

// retire stops what is about to be replaced and brings in its records, which
// go with the container. A task that is carried over must be nobody's still.
func (a *app) retire(ctx context.Context, e *engine.Engine, d *deployment, old *engine.Container) error {
	if old == nil {
		return nil
	}
	name := d.spec.Name
	// Before it is stopped: a job that has begun meanwhile goes on.
	if err := a.stillUndelivered(ctx, e, d); err != nil {
		return err
	}
	if err := a.stopAll(ctx, e, name); err != nil {
		return err
	}
	stopped, err := e.Inspect(ctx, old.ID)
	if err != nil || stopped == nil || stopped.State.Status == "created" && stopped.ByCompose() {
		return err
	}
	if _, err = a.bringRecords(ctx, e, stopped); err != nil {
		return err
	}
	if err := a.stillUndelivered(ctx, e, d); err != nil {
		return err
	}
	if stopped.ByCompose() {
		return nil
	}
	// Compose would not replace it, nor give its name away: it is put aside as
	// Compose puts aside what it replaces, and removed once the new one is there.
	return e.Rename(ctx, stopped.ID, fmt.Sprintf("%.12s_%s", stopped.ID, compose.ProjectName(name)))
}

// stillUndelivered looks once more whether a task that is carried over is still
// nobody's. A job cannot go on without it; a session can, and its agent has it.
func (a *app) stillUndelivered(ctx context.Context, e *engine.Engine, d *deployment) error {
	if !d.fill.carried {
		return nil
	}
	task, err := a.undeliveredTask(ctx, e, d.spec.Name)
	switch {
	case err != nil || task != nil:
		return err
	case d.spec.Mode == spec.Headless:
		return fail(exitFailed, "follow it: agent-container logs -f "+d.spec.Name, "the agent of %s has got its task meanwhile; it is not run twice", d.spec.Name)
	}
	d.fill.task, d.fill.carried, d.fill.keeps = nil, false, false
	return nil
}

// removeStale removes containers of the deployment that its new model does not
// have: services that left the file. Compose would remove whatever carries the
// project's name, ours or not.
func (a *app) removeStale(ctx context.Context, e *engine.Engine, m compose.Model, old *engine.Container) error {
	if old == nil {
		return nil
	}
	expected := m.ContainerNames()
	all, err := e.Containers(ctx, m.Spec.Name)
	if err != nil {
		return err
	}
	var stale []string
	for _, c := range all {
		if !slices.Contains(expected, c.Name) {
			stale = append(stale, c.ID)
		}
	}
	if err := e.Remove(ctx, stale...); err != nil || m.Services != nil {
		return err
	}
	return e.RemoveNetworks(ctx, m.Spec.Name) // its own, which only services need
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
	m := newModel(e, d)
	var err error
	if m.Image, err = a.imageName(ctx, e, d.imageWish()); err != nil {
		return nil, err
	}
	if m.Services != nil {
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
