package runs

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func TestReportIsBounded(t *testing.T) {
	// However large and however many, runs must make a page of bounded size that says what it leaves out.
	lines := func(line string) []byte { return bytes.Repeat([]byte(line), spec.MaxOutputBytes/len(line)) }
	for about, c := range map[string]struct{ output, diff []byte }{
		"quotes":     {lines(`"`), lines("+")},
		"lines":      {lines("\n"), lines("\n+\n-\n ")},
		"many files": {lines("\xff\x1b"), lines("diff --git a/x b/x\n")},
	} {
		var list []Reported
		for i := range maxRows + 7 {
			r := jobRun(i, func(r *spec.Record) {
				r.ID = spec.NewRecordID(r.StartedAt, []byte{0, 0, byte(i >> 8), byte(i)})
				r.Notes = slices.Repeat([]string{strings.Repeat("n", 5000)}, 500)
				r.Repository = &spec.Repository{State: "ok", Paths: slices.Repeat([]string{"p"}, 5000), Commits: slices.Repeat([]string{"c"}, 5000)}
			})
			if i < MaxBodies {
				r.Output, r.Diff = c.output, c.diff
			}
			list = append(list, r)
		}
		var b strings.Builder
		if err := Report(&b, list); err != nil {
			t.Fatal(err)
		}
		html := b.String()
		if len(html) > 80<<20 || strings.Count(html, "</") > 600_000 {
			t.Errorf("%s: %d MiB, %d elements", about, len(html)>>20, strings.Count(html, "</"))
		}
		if n := strings.Count(html, "<article"); n != MaxBodies {
			t.Errorf("%s: %d runs are shown one by one", about, n)
		}
		if n := strings.Count(html, "<tr>"); n != maxRows+1 {
			t.Errorf("%s: %d rows", about, n)
		}
		for _, want := range []string{"7 older runs are left out", "other 950 runs are not shown", "are left out here", "The rest is left out here", "and 480 more", "The newest 50 jobs are drawn"} {
			if !strings.Contains(html, want) {
				t.Errorf("%s: it does not say %q", about, want)
			}
		}
	}
}

func TestReportOfLongOutput(t *testing.T) {
	// Of a long output beginning and end must be shown, at whole lines, and how much is between them.
	var out bytes.Buffer
	for i := range 60_000 {
		fmt.Fprintf(&out, "line %d\n", i)
	}
	r := jobRun(0, nil)
	r.Output = out.Bytes()
	_, elements := makePage(t, r)
	parts := named(elements, "samp", "")
	if len(parts) != 2 || !strings.HasPrefix(parts[0].Text, "line 0\n") || !strings.HasSuffix(parts[1].Text, "line 59999\n") ||
		!regexp.MustCompile(`line \d{5}\n$`).MatchString(parts[0].Text) || !strings.HasPrefix(parts[1].Text, "line ") {
		t.Fatalf("parts: %d", len(parts))
	}
	if n := len(parts[0].Text) + len(parts[1].Text); n > maxShown || n < maxShown-100 {
		t.Errorf("%d bytes are shown", n)
	}
	if cut := named(elements, "p", "cut"); len(cut) != 1 || !strings.HasPrefix(cut[0].Text, size(int64(out.Len()-len(parts[0].Text)-len(parts[1].Text)))) {
		t.Errorf("what is left out: %v", cut)
	}
}

func TestReportOfPlainOutput(t *testing.T) {
	// Colours of a terminal must be left out, and every other control character be shown as a mark.
	r := jobRun(0, nil)
	r.Output = []byte("\n\x1b[1;32mok\x1b[0m\tx\r\n\x1b[2Jy\x07\n")
	_, elements := makePage(t, r)
	if got, want := named(elements, "samp", "")[0].Text, "\nok\tx\n\ufffd[2Jy\ufffd\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
