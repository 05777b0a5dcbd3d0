package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// refusedAnswer is what a deployment was refused since its container's start, or
// a run in its time.
type refusedAnswer struct {
	Name string `json:"name"`
	Run  string `json:"run,omitempty"`
	*spec.Refused
	Why string `json:"why,omitempty"` // nothing was watched

	now      time.Time
	terminal bool
}

func (a *app) egressDenied(ctx context.Context, c *ucli.Context) (any, error) {
	refused, _, err := a.refused(ctx, c)
	if err != nil {
		return nil, err
	}
	return refused, nil
}

// refused finds what the words of c ask for, and the deployment's spec where that
// is still there. That nobody watched is an answer; that the journal of who did
// cannot be read is an error.
func (a *app) refused(ctx context.Context, c *ucli.Context) (*refusedAnswer, *spec.Spec, error) {
	if c.IsSet("run") {
		return a.refusedRun(ctx, c)
	}
	e, found, s, err := a.named(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	r, err := a.refusedNow(ctx, e, found, s, found.State.StartedAt, time.Time{})
	return r, &s, err
}

// refusedNow reads the journal of a deployment that is there.
func (a *app) refusedNow(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec, since, until time.Time) (*refusedAnswer, error) {
	answer := &refusedAnswer{Name: s.Name, now: time.Now(), terminal: a.terminal}
	if s.Egress == nil {
		answer.Refused, answer.Why = &spec.Refused{Enforcement: unrestricted, Refusals: []spec.Refusal{}}, "unrestricted: nothing is watched"
		return answer, nil
	}
	if since.Before(c.Created) {
		since = c.Created // it was never started
	}
	var err error
	if answer.Refused, err = refusedSince(ctx, e, s.Name, s.Egress.Enforcement, since, until); err != nil {
		return nil, unreadableJournal(s.Name, err)
	}
	return answer, nil
}

func unreadableJournal(name string, err error) *failure {
	return fail(exitFailed, "see what runs: agent-container egress show "+name, "what was refused is not known: %w", err)
}

// refusedRun reads the record of a run, or the journal where the run is not over.
func (a *app) refusedRun(ctx context.Context, c *ucli.Context) (*refusedAnswer, *spec.Spec, error) {
	name, err := deploymentName(c)
	if err != nil {
		return nil, nil, err
	}
	if err := a.places(); err != nil {
		return nil, nil, err
	}
	if _, err := a.bringIfThere(ctx, name); err != nil {
		a.say("warning: %s", oneLine(err.Error()))
	}
	r, err := a.runs().Find(c.String("run"))
	if err != nil {
		return nil, nil, err
	}
	if r.Deployment != name {
		return nil, nil, fail(exitNotFound, "see: agent-container runs list "+name, "run %s is one of %s", r.ID, spec.Printable(r.Deployment, 60))
	}
	answer := &refusedAnswer{Name: name, Run: r.ID, Refused: r.Egress, now: time.Now(), terminal: a.terminal}
	e, found, s := a.runningFor(ctx, r)
	switch {
	case r.Egress != nil && r.Egress.Watched:
		return answer, s, nil
	case found != nil && s.Egress != nil:
		since, until, err := a.timesOf(found, r)
		if err != nil {
			return nil, nil, err
		}
		live, err := a.refusedNow(ctx, e, found, *s, since, until)
		if err != nil {
			return nil, nil, err
		}
		live.Run = r.ID
		return live, s, nil
	case r.Egress != nil:
		return nil, nil, fail(exitFailed, "see the rest of its record: agent-container runs show "+r.ID, "what run %s was refused is not known: %s", r.ID, spec.Printable(r.Egress.Problem, 500))
	}
	answer.Refused, answer.Why = &spec.Refused{Enforcement: unrestricted, Refusals: []spec.Refusal{}}, "run "+r.ID+" was recorded without egress: nothing was watched"
	return answer, s, nil
}

// runningFor is the container in which a run may still go on, and the spec of its
// deployment; both nil where there is none.
func (a *app) runningFor(ctx context.Context, r *spec.Record) (*engine.Engine, *engine.Container, *spec.Spec) {
	e, err := a.engine(ctx)
	if err != nil {
		return nil, nil, nil // it was said
	}
	found, s, err := a.current(ctx, e, r.Deployment)
	if err != nil {
		return nil, nil, nil
	}
	if r.StartedAt.Before(found.Created) || !found.State.Alive() {
		found = nil
	}
	return e, found, &s
}

// timesOf is a run's part of its container's life.
func (a *app) timesOf(c *engine.Container, r *spec.Record) (since, until time.Time, err error) {
	l, err := a.runs().List(r.Deployment)
	if err != nil {
		return since, until, err
	}
	slices.Reverse(l.Records)
	for _, s := range spansOf(c, l.Records) {
		if s.record.ID == r.ID {
			return s.from, s.to, nil
		}
	}
	return r.StartedAt, until, nil
}

func (t *refusedAnswer) text(w io.Writer) {
	switch {
	case !t.Watched:
		fmt.Fprintln(w, t.Why)
		return
	case len(t.Refusals) > 0:
		t.table(w)
	case t.LeftOut+t.Unreadable > 0:
		fmt.Fprintln(w, "no refusal is in the journal, which is not whole")
	default:
		fmt.Fprintln(w, "nothing was refused")
	}
	say := func(n int, what string) {
		if n > 0 {
			fmt.Fprintf(w, "%d %s\n", n, what)
		}
	}
	say(t.More, "more refusals have no row: there were too many names")
	say(t.LeftOut, "lines were left out of the journal: there were too many")
	say(t.Unreadable, "lines of the journal cannot be read")
}

func (t *refusedAnswer) table(w io.Writer) {
	var rows [][]string
	for _, r := range t.Refusals {
		port, what := "", string(r.Stage)
		if r.Port != 0 {
			port = strconv.Itoa(r.Port)
		}
		if r.Advised {
			what += " (advised)"
		}
		rows = append(rows, []string{
			spec.Printable(r.Host(), 300), port, spec.Printable(what, 40), strconv.Itoa(r.Count), age(r.First, t.now, t.terminal), age(r.Last, t.now, t.terminal),
		})
	}
	table(w, []string{"NAME", "PORT", "STAGE", "COUNT", "FIRST", "LAST"}, rows)
}
