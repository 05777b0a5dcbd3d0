package spec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func decision(second int, v Verdict, s Stage, name string, port int) Decision {
	return Decision{Time: time.Date(2026, 3, 1, 12, 0, second, 0, time.UTC), Verdict: v, Stage: s, Name: name, Port: port, Reason: fmt.Sprint("reason ", second)}
}

// Equal refusals must be one row with its count, first and last time and last
// reason; what was allowed, or opened after advice, must be none.
func TestTally(t *testing.T) {
	var tally Tally
	for _, d := range []Decision{
		decision(1, Denied, StageDNS, "a.test", 0), decision(4, Denied, StagePort, "b.test", 8443), decision(3, Denied, StageDNS, "a.test", 0),
		decision(5, Advised, StagePort, "b.test", 8443), decision(5, Advised, StageOpen, "b.test", 8443), decision(6, Allowed, StageOpen, "c.test", 443),
		{Verdict: Allowed, Stage: StageJournal, Left: 7}, {Verdict: Denied, Stage: StageJournal, Left: 2},
	} {
		tally.Add(d)
	}
	at := func(n int) time.Time { return decision(n, "", "", "", 0).Time }
	want := &Refused{Enforcement: Strict, Watched: true, LeftOut: 9, Refusals: []Refusal{
		{Name: "a.test", Stage: StageDNS, Count: 2, First: at(1), Last: at(3), Reason: "reason 3"},
		{Name: "b.test", Port: 8443, Stage: StagePort, Count: 1, First: at(4), Last: at(4), Reason: "reason 4"},
		{Name: "b.test", Port: 8443, Stage: StagePort, Advised: true, Count: 1, First: at(5), Last: at(5), Reason: "reason 5"},
	}}
	if d := cmp.Diff(want, tally.Refused(Strict)); d != "" {
		t.Error(d)
	}
}

// However many names an agent makes up, rows must be bounded and the rest counted.
func TestTallyIsBounded(t *testing.T) {
	var tally Tally
	for i := range 3 * MaxRefusals {
		tally.Add(decision(i%60, Denied, StageDNS, fmt.Sprint("n", i%(2*MaxRefusals), ".test"), 0))
	}
	f := tally.Refused(Strict)
	n := f.More
	for _, r := range f.Refusals {
		n += r.Count
	}
	if len(f.Refusals) != MaxRefusals || n != 3*MaxRefusals {
		t.Errorf("%d rows, %d refusals", len(f.Refusals), n)
	}
}

// A line that no gateway writes must be no decision.
func TestParseDecisionRefuses(t *testing.T) {
	for _, line := range []string{
		"", "x", "[]", `{"time":"2026-03-01T12:00:00Z","verdict":"perhaps","stage":"dns"}`, `{"time":"2026-03-01T12:00:00Z","verdict":"denied","stage":"moon"}`,
		`{"time":"2026-03-01T12:00:00Z","verdict":"denied","stage":"dns","port":-1}`, `{"time":"2026-03-01T12:00:00Z","verdict":"denied","stage":"dns","port":65536}`,
		`{"time":"2026-03-01T12:00:00Z","verdict":"denied","stage":"journal","left_out":-5}`, `{"time":"9999-12-31T23:59:59-10:00","verdict":"denied","stage":"dns"}`,
	} {
		if d, err := ParseDecision([]byte(line)); err == nil {
			t.Errorf("%s is %+v", line, d)
		}
	}
}

// FuzzParseDecision: whatever the line, a decision must be bounded, steer no
// terminal, and be the same when it is written and read again.
func FuzzParseDecision(f *testing.F) {
	f.Add([]byte(`{"time":"2026-03-01T12:00:00.5Z","verdict":"denied","stage":"dns","name":"a.test","reason":"not declared"}`))
	f.Add([]byte(`{"time":"2026-03-01T12:00:00+02:00","verdict":"advised","stage":"address","address":"::ffff:10.0.0.1%eth0","port":22,"name":"\u001b[2J\u009b","left_out":3}`))
	f.Add([]byte(`{"time":"0001-01-01T00:00:00+23:00","verdict":"allowed","stage":"open","rule":"` + strings.Repeat("é", 400) + `"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		d, err := ParseDecision(line)
		if err != nil {
			return
		}
		for _, text := range []string{d.Name, d.Address, d.Rule, d.Reason} {
			if len(text) > maxDecisionReason+len("…") || text != Printable(text, len(text)) {
				t.Errorf("%q", text)
			}
		}
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseDecision(b)
		if err != nil || again.Time != d.Time || again.Verdict != d.Verdict || again.Address != d.Address {
			t.Errorf("%+v, again %+v, %v", d, again, err)
		}
		var tally Tally
		tally.Add(d)
		if n := len(tally.Refused(Strict).Refusals); n != 0 != d.Refuses() {
			t.Errorf("%+v has %d rows", d, n)
		}
	})
}
