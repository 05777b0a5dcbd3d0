package runs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

// egressRun is a job with what its gateway refused.
func egressRun(e *spec.Refused) Reported {
	return jobRun(0, func(r *spec.Record) { r.Egress = e })
}

func TestReportShowsWhatWasRefused(t *testing.T) {
	// Each refusal must be a row with its name, stage, port, count and times, and what has none be said.
	html, elements := makePage(t, egressRun(&spec.Refused{Enforcement: spec.Strict, Watched: true, More: 1, LeftOut: 17, Unreadable: 2, Refusals: []spec.Refusal{
		{Name: "evil.test", Stage: spec.StageDNS, Count: 2000, First: at(1), Last: at(2), Reason: "not declared"},
		{Address: "198.51.100.9", Port: 22, Stage: spec.StageAddress, Advised: true, Count: 1, First: at(3), Last: at(3)},
	}}))
	if got := texts(named(elements, "td", "n")); cmp.Diff([]string{"–", "2\u202f000", "", "", "22", "1", "", ""}, got) != "" {
		t.Errorf("%q", got)
	}
	for _, want := range []string{"<code>evil.test</code>", "<code>198.51.100.9</code>", "address, advised", "not declared", "2\u202f001 times", "1 refusal more", "17 lines left out", "2 lines of the journal"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestReportOfNoRefusals(t *testing.T) {
	// Nothing refused, nothing known, and no gateway must be told apart.
	for want, e := range map[string]*spec.Refused{
		"Nothing was refused.":                     {Watched: true},
		"What was tried is not known: no journal.": {Problem: "no journal"},
		"": nil,
	} {
		html, _ := makePage(t, egressRun(e))
		if strings.Contains(html, "Refused") != (e != nil) || !strings.Contains(html, want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestReportOfHostileRefusals(t *testing.T) {
	// Whatever a refusal holds must be text, and rows be bounded.
	e := &spec.Refused{Watched: true}
	for range 3 * spec.MaxRefusals {
		e.Refusals = append(e.Refusals, spec.Refusal{Name: "<b>\x1b[2J</code>" + strings.Repeat("x", 9000), Stage: "<i>", Reason: "<u>" + strings.Repeat("y", 9000), Port: -1, Count: -1})
	}
	html, elements := makePage(t, egressRun(e))
	if n := len(named(elements, "tr", "")); n != spec.MaxRefusals+1 || len(html) > 1<<20 {
		t.Errorf("%d rows, %d bytes", n, len(html))
	}
	if strings.ContainsRune(html, '\x1b') || len(named(elements, "b", ""))+len(named(elements, "i", ""))+len(named(elements, "u", "")) > 0 {
		t.Error("a refusal is more than text")
	}
}
