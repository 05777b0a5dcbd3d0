package runs

import (
	"cmp"
	"fmt"

	"github.com/agent-container/agent-container/spec"
)

// egressView is what a gateway refused a run.
type egressView struct {
	Heading heading
	Count   string
	None    string // why there is no row
	Rows    []refusalRow
	Notes   []string // what the rows do not have
	Open    bool
}

// refusalRow is one thing that was refused.
type refusalRow struct {
	Host, Port, Stage, Reason, Count string
	First, Last                      stamp
}

// newEgress is nil for a run without a gateway, and for one that goes on.
func newEgress(v *runView) *egressView {
	e := v.record.Egress
	if e == nil {
		return nil
	}
	view := &egressView{Heading: heading{v.Sub, "Refused"}, Open: !v.Sub}
	shown := e.Refusals[:min(len(e.Refusals), spec.MaxRefusals)]
	times := 0
	for _, r := range shown {
		row := refusalRow{
			Host: spec.Printable(cmp.Or(r.Host(), "–"), maxLine), Port: "–", Stage: spec.Printable(string(r.Stage), 20), Reason: spec.Printable(r.Reason, maxLine),
			Count: grouped(int64(r.Count)), First: stampOf(r.First), Last: stampOf(r.Last),
		}
		if r.Port != 0 {
			row.Port = fmt.Sprint(r.Port)
		}
		if r.Advised {
			row.Stage += ", advised"
		}
		times += max(r.Count, 0)
		view.Rows = append(view.Rows, row)
	}
	view.Count = count(times, "time")
	switch {
	case !e.Watched:
		view.None = "What was tried is not known: " + spec.Printable(cmp.Or(e.Problem, "nothing was watched"), maxRemark) + "."
	case len(view.Rows) == 0:
		view.None = "Nothing was refused."
	}
	note := func(n int, noun, what string) {
		if n > 0 {
			view.Notes = append(view.Notes, count(n, noun)+" "+what)
		}
	}
	note(e.More, "refusal", "more without a row: there were too many names.")
	note(e.LeftOut, "line", "left out of the journal: there were too many.")
	note(e.Unreadable, "line", "of the journal could not be read.")
	return view
}
