package cli

import (
	"archive/tar"
	"context"
	"os"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
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
	brought  brought      // what it takes from a project
	gateway  *gatewayPart // where egress is declared, once the deploy path has begun
	kept     *keptFill    // put in instead of fill, when there is one
	image    string       // the one to use, whatever image files there are now; or empty
}

// write writes the tar that its container is filled with.
func (d *deployment) write(t *tar.Writer) error {
	if d.gateway != nil {
		if err := d.gateway.writeKey(t); err != nil {
			return err
		}
	}
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
	return d, a.checkEgress(ctx, c, d)
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

// imageWish is the image that d runs in.
func (d *deployment) imageWish() imageWish {
	return imageWish{agent: d.agent, base: d.spec.BaseImage, caBundle: d.spec.CABundle}
}
