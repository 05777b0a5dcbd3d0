package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func yesFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do it without asking"}
}

func downCommand() command {
	return command{
		name: "down", group: groupLife, args: "NAME", usage: "remove a deployment's containers and network; volumes stay",
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "purge", Usage: "also its volumes (workspace, logins, keys) and state; run records stay"},
			yesFlag(),
		},
		min: 1, max: 1,
		run: func(a *app, ctx context.Context, c *ucli.Context) (any, error) {
			return a.down(ctx, c, c.Bool("purge"), false)
		},
	}
}

func wipeCommand() command {
	return command{
		name: "wipe", group: groupLife, args: "NAME", usage: "remove everything of a deployment, run records too",
		flags: []ucli.Flag{yesFlag()}, min: 1, max: 1,
		run: func(a *app, ctx context.Context, c *ucli.Context) (any, error) {
			return a.down(ctx, c, true, true)
		},
	}
}

// removal is what down found, and what it removed.
type removal struct {
	Name       string   `json:"name"`
	Containers []string `json:"containers"`
	Volumes    []string `json:"volumes"`
	Records    bool     `json:"records_removed"`
}

func (r *removal) text(w io.Writer) {
	fmt.Fprintf(w, "%s: removed %d containers, %d volumes", r.Name, len(r.Containers), len(r.Volumes))
	if r.Records {
		fmt.Fprint(w, ", its run records")
	}
	fmt.Fprintln(w)
}

// down removes a deployment. It needs no readable spec: it goes by labels, and
// what has our name without our label is refused before anything happens.
func (a *app) down(ctx context.Context, c *ucli.Context, purge, records bool) (any, error) {
	a.ends = true
	name, e, err := a.begin(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := a.refuseForeign(ctx, e, name); err != nil {
		return nil, err
	}
	if err := a.existsAtAll(ctx, e, name, records); err != nil {
		return nil, err
	}
	question := removalQuestion(name, purge, records)
	key, _ := a.keptKey(name)
	if key != "" && purge {
		question += "; its SSH key goes with them"
	}
	if err := a.confirm(c, question); err != nil {
		return nil, err
	}
	if key != "" && purge {
		a.say("NOTE: the SSH key of %s goes with its volumes; where it is registered, take it out:", name)
		a.say("%s", key)
	}
	release, err := a.lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer release()
	return a.remove(ctx, e, name, purge, records)
}

func removalQuestion(name string, purge, records bool) string {
	switch {
	case records:
		return fmt.Sprintf("remove %s with its volumes and run records", name)
	case purge:
		return fmt.Sprintf("remove %s with its volumes: workspace, logins and keys", name)
	}
	return fmt.Sprintf("remove the containers of %s; its volumes stay", name)
}

// refuseForeign returns a *engine.ForeignError for a container or volume that
// has a name of this deployment without its label.
func (a *app) refuseForeign(ctx context.Context, e *engine.Engine, name string) error {
	if _, err := a.findRepaired(ctx, e, name); err != nil {
		return err
	}
	return e.CheckVolumes(ctx, name, volumeNames(spec.Spec{Name: name, Workspace: spec.Persistent}))
}

// existsAtAll returns a *failure with code 4 when nothing of the deployment is
// left that could be removed: a mistyped name must not look like success.
func (a *app) existsAtAll(ctx context.Context, e *engine.Engine, name string, records bool) error {
	anything, err := e.Anything(ctx, name)
	if err != nil || anything {
		return err
	}
	if _, err := os.Stat(a.dirs.Deployment(engine.LocalHost, name)); err == nil {
		return nil
	}
	if l, err := a.runs().List(name); err == nil && records && len(l.Records) > 0 {
		return nil
	}
	return fail(exitNotFound, "see: agent-container list", "no deployment %s", name)
}

// remove stops, brings in the records, and removes, so that a kill at any point
// leaves something that the same command finishes.
func (a *app) remove(ctx context.Context, e *engine.Engine, name string, purge, records bool) (any, error) {
	r := &removal{Name: name, Containers: []string{}, Volumes: []string{}}
	a.endOperation(name)
	var all []*engine.Container
	steps := []step{
		{"down-locked", func() error { return nil }},
		{"down-stopped", func() error { return a.stopAll(ctx, e, name) }},
		{"down-brought", func() (err error) {
			if all, err = e.Settled(ctx, name); err != nil {
				return err
			}
			return a.empty(ctx, e, all, !records, !purge)
		}},
		{"down-containers", func() error {
			var ids []string
			for _, c := range all {
				ids = append(ids, c.ID)
				r.Containers = append(r.Containers, c.Name)
			}
			return e.Remove(ctx, ids...)
		}},
		{"down-networks", func() error { return e.RemoveNetworks(ctx, name) }},
	}
	if purge {
		steps = append(steps,
			step{"down-volumes", func() (err error) { r.Volumes, err = e.RemoveVolumes(ctx, name); return err }},
			step{"down-shared", func() error { return e.RemoveSharedNetwork(ctx) }},
			step{"down-state", func() error { return a.removeState(name) }},
		)
	}
	if records {
		steps = append(steps, step{"down-records", func() error { return a.runs().Remove(engine.LocalHost, name) }})
	}
	r.Records = records
	return r, take(ctx, steps...)
}

// removeState removes the deployment's state directory, but for the lock that what
// a killed command has started still has: the next command waits for it.
func (a *app) removeState(name string) error {
	dir := a.dirs.Deployment(engine.LocalHost, name)
	if !a.orphaned {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != workLock {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// empty takes out of the agent's container what must not go with it, its
// records, and what must not stay behind on a volume, the user's environment.
func (a *app) empty(ctx context.Context, e *engine.Engine, all []*engine.Container, records, environment bool) error {
	if len(all) == 0 && environment {
		a.say("NOTE: no container is left to empty the environment with: its values stay on their volume until a purge")
	}
	for _, c := range all {
		if !c.IsAgent() {
			continue
		}
		if records && c.State.HasRun() {
			if _, err := a.bringRecords(ctx, e, c); err != nil {
				return err
			}
		}
		if environment {
			if err := e.Fill(ctx, c.ID, noSecrets); err != nil {
				a.say("warning: the environment of %s is left on its volume until a purge: %s", c.Deployment(), oneLine(err.Error()))
			}
		}
	}
	return nil
}

// input reads what somebody may never type: a signal ends the wait for it.
func input[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// confirm asks on a terminal and needs --yes elsewhere.
func (a *app) confirm(c *ucli.Context, question string) error {
	if c.Bool("yes") {
		return nil
	}
	if !a.terminal {
		return refuse("add --yes", "%s needs a confirmation, and there is no terminal", c.Command.FullName())
	}
	fmt.Fprintf(a.err, "agent-container: %s? [y/N] ", spec.Printable(question, maxSaid)) // a path is in it
	line, err := input(c.Context, func() (string, error) { return bufio.NewReader(a.in).ReadString('\n') })
	if err != nil && err != io.EOF {
		return err
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return refuse("", "not confirmed")
	}
	return nil
}
