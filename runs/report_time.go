package runs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// chart is a time line: lanes of bars over one axis.
type chart struct {
	Heading heading
	Note    string
	Lanes   []lane
	Ticks   []tick
}

// lane is a line of a chart.
type lane struct {
	Label, Detail string
	Anchor        string // of the run that it belongs to
	End           string // what stands behind the bars
	Said          string // the lane in words, for those who do not see it
	Bars          []bar
}

// bar is a stretch of a lane. X and Width are parts of the axis, as "12.5%".
type bar struct{ X, Width, Class, Title string }

// tick is a mark of the axis.
type tick struct{ X, Text, Anchor string }

const (
	maxLanes = MaxBodies
	minBar   = 0.006 // of the axis: what took no time can still be seen
)

// believable reports whether a run can stand on an axis with others: a record
// that says the year 9999 would leave no room for them. When the host first had
// it is the measure.
func believable(r *spec.Record) bool {
	if r.EndedAt != nil && r.EndedAt.Before(r.StartedAt) {
		return false
	}
	near := func(t *time.Time) bool {
		switch {
		case t == nil:
			return true
		case r.KeptAt == nil:
			return t.Year() > 2000 && t.Year() < 2200
		}
		return math.Abs(secondsBetween(*r.KeptAt, *t)) < 366*24*3600
	}
	return near(&r.StartedAt) && near(r.AgentAt) && near(r.EndedAt)
}

// overviewCharts are the charts of several runs.
func overviewCharts(rows []*runView) []*chart {
	var shown []*runView
	for _, v := range rows {
		if believable(v.record) {
			shown = append(shown, v)
		}
	}
	if len(shown) == 0 {
		return nil
	}
	jobs := jobsOf(shown)
	list := []*chart{jobsChart(jobs)}
	if len(jobs) > 1 {
		list = append([]*chart{whenChart(shown)}, list...)
	}
	if n := len(rows) - len(shown); n > 0 {
		list[0].Note = strings.TrimSpace(list[0].Note + fmt.Sprintf(" %s whose times cannot be true are not drawn.", count(n, "run")))
	}
	return list
}

// whenChart draws the runs of each deployment over the time of day.
func whenChart(rows []*runView) *chart {
	first, last := rows[0].record.StartedAt, rows[0].record.StartedAt
	for _, v := range rows {
		end := v.record.EndedAt
		if end == nil {
			end = v.record.AgentAt
		}
		if end != nil && end.After(last) {
			last = *end
		}
		if at := v.record.StartedAt; at.Before(first) {
			first = at
		} else if at.After(last) {
			last = at
		}
	}
	a := axis{from: first, length: max(secondsBetween(first, last), 1)}
	c := &chart{Heading: heading{Text: "Time line"}, Ticks: a.clockTicks()}
	names := deployments(rows)
	for _, name := range names[:min(len(names), maxLanes)] {
		l := lane{Label: name}
		n := 0
		for _, v := range slices.Backward(rows) { // a newer one over an older one
			if v.Deployment == name {
				n++
				l.Bars = append(l.Bars, a.bars(v)...)
			}
		}
		l.End = count(n, "run")
		l.Said = fmt.Sprintf("%s: %s", name, l.End)
		c.Lanes = append(c.Lanes, l)
	}
	if n := len(names) - len(c.Lanes); n > 0 {
		c.Note = count(n, "deployment") + " more are left out."
	}
	return c
}

// jobsChart draws every job from its own start, its attempts beside each other.
func jobsChart(jobs [][]*runView) *chart {
	c := &chart{Heading: heading{Text: "From the start of each job"}}
	if len(jobs) > maxLanes {
		c.Note = fmt.Sprintf("The newest %d jobs are drawn.", maxLanes)
		jobs = jobs[:maxLanes]
	}
	length := 1.0
	for _, job := range jobs {
		for _, v := range job {
			length = max(length, secondsBetween(job[0].record.StartedAt, v.record.StartedAt)+v.seconds, v.setUp)
		}
	}
	c.Ticks = axis{length: length}.elapsedTicks()
	for _, job := range jobs {
		first, last := job[0], job[len(job)-1]
		l := lane{Label: first.Deployment, Detail: first.Started.Day + ", " + first.Started.Clock, Anchor: first.Anchor, End: last.Outcome.Text}
		a := axis{from: first.record.StartedAt, length: length}
		for _, v := range job {
			l.Bars = append(l.Bars, a.bars(v)...)
		}
		if last.record.EndedAt != nil {
			l.End += ", " + duration(secondsBetween(first.record.StartedAt, *last.record.EndedAt))
		}
		if len(job) > 1 {
			l.Detail += ", " + count(len(job), "attempt")
		}
		l.Said = fmt.Sprintf("%s, %s: %s", l.Label, l.Detail, l.End)
		c.Lanes = append(c.Lanes, l)
	}
	return c
}

// runChart draws one run, nil when its times say nothing.
func runChart(v *runView) *chart {
	if !believable(v.record) || v.record.EndedAt == nil && v.record.AgentAt == nil {
		return nil
	}
	a := axis{from: v.record.StartedAt, length: max(v.seconds, v.setUp, 0.001)}
	c, l := &chart{Heading: heading{v.Sub, "Time line"}, Ticks: a.elapsedTicks()}, lane{End: v.Outcome.Text}
	if v.record.EndedAt != nil {
		l.End += ", " + v.Duration
	} else {
		a.length *= 3 // nobody knows for how long it goes on
		c.Ticks = []tick{newTick(0, "0"), newTick(1.0/3, v.SetUp)}
	}
	l.Bars, l.Said = a.bars(v), l.End
	c.Lanes = []lane{l}
	return c
}

// jobsOf puts together the attempts of each job, newest job first, attempts in
// their order. A record does not name its job: attempts of one follow each other
// in one deployment, with one task and rising numbers.
func jobsOf(rows []*runView) [][]*runView {
	last := map[string]int{}
	var jobs [][]*runView
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b *runView) int { return a.record.StartedAt.Compare(b.record.StartedAt) })
	for _, v := range sorted {
		key := v.record.Host + "\x00" + v.record.Deployment
		if i, ok := last[key]; ok {
			former := jobs[i][len(jobs[i])-1].record
			if v.Attempt > 1 && v.Attempt == former.Attempt+1 && v.record.TaskSHA256 == former.TaskSHA256 && v.record.Kind == former.Kind {
				jobs[i] = append(jobs[i], v)
				continue
			}
		}
		last[key] = len(jobs)
		jobs = append(jobs, []*runView{v})
	}
	slices.Reverse(jobs)
	return jobs
}

// axis is a length of time that is drawn.
type axis struct {
	from   time.Time
	length float64 // in seconds
}

func percent(part float64) string {
	return strconv.FormatFloat(max(min(part, 1), 0)*100, 'f', 3, 64) + "%"
}

// bars are a run's set-up and what followed it. An open one goes to the end of
// the axis.
func (a axis) bars(v *runView) []bar {
	r := v.record
	start := secondsBetween(a.from, r.StartedAt) / a.length
	end, class := 1.0, "bar running"
	if r.EndedAt != nil {
		end, class = secondsBetween(a.from, *r.EndedAt)/a.length, "bar "+v.Outcome.Class
	}
	title := v.Started.Day + ", " + v.Started.Clock + ": " + v.Outcome.Text
	if v.Cause != "" {
		title += " (" + v.Cause + ")"
	}
	if v.Attempt > 1 {
		title = fmt.Sprintf("attempt %d, %s", v.Attempt, title)
	}
	work := start + v.setUp/a.length
	var list []bar
	if v.setUp > 0 {
		list = append(list, bar{percent(start), percent(max(work-start, minBar)), "bar set-up", "set-up: " + v.SetUp})
	}
	if r.Cause == spec.CauseSetup && r.AgentAt == nil {
		// All of it was set-up: the outcome is a mark at its end.
		work = max(end-minBar, start)
	}
	x := min(max(work, 0), 1-minBar)
	return append(list, bar{percent(x), percent(max(end-x, minBar)), class, title + ", " + v.Duration})
}
