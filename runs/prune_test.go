package runs

import (
	"archive/tar"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// kept is n runs that the host first had days before noon.
func kept(n, days int) []keptRun {
	var list []keptRun
	for i := range n {
		list = append(list, keptRun{id: fmt.Sprintf("%d/%d", days, i), at: noon.AddDate(0, 0, -days).Add(time.Duration(i) * time.Second)})
	}
	return list
}

func TestExpired(t *testing.T) {
	// Records must be kept 90 days and 500 of them, cut evenly over UTC days, the newest of a day last; a clock must not be able to empty a history.
	for name, c := range map[string]struct {
		list []keptRun
		gone map[string]int // how many of a day, by its age
	}{
		"few and old":                     {kept(20, 400), nil},
		"old":                             {slices.Concat(kept(25, 0), kept(10, 89), kept(10, 91)), map[string]int{"91": 10}},
		"old, and few new ones":           {slices.Concat(kept(5, 0), kept(30, 91)), map[string]int{"91": 15}},
		"exactly the most":                {slices.Concat(kept(250, 0), kept(250, 1)), nil},
		"a burst today":                   {slices.Concat(kept(10000, 0), kept(100, 1), kept(3, 2)), map[string]int{"0": 9603}},
		"two bursts":                      {slices.Concat(kept(1000, 0), kept(1000, 1), kept(100, 2)), map[string]int{"0": 800, "1": 800}},
		"what does not divide":            {slices.Concat(kept(1000, 0), kept(1000, 1), kept(1000, 2)), map[string]int{"0": 833, "1": 833, "2": 834}},
		"one each on more days than kept": {manyDays(85, 7), map[string]int{}}, // 595: 6 or 5 of each day stay
		"the clock jumped ahead":          {kept(20, -4000), nil},
		"a burst from the future":         {slices.Concat(kept(600, -30), kept(10, 1)), map[string]int{"-30": 110}},
		"a run that goes on":              {append(kept(25, 0), keptRun{id: "open/0", at: noon.AddDate(-1, 0, 0), open: true}), nil},
	} {
		got := expired(slices.Clone(c.list), noon)
		days := map[string]int{}
		for _, id := range got {
			day, _, _ := strings.Cut(id, "/")
			days[day]++
		}
		left := len(c.list) - len(got)
		if name == "one each on more days than kept" {
			if left != KeepMost {
				t.Errorf("%s: %d are left", name, left)
			}
			continue
		}
		if len(days) != len(c.gone) {
			t.Errorf("%s: gone %v, want %v", name, days, c.gone)
		}
		for day, n := range c.gone {
			if days[day] != n {
				t.Errorf("%s: of the day %s days ago %d are gone, want %d", name, day, days[day], n)
			}
		}
		for _, id := range got { // of a day the oldest go
			var day, number int
			fmt.Sscanf(id, "%d/%d", &day, &number)
			if number >= c.gone[fmt.Sprint(day)] {
				t.Errorf("%s: %s is gone, and an older one stays", name, id)
			}
		}
	}
}

func manyDays(days, each int) []keptRun {
	var list []keptRun
	for d := range days {
		list = append(list, kept(each, d)...)
	}
	return list
}

func TestPruneIsRemembered(t *testing.T) {
	// What was cut must not come in again from a container that still has it, with its files, and what stays must stay as it is.
	s := Store{t.TempDir()}
	var entries []entry
	for i := range 600 {
		r := closed(i, 0)
		r.ID = spec.NewRecordID(at(i), []byte{0, 0, byte(i >> 8), byte(i)})
		entries = append(entries, file(t, r), entry{name: "runs/" + r.ID + spec.OutputSuffix, content: "out " + r.ID})
	}
	for round := range 2 {
		b := bring(t, s, dead, entries...)
		l, err := s.List("web")
		if err != nil || len(l.Records) != KeepMost {
			t.Fatalf("round %d: %d records, %v", round, len(l.Records), err)
		}
		if b.Current == nil || b.Current.ID != l.Records[0].ID {
			t.Errorf("round %d: the current record is %v", round, b.Current)
		}
		for _, r := range l.Records {
			if out, err := s.Attachment(r, spec.OutputSuffix); string(out) != "out "+r.ID || err != nil {
				t.Fatalf("%s: output %q, %v", r.ID, out, err)
			}
		}
		files, err := os.ReadDir(filepath.Join(s.Dir, "local", "web"))
		if err != nil || len(files) != 2*KeepMost+1 {
			t.Errorf("round %d: %d files, %v", round, len(files), err)
		}
	}
	// The container has no more of it: there is nothing left to remember.
	bring(t, s, dead, entries[len(entries)-2:]...)
	last := closed(700, 0)
	last.ID = spec.NewRecordID(at(700), []byte{9, 9, 9, 9})
	bring(t, s, dead, file(t, last))
	if _, err := os.Stat(filepath.Join(s.Dir, "local", "web", cutFile)); !os.IsNotExist(err) {
		t.Errorf("the list of what was cut is still there: %v", err)
	}
}

func TestRescuedLateIsKept(t *testing.T) {
	// A run that ended long ago and comes in only now must be kept as long as any other.
	s := Store{t.TempDir()}
	var entries []entry
	for i := range 40 {
		r := closed(i, 0)
		r.StartedAt = r.StartedAt.AddDate(-2, 0, 0)
		entries = append(entries, file(t, r))
	}
	bring(t, s, dead, entries...)
	bring(t, s, dead, append(entries, file(t, closed(50, 0)))...)
	if l, err := s.List("web"); err != nil || len(l.Records) != 41 {
		t.Errorf("%d records, %v", len(l.Records), err)
	}
}

func TestAttachments(t *testing.T) {
	// Output and changes must be kept beside their record; those of a former run must stay what they were, and nothing else be written.
	s := Store{t.TempDir()}
	first, second := closed(0, 0), open(1)
	out := func(r spec.Record, suffix, content string) entry {
		return entry{name: "runs/" + r.ID + suffix, content: content}
	}
	bring(t, s, dead, file(t, first), out(first, ".out", "one"), out(first, ".diff", "two\x1b[2J"))
	bring(t, s, alive(), file(t, first), out(first, ".out", "changed"), file(t, second), out(second, ".out", "so far"))
	bring(t, s, alive(), file(t, first), out(first, ".diff", ""), file(t, second), out(second, ".out", "so far and on"),
		out(open(3), ".out", "of no record"), entry{name: "runs/../../x.out", content: "outside"}, entry{name: "runs/x.out", content: "no id"},
		entry{name: "runs/" + idAt(1) + ".diff", content: "/etc/passwd", kind: tar.TypeSymlink})
	// What has ended since it was seen at work comes with its end, also when another run has begun by now.
	bring(t, s, alive(), file(t, closed(1, 0)), out(second, ".out", "so far and to the end"), file(t, open(2)))
	bring(t, s, alive(), file(t, closed(1, 0)), out(second, ".out", "changed"), file(t, open(2)))
	for _, c := range []struct {
		n            int
		suffix, want string
	}{{0, ".out", "one"}, {0, ".diff", "two\x1b[2J"}, {1, ".out", "so far and to the end"}, {1, ".diff", ""}} {
		r := stored(t, s, c.n)
		if got, err := s.Attachment(&r, c.suffix); err != nil || string(got) != c.want {
			t.Errorf("run %d %s: %q, %v, want %q", c.n, c.suffix, got, err, c.want)
		}
	}
	var files []string
	err := filepath.WalkDir(s.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, filepath.Base(path))
		}
		return err
	})
	if err != nil || len(files) != 6 {
		t.Errorf("files are %q, %v", files, err)
	}
	b := bring(t, s, dead, entry{name: "runs/" + idAt(5) + ".out", content: strings.Repeat("x", maxAttachment+1)})
	if len(b.LeftOut) != 1 || !strings.Contains(b.LeftOut[0], "larger than") {
		t.Errorf("left out %q", b.LeftOut)
	}
}

func TestDisagreement(t *testing.T) {
	// Where the engine's word differs from the container's, or the record contradicts itself, that must be marked, and only there.
	same := dead
	same.Engine = &spec.EngineReport{Status: "exited", ExitCode: 7}
	backwards := closed(0, 7)
	early := at(-5)
	backwards.EndedAt = &early
	interactive := closed(0, 7)
	interactive.Kind = spec.Interactive
	for name, c := range map[string]struct {
		record    spec.Record
		container Container
		want      string
	}{
		"agree":          {closed(0, 7), same, ""},
		"codes":          {closed(0, 0), same, "the record says exit code 0, the engine 7"},
		"runs":           {closed(0, 0), alive(), ""},
		"lost":           {open(0), dead, ""},
		"clock":          {backwards, same, "it ends before it begins: a clock was set, or the record is not true"},
		"a session":      {interactive, dead, ""},
		"an earlier run": {closed(-60, 0), same, ""},
	} {
		s := Store{t.TempDir()}
		r := c.record
		bring(t, s, c.container, file(t, r))
		got, err := s.get("local", "web", r.ID)
		if err != nil || got.Disagreement != c.want {
			t.Errorf("%s: %q, %v, want %q", name, got.Disagreement, err, c.want)
		}
	}
}
