package cli

import (
	"context"
	"io"
	"strconv"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/runs"
	"github.com/agent-container/agent-container/spec"
)

func runsCommand() command {
	return command{
		name: "runs", group: groupWork, usage: "read the run records",
		sub: []command{
			{name: "list", aliases: []string{"ls"}, args: "[NAME]", usage: "list the runs, newest first", max: 1, flags: runsFilterFlags(), run: (*app).runsList},
			{name: "show", args: "ID", usage: "print one run record; the beginning of its id suffices", min: 1, max: 1, run: (*app).runsShow,
				flags: []ucli.Flag{
					&ucli.BoolFlag{Name: "diff", Usage: "print what the run changed in the repository instead"},
					&ucli.BoolFlag{Name: "output", Usage: "print what the job wrote instead"},
				}},
			runsReportCommand(),
		},
	}
}

// runsAnswer is a list of records.
type runsAnswer struct {
	Runs       []*spec.Record `json:"runs"`
	Unreadable []string       `json:"unreadable,omitempty"`

	now      time.Time
	terminal bool
}

func (a *app) runsList(ctx context.Context, c *ucli.Context) (any, error) {
	name := c.Args().First()
	if name != "" {
		if err := spec.ValidateName(name); err != nil {
			return nil, err
		}
	}
	filter, err := newRunsFilter(c, time.Now())
	if err != nil {
		return nil, err
	}
	if err := a.places(); err != nil {
		return nil, err
	}
	l, err := a.listRecords(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, u := range l.Unreadable {
		a.say("warning: %s", oneLine(u))
	}
	answer := runsAnswer{Runs: filter.apply(l.Records), Unreadable: l.Unreadable, now: time.Now(), terminal: a.terminal}
	if answer.Runs == nil {
		answer.Runs = []*spec.Record{}
	}
	return answer, nil
}

// listRecords reads the records of one deployment, or of all, after bringing in
// what may have come to an end since.
func (a *app) listRecords(ctx context.Context, name string) (runs.Listing, error) {
	if name != "" {
		there, err := a.bringIfThere(ctx, name)
		if err != nil {
			return runs.Listing{}, err
		}
		l, err := a.runs().List(name)
		if err == nil && !there && len(l.Records)+len(l.Unreadable) == 0 {
			err = fail(exitNotFound, "see: agent-container list, agent-container runs list", "no deployment and no runs %s", name)
		}
		return l, err
	}
	l, err := a.runs().List("")
	if err != nil {
		return l, err
	}
	open := map[string]bool{}
	for _, r := range l.Records {
		if r.EndedAt == nil && !open[r.Deployment] {
			open[r.Deployment] = true
			if _, err := a.bringIfThere(ctx, r.Deployment); err != nil {
				a.say("warning: %s", oneLine(err.Error()))
			}
		}
	}
	if len(open) == 0 {
		return l, nil
	}
	return a.runs().List("")
}

// bringIfThere brings in the records of a deployment and reports whether it has
// a container. The records on the host can be read without any engine.
func (a *app) bringIfThere(ctx context.Context, name string) (bool, error) {
	e, err := a.engine(ctx)
	if err != nil {
		a.say("warning: only the records on this host are shown: %s", oneLine(err.Error()))
		return false, nil
	}
	found, err := a.find(ctx, e, name)
	if err != nil || found == nil {
		return false, err
	}
	if found.State.Status == "created" {
		return true, nil
	}
	s, err := specOf(found)
	if err != nil {
		a.say("warning: only the records on this host are shown: %s", oneLine(err.Error()))
		return true, nil
	}
	_, err = a.settle(ctx, e, found, s)
	return true, err
}

func (r runsAnswer) text(w io.Writer) {
	var rows [][]string
	for _, run := range r.Runs {
		code := ""
		if run.ExitCode != nil {
			code = strconv.Itoa(*run.ExitCode)
		}
		rows = append(rows, []string{
			run.ID, run.Deployment, spec.Printable(run.Agent, 20), spec.Printable(string(run.Kind), 20),
			outcomeOf(run), code, age(run.StartedAt, r.now, r.terminal),
		})
	}
	header := "STARTED"
	if r.terminal {
		header = "AGE"
	}
	table(w, []string{"RUN", "NAME", "AGENT", "KIND", "OUTCOME", "EXIT", header}, rows)
}

// recordAnswer prints a record as it is, control characters escaped.
type recordAnswer struct{ *spec.Record }

func (r recordAnswer) text(w io.Writer) {
	b, _ := encodeJSON(r.Record, "  ") // strings, numbers and times always encode
	w.Write(b)
}

func (a *app) runsShow(ctx context.Context, c *ucli.Context) (any, error) {
	if err := a.places(); err != nil {
		return nil, err
	}
	record, err := a.runs().Find(c.Args().First())
	if err != nil {
		return nil, err
	}
	if record.EndedAt == nil {
		// It was open when it was brought in; it may be over now.
		if _, err := a.bringIfThere(ctx, record.Deployment); err != nil {
			return nil, err
		}
		record, err = a.runs().Find(record.ID)
	}
	if err != nil {
		return nil, err
	}
	a.alarm(record)
	switch {
	case c.Bool("diff") && c.Bool("output"):
		return nil, refuse("drop one of them", "--diff and --output exclude each other")
	case c.Bool("diff"):
		return a.attachment(record, spec.DiffSuffix, "no changes of %s are kept: it made none, or there was no repository")
	case c.Bool("output"):
		return a.attachment(record, spec.OutputSuffix, "no output of %s is kept: it wrote none, or it was no job")
	}
	return recordAnswer{record}, nil
}

// attachedAnswer is what is kept beside a record.
type attachedAnswer struct {
	Run  string `json:"run"`
	Text string `json:"text"`
}

func (t attachedAnswer) text(w io.Writer) { io.WriteString(w, t.Text) }

// attachment reads what is kept beside a record. It comes from the container, so
// nothing of it may steer a terminal, wherever it is printed.
func (a *app) attachment(r *spec.Record, suffix, none string) (any, error) {
	content, err := a.runs().Attachment(r, suffix)
	if err != nil {
		return nil, err
	}
	if len(content) == 0 {
		a.say(none, r.ID)
	}
	return attachedAnswer{r.ID, spec.PrintableText(string(content))}, nil
}
