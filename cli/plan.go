package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func planCommand() command {
	return command{
		name: "plan", group: groupLife, args: "NAME", usage: "show what a redeploy would change, and why",
		detail: "Takes the flags of redeploy, reads what it reads, and changes nothing.",
		flags: slices.DeleteFunc(specFlags(), func(f ucli.Flag) bool {
			return slices.Contains([]string{"dry-run", "foreground"}, f.Names()[0])
		}),
		min: 1, max: 1, run: (*app).plan,
	}
}

// planAnswer is what a redeploy would make of a deployment.
type planAnswer struct {
	Name    string       `json:"name"`
	Changes []planChange `json:"changes"`
	Keeps   []string     `json:"keeps"`
	Needs   []string     `json:"needs"`        // what it would be refused without
	Unknown []string     `json:"not_compared"` // and why
	Image   string       `json:"image,omitempty"`
	Built   *time.Time   `json:"image_built,omitempty"` // nil: it is not on the engine

	mode     spec.Mode
	loses    bool // an ephemeral workspace
	carries  bool // a task that no agent has got
	terminal bool
	now      time.Time
}

// planChange is one thing that would be another one.
type planChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	What  string `json:"what,omitempty"` // added, removed, changed: where values are not shown
	Why   string `json:"why,omitempty"`  // the flag, FILE:LINE, file, or what else has brought it
}

func (c planChange) String() string {
	text := c.Field + ": " + c.What
	if c.What == "" {
		text = c.Field + ": " + c.From + " -> " + c.To
	}
	if c.Why != "" {
		text += " (" + c.Why + ")"
	}
	return spec.Printable(text, maxSaid)
}

// plan is redeploy cut short: what is decided is told and not done.
func (a *app) plan(ctx context.Context, c *ucli.Context) (any, error) {
	r, err := a.decideRedeploy(ctx, c, a.findAsItIs)
	if err != nil {
		return nil, err
	}
	next := r.next.spec
	p := &planAnswer{Name: next.Name, Changes: []planChange{}, Keeps: []string{}, Needs: []string{}, Unknown: []string{}, mode: next.Mode, loses: r.was.Workspace == spec.Ephemeral, terminal: a.terminal, now: time.Now()}
	p.Keeps = append(p.Keeps, r.kept()...)
	if r.from.task != nil && !c.IsSet("task") {
		p.Keeps = append(p.Keeps, "its task, which no agent has got yet")
		p.carries = true
	}
	if _, err := a.readTask(c, next.Mode, r.from); err != nil {
		f := asFailure(err)
		p.Needs = append(p.Needs, f.message+": "+f.hint)
	}
	for _, change := range spec.Changes(r.was, next) {
		p.Changes = append(p.Changes, planChange{Field: change.Field, From: change.From, To: change.To, Why: a.origin(c, change.Field)})
	}
	for _, compare := range []func(context.Context, *ucli.Context, *redeployment, *planAnswer) error{
		a.planPort, a.planImage, a.planEnvironment, a.planFill, a.planServices,
	} {
		if err := compare(ctx, c, r, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// findAsItIs is find for a command that repairs nothing: what an interrupted
// recreate has left is named.
func (a *app) findAsItIs(ctx context.Context, e *engine.Engine, name string) (*engine.Container, error) {
	found, err := a.find(ctx, e, name)
	if err != nil || found != nil {
		return found, err
	}
	all, err := e.Containers(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if twinOf(c) == compose.ProjectName(name) {
			return nil, fail(exitFailed, "repair it: agent-container redeploy "+name, "of %s there is only %s, which an interrupted recreate has left", name, c.Name)
		}
	}
	return nil, nil
}

func (p *planAnswer) text(w io.Writer) {
	if len(p.Changes) == 0 {
		fmt.Fprintf(w, "%s: a redeploy would change nothing\n", p.Name)
	} else {
		fmt.Fprintf(w, "%s: a redeploy would change\n", p.Name)
	}
	for _, c := range p.Changes {
		fmt.Fprintf(w, "  %s\n", c)
	}
	if len(p.Keeps) > 0 {
		fmt.Fprintf(w, "it keeps %s\n", spec.Printable(strings.Join(p.Keeps, ", "), maxSaid))
	}
	if p.Built != nil {
		fmt.Fprintf(w, "its image is %s, built %s\n", p.Image, ago(p.Built, p.now, p.terminal))
	}
	for _, n := range p.Unknown {
		fmt.Fprintf(w, "not compared: %s\n", spec.Printable(n, maxSaid))
	}
	for _, n := range p.Needs {
		fmt.Fprintf(w, "it would be refused: %s\n", n)
	}
	end := map[spec.Mode]string{spec.Headless: "the new task is run", spec.Interactive: "its session is begun anew", spec.Idle: "what runs in it is ended"}[p.mode]
	if p.carries && p.mode == spec.Headless {
		end = "its task is run"
	}
	if p.loses {
		end += ", and its ephemeral workspace is lost"
	}
	fmt.Fprintf(w, "in any case the container is made anew, %s\n", end)
}
