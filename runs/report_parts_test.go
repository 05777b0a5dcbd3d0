package runs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

// texts are the texts of elements.
func texts(list []element) []string {
	var all []string
	for _, e := range list {
		all = append(all, strings.TrimSpace(e.Text))
	}
	return all
}

func TestReportSaysHowARunEnded(t *testing.T) {
	// Every outcome and cause must have its own badge and sentence, with the exit code where there is one.
	code := func(n int) *int { return &n }
	seen := map[string]bool{}
	for _, c := range []struct {
		outcome  spec.Outcome
		cause    spec.Cause
		code     *int
		class    string
		sentence string
	}{
		{"", "", nil, "running", "The run was going on when this page was made."},
		{spec.OutcomeFinished, spec.CauseExit, code(0), "finished", "The agent exited with code 0."},
		{spec.OutcomeFailed, spec.CauseExit, code(7), "failed", "The agent exited with code 7."},
		{spec.OutcomeFailed, spec.CauseSignal, code(137), "failed", "The agent was killed by a signal, exit code 137."},
		{spec.OutcomeFailed, spec.CauseOOM, code(137), "failed", "The agent was killed because the container's memory was used up, exit code 137."},
		{spec.OutcomeFailed, spec.CauseTimeout, code(124), "failed", "A time limit ended the agent, exit code 124."},
		{spec.OutcomeFailed, spec.CauseSetup, code(1), "failed", "The set-up failed before the agent could work, exit code 1."},
		{spec.OutcomeFailed, spec.CauseEgress, code(143), "failed", "The gateway of its egress was lost, so it was ended: exit code 143 is that of the forced stop."},
		{spec.OutcomeStopped, spec.CauseStop, code(143), "stopped", "The run was told to stop, exit code 143."},
		{spec.OutcomeEnded, spec.CauseExit, nil, "ended", "The session was closed in order."},
		{spec.OutcomeLost, spec.CauseLost, nil, "lost", "The container died without closing the record."},
		{"\x1b", "<", nil, "unknown", "The run ended, exit code unknown."},
	} {
		r := jobRun(0, func(r *spec.Record) {
			r.Outcome, r.Cause, r.ExitCode = c.outcome, c.cause, c.code
			if c.outcome == "" {
				r.EndedAt = nil
			}
		})
		_, elements := makePage(t, r)
		if got := texts(named(elements, "p", "sentence")); cmp.Diff([]string{c.sentence}, got) != "" || seen[c.sentence] {
			t.Errorf("%s, %s: %q, want %q", c.outcome, c.cause, got, c.sentence)
		}
		if len(named(elements, "span", c.class)) != 1 || len(named(elements, "rect", c.class)) < 1 {
			t.Errorf("%s, %s: no badge or no bar of class %s", c.outcome, c.cause, c.class)
		}
		seen[c.sentence] = true
	}
}

func TestReportRaisesTheAlarm(t *testing.T) {
	// Commits that were not pushed must be told at the top for the newest run that is over, with a way to it, and in each run that left some.
	left := func(n, unpushed int) Reported {
		return jobRun(n, func(r *spec.Record) {
			r.Repository = &spec.Repository{State: "ok", Branch: "main", Remote: true, Unpushed: unpushed}
		})
	}
	going := jobRun(9, func(r *spec.Record) { r.EndedAt, r.Outcome = nil, "" })
	for about, c := range map[string]struct {
		list []Reported
		want []string
	}{
		"the newest has":     {[]Reported{left(5, 3), left(1, 1)}, []string{"3 commits were", "3 commits were", "1 commit was"}},
		"pushed since":       {[]Reported{left(5, 0), left(1, 1)}, []string{"1 commit was"}},
		"one goes on":        {[]Reported{going, left(5, 3), left(1, 0)}, []string{"3 commits were", "3 commits were"}},
		"one":                {[]Reported{left(1, 2)}, []string{"2 commits were"}},
		"none":               {[]Reported{left(1, 0)}, nil},
		"in any order of it": {[]Reported{left(1, 1), left(5, 3)}, []string{"3 commits were", "1 commit was", "3 commits were"}},
	} {
		html, elements := makePage(t, c.list...)
		var got []string
		for _, text := range texts(named(elements, "strong", "")) {
			got = append(got, strings.TrimSuffix(text, " not pushed"))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", about, d)
		}
		if len(c.want) > 0 && strings.Index(html, `class="alarm"`) > strings.Index(html, `class="figures"`) && about != "pushed since" {
			t.Errorf("%s: the alarm is not at the top", about)
		}
	}
}

func TestReportWarns(t *testing.T) {
	// A disagreement, what could not be read, and notes must stand before the figures.
	r := jobRun(0, func(r *spec.Record) {
		r.Disagreement, r.Notes = "two words", []string{"first", "second"}
	})
	r.Lost = "no permission"
	html, _ := makePage(t, r)
	figures := strings.Index(html, `class="figures"`)
	for _, want := range []string{"two words", "no permission", "first", "second"} {
		if i := strings.Index(html, want); i < 0 || i > figures {
			t.Errorf("%q stands at %d, the figures at %d", want, i, figures)
		}
	}
}

func TestJobsOf(t *testing.T) {
	// Attempts must be put together when they follow each other in one deployment with one task, and nothing else.
	run := func(n int, name, task string, attempt int) *runView {
		return newRunView(n, jobRun(n, func(r *spec.Record) {
			r.Deployment, r.Attempt = name, attempt
			r.SetTask([]byte(task), true)
		}).Record)
	}
	rows := []*runView{
		run(9, "web", "b", 3), run(8, "web", "b", 2), run(7, "web", "b", 1), run(6, "api", "b", 2), run(5, "web", "a", 2), run(4, "api", "b", 1), run(3, "web", "a", 1), run(2, "web", "c", 4), run(1, "web", "c", 2),
	}
	var got []string
	for _, job := range jobsOf(rows) {
		var attempts []string
		for _, v := range job {
			attempts = append(attempts, strings.TrimPrefix(v.Anchor, "run-"))
		}
		got = append(got, strings.Join(attempts, " "))
	}
	if d := cmp.Diff([]string{"7 8 9", "4 6", "3 5", "2", "1"}, got); d != "" {
		t.Error(d)
	}
}

func TestChartsStayOnTheirAxis(t *testing.T) {
	// Whatever times records have, bars and marks must lie on the axis, and impossible times must not spoil it for the others.
	end := func(at time.Time) func(*spec.Record) {
		return func(r *spec.Record) { r.EndedAt, r.KeptAt = &at, &noon }
	}
	wild := []func(*spec.Record){
		end(time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)),
		end(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)),
		func(r *spec.Record) { r.StartedAt, r.KeptAt = time.Time{}, &noon },
		func(r *spec.Record) {
			far := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
			r.EndedAt, r.AgentAt = nil, &far
		},
		func(r *spec.Record) { late := at(500); r.AgentAt = &late },
		func(r *spec.Record) { r.EndedAt = &r.StartedAt },
		func(r *spec.Record) { r.EndedAt, r.AgentAt = nil, nil },
	}
	list := []Reported{jobRun(3, nil), jobRun(1, nil)}
	for _, change := range wild {
		checkAxis(t, jobRun(2, change))
		list = append(list, jobRun(2, change))
	}
	html := checkAxis(t, list...)
	if !strings.Contains(html, "4 runs whose times cannot be true are not drawn") || strings.Count(html, ">12:0") < 3 {
		t.Error("impossible times have spoilt the axis")
	}
}

func checkAxis(t *testing.T, list ...Reported) string {
	t.Helper()
	html, elements := makePage(t, list...)
	for _, e := range elements {
		x, hasX := strings.CutSuffix(e.Attrs["x"], "%")
		width, _ := strings.CutSuffix(e.Attrs["width"], "%")
		if !hasX {
			continue
		}
		from, err := strconv.ParseFloat(x, 64)
		length, err2 := strconv.ParseFloat("0"+width, 64)
		if err != nil || err2 != nil || from < 0 || from+length > 100.7 {
			t.Errorf("%v is not on the axis", e)
		}
	}
	return html
}

func TestTicks(t *testing.T) {
	// An axis of any length must have a few marks, in order, each with its own text.
	for length := 0.001; length < 1e12; length *= 1.37 {
		for _, ticks := range [][]tick{axis{length: length}.elapsedTicks(), axis{from: noon, length: max(length, 1)}.clockTicks()} {
			last, seen := -1.0, map[string]bool{}
			for _, mark := range ticks {
				x, err := strconv.ParseFloat(strings.TrimSuffix(mark.X, "%"), 64)
				if err != nil || x <= last || x > 100 || length < 1e10 && seen[mark.Text] {
					t.Errorf("%v seconds: %v", length, ticks)
				}
				last, seen[mark.Text] = x, true
			}
			if len(ticks) > maxTicks+1 || len(ticks) < 1 && length > 10 {
				t.Errorf("%v seconds: %d marks", length, len(ticks))
			}
		}
	}
}

func TestReportReadsADiff(t *testing.T) {
	// A diff must be taken apart by its files, and a changed line never be taken for a heading.
	r := jobRun(0, nil)
	r.Diff = []byte(`diff --git a/a b.go b/a b.go
index 1..2 100644
--- a/a b.go	
+++ b/a b.go	
@@ -1,3 +1,3 @@ func x() {
 same
--- a/lie.go
-diff --git a/lie b/lie
+++ b/lie.go
+@@ -9 +9 @@
\ No newline at end of file
diff --git a/old b/new
similarity index 90%
rename from old
rename to new
diff --git a/logo.png b/logo.png
new file mode 100644
Binary files /dev/null and b/logo.png differ
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-last
`)
	c := newChanges(newRunView(1, r.Record), r.Diff, &budget{left: maxPage})
	var got []string
	for _, f := range c.Files {
		got = append(got, fmt.Sprintf("%s +%s -%s", f.Path, f.Added, f.Removed))
		for _, p := range f.Parts {
			got = append(got, fmt.Sprintf("  %s %d", p.Kind, strings.Count(p.Text, "\n")))
		}
	}
	want := []string{
		"a b.go +2 -2", "  hunk 1", "  same 1", "  del 2", "  add 2", "  meta 1",
		"new + -", "  meta 3",
		"logo.png + -", "  meta 2",
		"gone + -1", "  meta 1", "  hunk 1", "  del 1",
	}
	if d := cmp.Diff(want, got); d != "" || c.Added != "2" || c.Removed != "3" || c.Count != "4 files" {
		t.Errorf("%s; +%s -%s, %s", d, c.Added, c.Removed, c.Count)
	}
}

func TestReportOfTasks(t *testing.T) {
	// A short task must be shown with every run, a long one once, and why there is none be said.
	long := strings.Repeat("words and ", 100)
	with := func(n int, task string, keep bool) Reported {
		return jobRun(n, func(r *spec.Record) { r.Task = nil; r.SetTask([]byte(task), keep) })
	}
	_, elements := makePage(t, with(3, long, true), with(2, long, true), with(1, "short", true), with(0, "short", true), with(4, "secret", false), with(5, "", true))
	var tasks []int
	for _, e := range named(elements, "code", "") {
		if e.Text == long || e.Text == "short" {
			tasks = append(tasks, len(e.Text))
		}
	}
	if d := cmp.Diff([]int{1000, 5, 5}, tasks); d != "" {
		t.Error(d)
	}
	none := strings.Join(texts(named(elements, "p", "none")), "\n")
	for _, want := range []string{"The text was not recorded (record_task: false); it had 6 B.", "There was no task."} {
		if !strings.Contains(none, want) {
			t.Errorf("%q is not said in %s", want, none)
		}
	}
}

func TestWordsForNumbers(t *testing.T) {
	// Durations and sizes must be readable and never lie by rounding to the next unit.
	for s, want := range map[float64]string{
		0: "0 ms", 0.0004: "0 ms", 0.42: "420 ms", 0.9999: "1 s", 1: "1 s", 12.34: "12.3 s", 59.94: "59.9 s", 59.96: "1 min 00 s", 60: "1 min 00 s", 192: "3 min 12 s",
		3599.4: "59 min 59 s", 3599.6: "1 h 00 min", 3600: "1 h 00 min", 86399: "23 h 59 min", 90000: "1 d 1 h", 1e9: "11\u202f574 d 1 h", 3e11: "3\u202f472\u202f222 d 5 h",
	} {
		if got := duration(s); got != want {
			t.Errorf("%v seconds: %q, want %q", s, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1 MiB", 1 << 20: "1 MiB", math.MaxInt64: "8 EiB", -1: "–"} {
		if got := size(n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
	if got := addBytes(math.MaxInt64-1, 5); got != math.MaxInt64 {
		t.Errorf("a sum goes round: %d", got)
	}
}
