package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func upCommand() command {
	return command{
		name: "up", group: groupLife, args: "NAME", usage: "deploy an agent, or start it again",
		detail: "Deploys NAME when it is absent. When it runs, or is a finished job, that is reported and nothing is run again;\n" +
			"a stopped session is started. To change a deployment, or to give it a new task, use redeploy.",
		flags: specFlags(), min: 1, max: 1, run: (*app).up,
	}
}

func (a *app) up(ctx context.Context, c *ucli.Context) (any, error) {
	name, err := deploymentName(c)
	if err != nil {
		return nil, err
	}
	if err := a.config(); err != nil {
		return nil, err
	}
	// Bad input is refused whatever the engine says. Only a typed directory may be
	// right for a deployment that exists and wrong for a new one.
	wanted, inputErr := a.newSpec(c, name)
	if inputErr != nil && !slices.Contains(specFieldsTyped(c), "workspace-dir") {
		return nil, inputErr
	}
	var found *engine.Container
	e, err := a.engine(ctx, func(ctx context.Context, e *engine.Engine) (err error) {
		found, err = a.findRepaired(ctx, e, name)
		return err
	})
	if err != nil && inputErr != nil {
		return nil, inputErr
	}
	if err != nil {
		// What is wrong with the input is worth knowing without an engine too.
		if _, inputErr := a.prepare(ctx, c, wanted, kept{}); inputErr != nil {
			return nil, inputErr
		}
		return nil, err
	}
	if found != nil && found.State.Status != "created" {
		return a.upExisting(ctx, c, e, found, wanted)
	}
	if inputErr != nil {
		return nil, inputErr
	}
	if found != nil {
		if err := refuseInterrupted(found, wanted); err != nil {
			return nil, err
		}
	}
	var from kept
	if found != nil && !c.IsSet("task") { // the command that made it was killed
		if from.task, err = a.undeliveredTask(ctx, e, name); err != nil {
			return nil, err
		}
	}
	d, err := a.prepare(ctx, c, wanted, from)
	if err != nil {
		return nil, err
	}
	if c.Bool("dry-run") {
		return a.dryRun(ctx, e, d, found)
	}
	if d.fill.keeps {
		a.say("%s: keeps its task, which no agent has got yet", name)
	}
	a.announceOrigins(c)
	return a.deployAndReport(ctx, c, e, "up", d, found)
}

// refuseInterrupted refuses an up that would make something else of a deployment
// whose redeploy was killed between create and start.
func refuseInterrupted(found *engine.Container, wanted spec.Spec) error {
	s, err := specOf(found)
	if err != nil {
		return nil // of another version; it was never started and is made anew
	}
	for _, change := range spec.Changes(s, wanted) {
		if slices.Contains([]string{"agent", "mode", "workspace", "workspace_dir", "mounts", "repo", "depth", "env_names", "env_files"}, change.Field) || ofEgress(change.Field) {
			return refuse("run the interrupted command again, or: agent-container redeploy "+s.Name+", or first: agent-container down "+s.Name,
				"%s was created by a command that was interrupted, and differs: %s", s.Name, change)
		}
	}
	return nil
}

// deployAndReport deploys under the deployment's lock and then, without it,
// waits or follows. old is the container that the decision was made on.
func (a *app) deployAndReport(ctx context.Context, c *ucli.Context, e *engine.Engine, verb string, d *deployment, old *engine.Container) (any, error) {
	name := d.spec.Name
	release, err := a.lock(name)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := reached(ctx, "locked"); err != nil {
		return nil, err
	}
	a.announce(d)
	if err := a.deploy(ctx, e, verb, d, old); err != nil {
		a.forgetUntouched(name)
		return nil, a.whatIsLeft(ctx, e, name, err)
	}
	release()
	answer, err := a.startedAnswer(ctx, c, e, d.spec)
	if err == nil || isResult(err) || a.over {
		a.endOperation(name)
	}
	return answer, err
}

// startedAnswer follows or waits for what was started.
func (a *app) startedAnswer(ctx context.Context, c *ucli.Context, e *engine.Engine, s spec.Spec) (any, error) {
	if c.Bool("foreground") {
		if err := a.waitsForKey(ctx, e, s); err != nil {
			return nil, err
		}
		return a.followToEnd(ctx, e, s)
	}
	answer, err := a.awaitAndReport(ctx, e, s, true)
	return answer, a.whatIsLeft(ctx, e, s.Name, err)
}

// resume answers for a command that was killed or interrupted after it had
// started the container: what it started is not started, and billed, twice.
func (a *app) resume(ctx context.Context, c *ucli.Context, e *engine.Engine, found *engine.Container, s spec.Spec, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	a.say("%s was started by this command before, which was interrupted then; it is not run twice", s.Name)
	var answer any
	if found.State.Alive() {
		answer, err = a.startedAnswer(ctx, c, e, s)
	} else {
		answer, err = a.finished(ctx, c, e, found, s)
	}
	if err == nil || isResult(err) || a.over {
		a.endOperation(s.Name)
	}
	return answer, err
}

// whatIsLeft says, when a deploy was interrupted, what runs all the same: a job
// that goes on is billed.
func (a *app) whatIsLeft(ctx context.Context, e *engine.Engine, name string, err error) error {
	if err == nil || context.Cause(ctx) == nil {
		return err
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	c, lookErr := e.Inspect(look, compose.ProjectName(name))
	f := *asFailure(context.Cause(ctx))
	switch {
	case lookErr != nil:
		f.message, f.hint = f.message+"; what is left of "+name+" is not known", "see: agent-container list"
	case c == nil:
		f.message, f.hint = f.message+"; nothing of "+name+" runs", "run the command again"
	case c.State.Alive():
		f.message, f.hint = f.message+"; "+name+" runs all the same", "stop it: agent-container stop "+name+"; or follow it: agent-container logs -f "+name
	case c.State.HasRun():
		f.message, f.hint = f.message+"; "+name+" has ended", "how: agent-container up "+name
	default:
		f.message, f.hint = f.message+"; "+name+" was not started", "run the command again, or: agent-container down "+name
	}
	return &f
}

// lockUnchanged holds the deployment's lock, unless its container is another
// one than old by now. Deciding needs no lock; acting on the decision does.
func (a *app) lockUnchanged(ctx context.Context, e *engine.Engine, name string, old *engine.Container) (func(), error) {
	release, err := a.lock(name)
	if err != nil {
		return nil, err
	}
	if err := a.unchanged(ctx, e, name, old); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// unchanged returns a *failure with code 6 when the deployment's container is
// another one than old.
func (a *app) unchanged(ctx context.Context, e *engine.Engine, name string, old *engine.Container) error {
	now, err := a.find(ctx, e, name)
	if err == nil && ((now == nil) != (old == nil) || now != nil && old != nil && now.ID != old.ID) {
		err = fail(exitBusy, "run the command again", "another operation changed %s meanwhile", name)
	}
	return err
}

// announce says what is worth knowing before a deploy.
func (a *app) announce(d *deployment) {
	if d.brought.project != "" {
		a.say("%s takes %s of the project %s", d.spec.Name, d.brought.names(d.spec.Name), d.brought.project)
	}
	for _, dir := range shownKeys(d.spec) {
		a.say("NOTE: %s holds keys, and the agent may read them", dir)
	}
	if d.spec.Workspace == spec.Ephemeral {
		a.say("NOTE: an ephemeral workspace is lost with its container: what is not pushed is gone")
	}
	if d.spec.Mode == spec.Interactive && d.fill.task != nil && !d.agent.TakesTask {
		a.say("NOTE: %s takes no task at its start; it is in %s/%s, paste it in", d.agent.Name, spec.ContainerRunDir, spec.FillTask)
	}
	if d.spec.Mode != spec.Idle && !slices.ContainsFunc(d.agent.Keys, func(k string) bool { return d.fill.env[k] != "" }) && len(d.fill.config) == 0 {
		a.say("NOTE: no key for %s is given (--env %s); it must be logged in on its volume already", d.agent.Name, d.agent.Keys[0])
	}
}

// announceOrigins says which choices of a new deployment were made by a file or
// a variable: a repository may have made them.
func (a *app) announceOrigins(c *ucli.Context) {
	for _, key := range []string{"agent", "mode", "workspace"} {
		if v := a.settings.Get(key); v.Origin != "default" && !c.IsSet(key) {
			a.say("%s: %s (%s)", key, v.Text, v.Origin)
		}
	}
}

// awaitAndReport waits for a started deployment and says what now exists.
func (a *app) awaitAndReport(ctx context.Context, e *engine.Engine, s spec.Spec, changed bool) (any, error) {
	status, err := a.await(ctx, e, s)
	if err != nil {
		return nil, fmt.Errorf("wait for %s: %w", s.Name, err)
	}
	if err := reached(ctx, "awaited"); err != nil {
		return nil, err
	}
	c, _, err := a.current(ctx, e, s.Name)
	if err != nil {
		return nil, err
	}
	record, err := a.settle(ctx, e, c, s)
	if err != nil {
		return nil, err
	}
	if err := reached(ctx, "settled"); err != nil {
		return nil, err
	}
	answer := a.describe(c, s, record)
	answer.Changed = changed
	switch {
	case status.State == spec.Failed:
		return nil, setupFailure(s.Name, status, answer)
	case status.State == spec.Pending:
		return nil, a.pendingFailure(ctx, e, s, answer)
	case status.Reason != "":
		a.say("NOTE: %s", status.Reason)
	}
	return answer, nil
}

// upExisting answers up for a deployment that exists: nothing that was typed
// is ever dropped silently, and no task is run twice. wanted is what the typed
// flags would make of a new one.
func (a *app) upExisting(ctx context.Context, c *ucli.Context, e *engine.Engine, found *engine.Container, wanted spec.Spec) (any, error) {
	s, err := specOf(found)
	if err != nil {
		return nil, err
	}
	if a.hasOperation(s.Name) && !c.Bool("dry-run") {
		if d, err := a.prepare(ctx, c, wanted, kept{}); err == nil {
			if begun, err := a.wasBegun("up", d, found); err != nil || begun {
				return a.resume(ctx, c, e, found, s, err)
			}
		}
	}
	if err := a.refuseChanges(ctx, c, e, s); err != nil {
		return nil, err
	}
	if c.Bool("foreground") && s.Mode != spec.Headless {
		return nil, refuse("drop --foreground", "--foreground follows a headless run; %s is %s", s.Name, s.Mode)
	}
	if c.Bool("dry-run") {
		d, err := a.prepareAgain(ctx, s)
		if err != nil {
			return nil, err
		}
		return a.dryRun(ctx, e, d, found)
	}
	switch {
	case found.State.Alive() && c.Bool("foreground"):
		return a.startedAnswer(ctx, c, e, s)
	case found.State.Alive():
		return a.runningAlready(ctx, e, found, s)
	case s.Mode == spec.Headless:
		return a.reportFinished(ctx, c, e, found, s)
	}
	if err := a.startAgain(ctx, e, found, s); err != nil {
		return nil, err
	}
	return a.awaitAndReport(ctx, e, s, true)
}

// reportFinished tells how a finished job ended. It is never run again.
func (a *app) reportFinished(ctx context.Context, c *ucli.Context, e *engine.Engine, found *engine.Container, s spec.Spec) (any, error) {
	answer, err := a.finished(ctx, c, e, found, s)
	if task, taskErr := a.undeliveredTask(ctx, e, s.Name); taskErr == nil && task != nil {
		a.say("%s has ended before its agent got the task", s.Name)
		a.say("hint: try again: agent-container redeploy %s", s.Name)
		return answer, err
	}
	a.say("%s is finished; a task is never run again unasked", s.Name)
	a.say("hint: run a new one: agent-container redeploy %s --task ...", s.Name)
	return answer, err
}

// finished describes a job that is over; in the foreground its end is ours.
func (a *app) finished(ctx context.Context, c *ucli.Context, e *engine.Engine, found *engine.Container, s spec.Spec) (any, error) {
	record, err := a.settle(ctx, e, found, s)
	if err != nil {
		return nil, err
	}
	answer := a.describe(found, s, record)
	if c.Bool("foreground") {
		return a.jobEnd(ctx, e, found, s, answer)
	}
	return answer, nil
}

// refuseChanges refuses typed flags that differ from the deployment, naming
// redeploy.
func (a *app) refuseChanges(ctx context.Context, c *ucli.Context, e *engine.Engine, s spec.Spec) error {
	hint := "run: " + typedAs(c, "redeploy")
	if c.IsSet("task") {
		return refuse("run: agent-container redeploy "+s.Name+" --task ...", "%s exists, and a new task needs a new container", s.Name)
	}
	if !typedSpec(c) {
		return nil
	}
	typed := s
	typed.EnvNames = slices.Clone(s.EnvNames) // --env adds, here as on a redeploy
	if err := a.applyFlags(&typed, c); err != nil {
		return err
	}
	if c.IsSet("egress") || c.IsSet("egress-allow") {
		if _, err := declareTyped(&typed, c, &s, spec.EgressWish{}); err != nil { // what settings say now is for a redeploy
			return err
		}
	}
	if err := typed.Validate(); err != nil {
		return err
	}
	if changes := spec.Changes(s, typed); len(changes) > 0 {
		return refuse(hint, "%s exists and differs: %s", s.Name, changes[0])
	}
	return a.refuseNewValues(ctx, c, e, s, hint)
}

// refuseNewValues refuses a variable, typed or from a typed file, whose value
// is another one now.
func (a *app) refuseNewValues(ctx context.Context, c *ucli.Context, e *engine.Engine, s spec.Spec, hint string) error {
	if !c.IsSet("env-file") {
		s.EnvFiles = nil
	}
	typed, err := a.readEnvironment(s, brought{}, nil, c)
	if err != nil || len(typed) == 0 {
		return err
	}
	filled, err := filledEnvironment(ctx, e, s.Name)
	if err != nil {
		return err
	}
	now, err := a.typedEnvironment(c)
	if err != nil {
		return err
	}
	for name, value := range typed {
		if _, again := now[name]; !again && slices.Contains(s.EnvNames, name) {
			continue // typed before, over what the file says
		}
		if filled[name] != value {
			return refuse(hint, "%s exists and differs: another value of %s", s.Name, name)
		}
	}
	return nil
}

// modelAnswer is what --dry-run prints.
type modelAnswer struct {
	Name    string `json:"name"`
	Compose string `json:"compose"`
}

func (m modelAnswer) text(w io.Writer) { io.WriteString(w, m.Compose) }
