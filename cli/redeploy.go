package cli

import (
	"context"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func redeployCommand() command {
	return command{
		name: "redeploy", group: groupLife, args: "NAME", usage: "recreate a deployment, with what is typed changed",
		detail: "Keeps what was typed, the agent, mode, workspace, repository, mounts and environment among it; files and settings\n" +
			"are read again. A task is never repeated: a headless job needs a new --task, unless no agent has got the old one.\n" +
			"See beforehand what changes: agent-container plan NAME.",
		flags: specFlags(), min: 1, max: 1, run: (*app).redeploy,
	}
}

// redeployment is a redeploy that is decided and not begun.
type redeployment struct {
	engine *engine.Engine
	old    *engine.Container
	was    spec.Spec // what old was deployed with, as far as it can be read
	next   *deployment
	from   kept
}

func (a *app) redeploy(ctx context.Context, c *ucli.Context) (any, error) {
	r, err := a.decideRedeploy(ctx, c, a.findRepaired)
	if err != nil {
		return nil, err
	}
	if err := a.prepareTask(c, r.next, r.from); err != nil {
		return nil, err
	}
	if c.Bool("dry-run") {
		return a.dryRun(ctx, r.engine, r.next, r.old)
	}
	// What waits for its key, or has failed before its agent, is not what this
	// command was to start.
	if _, unready := r.old.State.SetUp(); !unready && !r.next.fill.carried {
		if begun, err := a.wasBegun("redeploy", r.next, r.old); err != nil || begun {
			return a.resume(ctx, c, r.engine, r.old, r.was, err)
		}
	}
	if r.next.spec.Mode == spec.Headless && r.next.fill.task == nil {
		return nil, needsTask()
	}
	if r.next.fill.keeps {
		a.say("%s: keeps its task, which no agent has got yet", r.was.Name)
	}
	if r.was.Workspace == spec.Ephemeral {
		a.say("NOTE: the ephemeral workspace of %s goes with its container", r.was.Name)
	}
	if onlyRef(r.was, r.next.spec) {
		a.say("NOTE: a clone that is in the workspace stays as it is; its branch is changed inside, with git")
	}
	if kept := r.kept(); len(kept) > 0 {
		a.say("%s: keeps %s", r.was.Name, strings.Join(kept, ", "))
	}
	for _, change := range spec.Changes(r.was, r.next.spec) {
		a.say("%s: %s", r.was.Name, change)
	}
	answer, err := a.deployAndReport(ctx, c, r.engine, "redeploy", r.next, r.old)
	return answer, a.wayBack(ctx, c, r, err)
}

// onlyRef reports whether the repository stays, in a workspace that stays, and
// another branch, tag or commit of it is asked for.
func onlyRef(was, next spec.Spec) bool {
	if was.Repo == next.Repo || next.Workspace != spec.Persistent || was.Workspace != next.Workspace {
		return false
	}
	before, _, err := spec.ParseRepo(was.Repo)
	after, _, nextErr := spec.ParseRepo(next.Repo)
	return err == nil && nextErr == nil && before.Same(after.URL)
}

// decideRedeploy reads and checks all that a redeploy needs, but for its task.
// Nothing is changed by it, unless find does.
func (a *app) decideRedeploy(ctx context.Context, c *ucli.Context, find finder) (*redeployment, error) {
	if err := a.config(); err != nil {
		return nil, err
	}
	e, old, err := a.beginFound(ctx, c, find)
	if err != nil {
		return nil, withUp(c, err)
	}
	was, bare, err := a.inherit(ctx, e, old)
	if err != nil {
		return nil, err
	}
	if err := needsEgress(c, old, was); err != nil {
		return nil, err
	}
	next, err := a.nextSpec(c, was, bare)
	if err != nil {
		return nil, err
	}
	typed, err := a.typedEnvironment(c)
	if err != nil {
		return nil, err
	}
	inherited, err := a.inheritedEnvironment(ctx, e, next, typed)
	if err != nil {
		return nil, err
	}
	from := kept{env: inherited, begun: a.hasOperation(was.Name)}
	if !c.IsSet("task") {
		if from.task, err = a.undeliveredTask(ctx, e, was.Name); err != nil {
			return nil, err
		}
	}
	if bare {
		was = withFiles(was, next)
	}
	d, err := a.prepareFiles(ctx, c, next, inherited)
	return &redeployment{engine: e, old: old, was: was, next: d, from: from}, err
}

// withFiles gives a spec that was put together what files say now: what they
// said then is not known, and so no change.
func withFiles(was, next spec.Spec) spec.Spec {
	was.RecordTask, was.BaseImage, was.CABundle, was.SSHBind, was.Timezone = next.RecordTask, next.BaseImage, next.CABundle, next.SSHBind, next.Timezone
	was.Restart, was.Limits.Run, was.Limits.Idle, was.Limits.Start = next.Restart, next.Limits.Run, next.Limits.Idle, next.Limits.Start
	return was
}

// withUp names, where there is no deployment, the up that makes one of what was
// typed. A value of the environment and the text of a task are left out: the
// hint may be kept in a log.
func withUp(c *ucli.Context, err error) error {
	f := asFailure(err)
	if f.code == exitNotFound {
		f.hint = "see: agent-container list; make it: " + typedAs(c, "up")
	}
	return f
}

// inherit reads what a container was deployed with. Of one without a readable
// spec it says what could be read, and what could not.
func (a *app) inherit(ctx context.Context, e *engine.Engine, old *engine.Container) (s spec.Spec, bare bool, err error) {
	i, err := compose.Inherit(old.Deployed())
	if err != nil {
		_, err := specOf(old)
		return i.Spec, false, err
	}
	if !i.Bare {
		return i.Spec, false, nil
	}
	s = i.Spec
	filled, err := filledEnvironment(ctx, e, s.Name)
	if err != nil {
		return s, true, err
	}
	for name := range filled {
		if (environment{}).set(s.Name, name, "") == nil {
			s.EnvNames = append(s.EnvNames, name)
		}
	}
	slices.Sort(s.EnvNames)
	a.say("%s has no readable spec: agent and mode are taken from its environment, the workspace from its mounts", s.Name)
	for _, field := range i.Unreadable {
		a.say("%s: %s is not readable either: the default is taken", s.Name, field)
	}
	a.say("%s: environment files and authorized keys that were typed are not known: type them again", s.Name)
	return s, true, nil
}

// nextSpec is the deployment's spec, with files read again and the typed flags
// over it.
func (a *app) nextSpec(c *ucli.Context, was spec.Spec, bare bool) (spec.Spec, error) {
	next := was
	next.Timezone = a.timezone()
	next.EnvNames = slices.Clone(was.EnvNames)
	if c.IsSet("mode") && spec.Mode(c.String("mode")) != spec.Headless {
		// What bounds a job, and was typed for the one of before, means nothing here.
		next.Typed = slices.DeleteFunc(slices.Clone(was.Typed), func(flag string) bool { return slices.Contains(spec.JobFlags, flag) })
	}
	if err := a.applySettings(&next); err != nil {
		return next, err
	}
	if bare {
		keepNarrower(&next, was.Limits)
	}
	if err := a.applyFlags(&next, c); err != nil {
		return next, err
	}
	if err := a.declareEgressAgain(&next, c, was); err != nil {
		return next, err
	}
	if err := next.Validate(); err != nil {
		return next, err
	}
	if bare && next.Mode == spec.Headless {
		return next, needsJobFlags(c, next.Name)
	}
	return next, nil
}

// keepNarrower takes into s the limits that the engine held a container to which
// has no spec, where the settings would let it have more.
func keepNarrower(s *spec.Spec, held spec.Limits) {
	if held.MemoryBytes > 0 && (s.Limits.MemoryBytes == 0 || held.MemoryBytes < s.Limits.MemoryBytes) {
		s.Limits.MemoryBytes, s.Typed = held.MemoryBytes, append(s.Typed, "memory")
	}
	if held.CPUs > 0 && (s.Limits.CPUs == 0 || held.CPUs < s.Limits.CPUs) {
		s.Limits.CPUs, s.Typed = held.CPUs, append(s.Typed, "cpus")
	}
	if held.Pids > 0 && held.Pids < s.Limits.Pids {
		s.Limits.Pids, s.Typed = held.Pids, append(s.Typed, "pids")
	}
}

// needsJobFlags refuses a job whose bounds of before nobody knows, unless they
// are typed: the settings might allow more.
func needsJobFlags(c *ucli.Context, name string) error {
	missing := slices.DeleteFunc(slices.Clone(spec.JobFlags), c.IsSet)
	if len(missing) == 0 {
		return nil
	}
	return refuse("type them, for example: --timeout 1h --idle-timeout none --headless-restart no",
		"%s has no readable spec, so what bounded its jobs is not known: --%s", name, strings.Join(missing, ", --"))
}

// prepareAgain reads a deployment that exists as redeploy would, without its
// task.
func (a *app) prepareAgain(ctx context.Context, s spec.Spec) (*deployment, error) {
	d := &deployment{spec: s}
	var err error
	if d.agent, err = spec.LookupAgent(s.Agent); err != nil {
		return nil, err
	}
	if d.brought, err = a.broughtBefore(s); err != nil {
		return nil, err
	}
	d.services, err = a.readServices(ctx, s.Name, d.brought)
	return d, err
}
