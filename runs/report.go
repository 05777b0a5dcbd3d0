package runs

import (
	_ "embed"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/agent-container/agent-container/spec"
)

// MaxBodies is how many runs of a report are shown with their time line, task,
// changes and output; the others only have a row in its overview.
const MaxBodies = 50

// Bounds of a report. What is left out is said where it would be.
const (
	maxRows   = 1000
	maxShown  = 256 << 10 // of one output, one diff
	maxTask   = 64 << 10
	maxPage   = 12 << 20 // of all tasks, outputs and diffs
	maxList   = 200      // of commits, paths, files of a diff
	maxNotes  = 20
	maxLine   = 300 // of what stands on a line
	maxRemark = 2000
)

// Reported is a run as a report shows it. Everything in it may come from a
// hostile container.
type Reported struct {
	Record *spec.Record
	Output []byte // what is kept of its output
	Diff   []byte // what is kept of its changes
	Lost   string // why some of that could not be read
}

var (
	//go:embed report.html
	reportHTML string
	//go:embed report.css
	reportCSS template.CSS
)

// Report writes one HTML page about runs, in the order of list. The page needs
// nothing beside itself and runs nothing: it holds no script, and its policy
// permits none. It is the same for the same runs.
func Report(w io.Writer, list []Reported) error {
	t, err := template.New("report").Parse(reportHTML)
	if err != nil {
		return err
	}
	return t.Execute(w, newPage(list))
}

// page is what the template is given.
type page struct {
	CSS      template.CSS
	Title    string
	Period   string
	One      *runView // when there is only one run
	Tally    []figure
	Figures  []figure
	Alarms   []unpushed
	Charts   []*chart
	Legend   []word
	Rows     []*runView
	MoreRows int // runs that have no row
	Bodies   []*runView
	NoBody   int // rows that have no body
}

// figure is a number with its name.
type figure struct{ Name, Value, Class string }

// word is a closed word of ours with the class of its colour.
type word struct{ Class, Text string }

// unpushed is the alarm for commits that exist nowhere else.
type unpushed struct {
	Deployment, Run, Anchor, Branch string
	Commits                         int
}

// Here is the alarm as the run itself shows it, which need not name itself.
func (u unpushed) Here() unpushed {
	u.Run = ""
	return u
}

func newPage(list []Reported) *page {
	p := &page{CSS: reportCSS}
	if len(list) > maxRows {
		p.MoreRows, list = len(list)-maxRows, list[:maxRows]
	}
	budget := &budget{left: maxPage, tasks: map[string]string{}}
	for i, r := range list {
		v := newRunView(i+1, r.Record)
		p.Rows = append(p.Rows, v)
		if i < MaxBodies {
			v.fillBody(r, len(list) > 1, budget)
			p.Bodies = append(p.Bodies, v)
		}
	}
	p.NoBody = len(p.Rows) - len(p.Bodies)
	p.Title = title(p.Rows)
	p.Period = period(p.Rows)
	p.Legend = legend(p.Rows)
	if len(p.Rows) == 1 {
		p.One = p.Rows[0]
		return p
	}
	p.Tally, p.Figures = tally(p.Rows), totals(p.Rows)
	p.Alarms = alarms(p.Rows)
	p.Charts = overviewCharts(p.Rows)
	return p
}

// title names what the page is about.
func title(rows []*runView) string {
	names := deployments(rows)
	switch {
	case len(rows) == 0:
		return "No runs"
	case len(rows) == 1:
		return "Run of " + names[0]
	case len(names) == 1:
		return count(len(rows), "run") + " of " + names[0]
	}
	return count(len(rows), "run") + " of " + count(len(names), "deployment")
}

// deployments are the names in rows, each once, in their order.
func deployments(rows []*runView) []string {
	var names []string
	for _, v := range rows {
		if !slices.Contains(names, v.Deployment) {
			names = append(names, v.Deployment)
		}
	}
	return names
}

// words are the outcomes in the order in which a page counts them.
var words = []word{
	{"failed", "failed"}, {"lost", "lost"}, {"stopped", "stopped"}, {"running", "running"}, {"ended", "ended"}, {"finished", "finished"},
}

// wordOf is the word for a run's outcome.
func wordOf(r *spec.Record) word {
	class := string(r.Outcome)
	if r.Outcome == "" {
		class = "running"
	}
	for _, w := range words {
		if w.Class == class {
			return w
		}
	}
	return word{"unknown", spec.Printable(class, 40)}
}

func tally(rows []*runView) []figure {
	var list []figure
	for _, w := range words {
		n := 0
		for _, v := range rows {
			if v.Outcome == w {
				n++
			}
		}
		if n > 0 {
			list = append(list, figure{w.Text, grouped(int64(n)), w.Class})
		}
	}
	return list
}

// legend are the words that the bars of rows need.
func legend(rows []*runView) []word {
	var list []word
	for _, w := range words {
		if slices.ContainsFunc(rows, func(v *runView) bool { return v.Outcome == w }) {
			list = append(list, w)
		}
	}
	return list
}

// totals are the figures of several runs. A run without an end has no time yet.
func totals(rows []*runView) []figure {
	var seconds, setUp float64
	var output int64
	commits := map[string]bool{}
	paths := map[string]bool{}
	for _, v := range rows {
		seconds += v.seconds
		setUp += v.setUp
		output = addBytes(output, v.record.OutputBytes)
		if repo := v.record.Repository; repo != nil {
			for _, c := range repo.Commits[:min(len(repo.Commits), spec.MaxCommits)] {
				commits[c] = true
			}
			for _, p := range repo.Paths[:min(len(repo.Paths), spec.MaxPaths)] {
				paths[v.Deployment+"\x00"+p] = true
			}
		}
	}
	return []figure{
		{Name: "Time in all", Value: duration(seconds)},
		{Name: "Set-up in all", Value: duration(setUp)},
		{Name: "Output in all", Value: size(output)},
		{Name: "Commits", Value: grouped(int64(len(commits)))},
		{Name: "Paths changed", Value: grouped(int64(len(paths)))},
	}
}

// alarms are of each deployment the newest run that is over: what an earlier
// one left unpushed may have been pushed since, or is counted by it too.
func alarms(rows []*runView) []unpushed {
	newest := map[string]*runView{}
	for _, v := range rows {
		known := newest[v.Deployment]
		if v.record.EndedAt != nil && (known == nil || v.record.StartedAt.After(known.record.StartedAt)) {
			newest[v.Deployment] = v
		}
	}
	var list []unpushed
	for _, name := range deployments(rows) {
		if v := newest[name]; v != nil && v.Alarm != nil {
			list = append(list, *v.Alarm)
		}
	}
	return list
}

// budget is what is left of the page for texts, and the tasks that it shows.
type budget struct {
	left  int
	tasks map[string]string // anchor by text
}

// take grants n bytes or what is left.
func (b *budget) take(n int) int {
	n = max(min(n, b.left), 0)
	b.left -= n
	return n
}

// lines are texts on one line each, at most limit of them, and how many more
// there are.
func lines(list []string, limit, length int) (shown []string, more int) {
	if len(list) > limit {
		more, list = len(list)-limit, list[:limit]
	}
	for _, s := range list {
		shown = append(shown, strings.TrimSpace(spec.Printable(s, length)))
	}
	return shown, more
}
