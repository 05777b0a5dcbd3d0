package runs

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/agent-container/agent-container/spec"
)

// taskView is what a run was asked.
type taskView struct {
	Heading heading
	First   string // its beginning on one line, when the whole is long
	Text    string
	Same    string // the anchor of a run that shows the same long task
	Cut     string
	Absent  string // why there is none
}

// Beside other runs, texts up to these are shown as they are, and longer ones
// behind their first line and only once.
const (
	shortText  = 400
	shortLines = 6
)

func newTask(v *runView, b *budget) *taskView {
	r, t := v.record, &taskView{Heading: heading{v.Sub, "Task"}}
	switch {
	case r.Task == nil && r.TaskBytes > 0:
		t.Absent = fmt.Sprintf("The text was not recorded (record_task: false); it had %s.", size(r.TaskBytes))
		return t
	case r.Task == nil || *r.Task == "":
		t.Absent = "There was no task."
		return t
	}
	t.Text = *r.Task
	if v.Sub && (len(t.Text) > shortText || strings.Count(strings.TrimSpace(t.Text), "\n") >= shortLines) {
		if t.Same = b.tasks[t.Text]; t.Same != "" {
			return t
		}
		b.tasks[t.Text] = v.Anchor
		first, _, _ := strings.Cut(strings.TrimSpace(t.Text), "\n")
		t.First = spec.Printable(first, 120)
	}
	if n := b.take(min(len(t.Text), maxTask)); n < len(t.Text) || r.TaskCut {
		t.Cut = fmt.Sprintf("The first %s of %s.", size(int64(n)), size(max(r.TaskBytes, int64(len(t.Text)))))
		t.Text = t.Text[:n]
	}
	t.Text = spec.PrintableText(t.Text)
	return t
}

// outputView is what a job wrote.
type outputView struct {
	Heading heading
	Size    string
	Text    string
	End     string // what follows after what is left out
	Left    string // how much that is
	Hint    string
	Absent  string
	Open    bool
}

// colours are the escape sequences that only colour text. Without them a person
// can read what a build has said.
var colours = regexp.MustCompile("\x1b\\[[0-9;:]*m")

func newOutput(v *runView, content []byte, b *budget) *outputView {
	o := &outputView{Heading: heading{v.Sub, "Output"}, Size: size(max(v.record.OutputBytes, int64(len(content)))), Open: !v.Sub}
	switch {
	case len(content) > 0:
	case v.record.Kind != spec.Headless:
		o.Absent = "Of a session no output is kept."
		return o
	case v.record.EndedAt == nil:
		o.Absent = "None was kept yet when this page was made."
		return o
	case v.record.OutputBytes > 0:
		o.Absent = fmt.Sprintf("It wrote %s, of which nothing is kept any more.", o.Size)
		return o
	default:
		o.Absent = "It wrote nothing."
		return o
	}
	content = colours.ReplaceAll(content, nil)
	n := b.take(min(len(content), maxShown))
	if n < len(content) {
		begin, end := content[:n/2], content[len(content)-n/2:]
		if i := bytes.LastIndexByte(begin, '\n'); i > n/4 {
			begin = begin[:i+1] // whole lines, unless they are very long
		}
		if i := bytes.IndexByte(end, '\n'); i >= 0 && i < n/4 {
			end = end[i+1:]
		}
		o.End = spec.PrintableText(string(end))
		o.Left = size(int64(len(content) - len(begin) - len(end)))
		o.Hint = "agent-container runs show " + v.ID + " --output"
		content = begin
	}
	o.Text = spec.PrintableText(string(content))
	return o
}
