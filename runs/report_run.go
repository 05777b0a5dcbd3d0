package runs

import (
	"fmt"
	"strings"

	"github.com/agent-container/agent-container/spec"
)

// runView is a run in words. Its strings are still to be escaped; html/template
// does so.
type runView struct {
	record *spec.Record

	Anchor     string
	ID         string
	Deployment string
	Agent      string // with its version and what kind of run it was
	Image      string // the beginning of its id
	Attempt    int    // 0 when it is no matter
	Cause      string // where it says more than the outcome
	Code       string // the exit code, empty without one
	Outcome    word
	Sentence   string
	Started    stamp
	Duration   string
	SetUp      string
	Output     string
	Commits    string
	Paths      string
	Alarm      *unpushed
	Odd        string // the record and the engine differ, or the record contradicts itself

	seconds, setUp float64

	body
}

// body is the part of a run that an overview leaves out.
type body struct {
	Sub       bool // beside others: its headings are one level lower, its long texts closed
	Figures   []figure
	Notes     []string
	MoreNotes int
	Lost      string
	Chart     *chart
	Task      *taskView
	Changes   *changesView
	Text      *outputView
	Egress    *egressView
	Facts     []fact
}

func newRunView(number int, r *spec.Record) *runView {
	v := &runView{
		record: r, Anchor: fmt.Sprintf("run-%d", number), ID: spec.Printable(r.ID, 60), Deployment: spec.Printable(r.Deployment, 60),
		Outcome: wordOf(r), Sentence: sentence(r), Started: stampOf(r.StartedAt), Odd: spec.Printable(r.Disagreement, maxRemark),
		Output: size(r.OutputBytes), Commits: "–", Paths: "–", Duration: "–", SetUp: "–",
	}
	v.Agent = spec.Printable(strings.TrimSpace(r.Agent+" "+r.AgentVersion), 80) + ", " + spec.Printable(string(r.Kind), 20)
	v.Image = spec.Printable(strings.TrimPrefix(r.Image, "sha256:"), 12)
	if r.Kind == spec.Headless {
		v.Attempt = r.Attempt
	}
	if r.OutputBytes == 0 && (r.Kind != spec.Headless || r.EndedAt == nil) {
		v.Output = "–" // of a session none is kept, and of a job it is counted at its end
	}
	if r.ExitCode != nil {
		v.Code = fmt.Sprint(*r.ExitCode)
	}
	if c := causes[r.Cause]; r.Outcome == spec.OutcomeFailed {
		v.Cause = c.short
	}
	v.times()
	v.repository()
	return v
}

// times computes how long the run and its set-up took.
func (v *runView) times() {
	r := v.record
	if r.EndedAt != nil && !r.EndedAt.Before(r.StartedAt) {
		v.seconds = secondsBetween(r.StartedAt, *r.EndedAt)
		v.Duration = duration(v.seconds)
	}
	end := r.AgentAt
	if end == nil && r.Cause == spec.CauseSetup {
		end = r.EndedAt // it was over before the set-up was
	}
	if end != nil && !end.Before(r.StartedAt) && (r.EndedAt == nil || !end.After(*r.EndedAt)) {
		v.setUp = secondsBetween(r.StartedAt, *end)
		v.SetUp = duration(v.setUp)
	}
}

func (v *runView) repository() {
	repo := v.record.Repository
	if repo == nil || repo.State == "none" || repo.State == "unreadable" {
		return
	}
	v.Commits, v.Paths = grouped(int64(len(repo.Commits))), grouped(int64(len(repo.Paths)))
	if repo.Truncated {
		// Which of the two lists was cut is known by its length alone.
		if len(repo.Commits) >= spec.MaxCommits || len(repo.Paths) < spec.MaxPaths {
			v.Commits += "+"
		}
		if len(repo.Paths) >= spec.MaxPaths || len(repo.Commits) < spec.MaxCommits {
			v.Paths += "+"
		}
	}
	if repo.Unpushed > 0 && v.record.EndedAt != nil {
		v.Alarm = &unpushed{v.Deployment, v.ID, v.Anchor, spec.Printable(repo.Branch, 100), repo.Unpushed}
	}
}

// causes are the words for a cause: beside the outcome, and in a sentence.
var causes = map[spec.Cause]struct{ short, long string }{
	spec.CauseExit:    {"", "The agent exited with code %s"},
	spec.CauseSignal:  {"signal", "The agent was killed by a signal, exit code %s"},
	spec.CauseOOM:     {"out of memory", "The agent was killed because the container's memory was used up, exit code %s"},
	spec.CauseTimeout: {"time limit", "A time limit ended the agent, exit code %s"},
	spec.CauseSetup:   {"set-up", "The set-up failed before the agent could work, exit code %s"},
	spec.CauseEgress:  {"gateway lost", "The gateway of its egress was lost, so it was ended: exit code %s is that of the forced stop"},
	spec.CauseStop:    {"told to stop", "The container was told to stop, exit code %s"},
	spec.CauseLost:    {"", "The container died without closing the record"},
}

// sentence says how a run ended.
func sentence(r *spec.Record) string {
	code := "unknown"
	if r.ExitCode != nil {
		code = fmt.Sprint(*r.ExitCode)
	}
	switch r.Outcome {
	case "":
		return "The run was going on when this page was made."
	case spec.OutcomeFinished:
		return "The agent exited with code " + code + "."
	case spec.OutcomeStopped:
		return "The run was told to stop, exit code " + code + "."
	case spec.OutcomeEnded:
		return "The session was closed in order."
	case spec.OutcomeLost:
		return causes[spec.CauseLost].long + "."
	}
	c, known := causes[r.Cause]
	switch {
	case !known:
		return "The run ended, exit code " + code + "."
	case r.Cause == spec.CauseLost:
		return c.long + "."
	}
	return fmt.Sprintf(c.long, code) + "."
}

// fillBody adds what the overview leaves out.
func (v *runView) fillBody(r Reported, sub bool, b *budget) {
	v.Sub = sub
	v.Figures = v.figures()
	v.Notes, v.MoreNotes = lines(v.record.Notes, maxNotes, maxRemark)
	v.Lost = spec.Printable(r.Lost, maxRemark)
	v.Chart = runChart(v)
	v.Task = newTask(v, b)
	v.Changes = newChanges(v, r.Diff, b)
	v.Text = newOutput(v, r.Output, b)
	v.Egress = newEgress(v)
	v.Facts = facts(v.record)
}

// figures are the numbers of one run.
func (v *runView) figures() []figure {
	work := "–"
	if v.SetUp != "–" && v.Duration != "–" && v.record.AgentAt != nil {
		work = duration(v.seconds - v.setUp)
	}
	list := []figure{{Name: "Duration", Value: v.Duration}}
	if v.record.Kind == spec.Headless {
		list = append(list, figure{Name: "Set-up", Value: v.SetUp}, figure{Name: "Agent", Value: work}, figure{Name: "Output", Value: v.Output})
	}
	list = append(list, figure{Name: "Commits", Value: v.Commits}, figure{Name: "Paths changed", Value: v.Paths})
	pushed := figure{Name: "Not pushed", Value: "–"}
	if repo := v.record.Repository; repo != nil && repo.Remote {
		pushed.Value = grouped(int64(repo.Unpushed))
		if v.Alarm != nil {
			pushed.Class = "failed"
		}
	}
	list = append(list, pushed)
	if v.Attempt > 0 {
		list = append(list, figure{Name: "Attempt", Value: grouped(int64(v.Attempt))})
	}
	code := figure{Name: "Exit code", Value: "–"}
	if v.Code != "" {
		code.Value = v.Code
		if v.Code != "0" {
			code.Class = v.Outcome.Class
		}
	}
	return append(list, code)
}

// heading is a heading within a run.
type heading struct {
	Sub  bool
	Text string
}

// Legend and RecordHeading are for the template.
func (v *runView) Legend() []word         { return []word{v.Outcome} }
func (v *runView) RecordHeading() heading { return heading{v.Sub, "Record"} }
