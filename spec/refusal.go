package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"time"
)

// Refusal is what a gateway did not let through, or let through with advice,
// however often it was tried.
type Refusal struct {
	Name    string    `json:"name,omitempty"`
	Address string    `json:"address,omitempty"`
	Port    int       `json:"port,omitempty"`
	Stage   Stage     `json:"stage"`
	Advised bool      `json:"advised,omitempty"` // it was let through where strict would have refused
	Reason  string    `json:"reason,omitempty"`  // of the last time
	Count   int       `json:"count"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// Refused is all that was refused in some time. Without Watched nobody knows
// what was tried: Refusals is empty then, and says nothing.
type Refused struct {
	Enforcement Enforcement `json:"enforcement"`
	Watched     bool        `json:"watched"`
	Refusals    []Refusal   `json:"refusals"`
	More        int         `json:"more,omitempty"`       // how often something was refused that has no row
	LeftOut     int         `json:"left_out,omitempty"`   // lines that the gateway did not write: there were too many
	Unreadable  int         `json:"unreadable,omitempty"` // lines that are no decisions
	Problem     string      `json:"problem,omitempty"`    // why not all of the journal was read
}

// MaxRefusals is how many rows a Refused has.
const MaxRefusals = 200

// Bounds of what a decision holds for people.
const (
	maxDecisionName   = 300
	maxDecisionReason = 500
)

// The words of a decision that have a closed list.
var (
	verdicts = []Verdict{Allowed, Denied, Advised}
	stages   = []Stage{StageDNS, StageAddress, StagePort, StageTLS, StageHTTP, StageResolve, StageDial, StageOpen, StageLimit, StageJournal}
)

// ParseDecision reads a line of a gateway's journal. Names in it were chosen by
// an agent: what it returns is bounded and steers no terminal.
func ParseDecision(line []byte) (Decision, error) {
	var d Decision
	if json.Unmarshal(line, &d) != nil {
		return Decision{}, errors.New("not a decision in JSON")
	}
	d.Time = d.Time.UTC()
	if d.Time.Year() < 1 || d.Time.Year() > 9999 || !slices.Contains(verdicts, d.Verdict) || !slices.Contains(stages, d.Stage) || d.Port < 0 || d.Port > 65535 || d.Left < 0 {
		return Decision{}, errors.New("not a decision of a gateway")
	}
	d.Name, d.Rule = Printable(d.Name, maxDecisionName), Printable(d.Rule, maxDecisionName)
	d.Reason = Printable(d.Reason, maxDecisionReason)
	if addr, err := netip.ParseAddr(d.Address); err == nil && addr.Zone() == "" {
		d.Address = addr.String()
	} else {
		d.Address = ""
	}
	return d, nil
}

// Refuses reports whether d is a refusal, or advice in its place. That an advised
// connection was opened says no more than the advice before it.
func (d Decision) Refuses() bool {
	return d.Verdict != Allowed && d.Stage != StageOpen && d.Stage != StageJournal
}

// Tally adds up decisions. Its zero value is ready.
type Tally struct {
	rows       map[Refusal]*Refusal // by what all times have in common
	more, left int
}

// Add counts d, if it is a refusal or says that lines were left out.
func (t *Tally) Add(d Decision) {
	if d.Stage == StageJournal {
		t.left += d.Left
	}
	if !d.Refuses() {
		return
	}
	key := Refusal{Name: d.Name, Address: d.Address, Port: d.Port, Stage: d.Stage, Advised: d.Verdict == Advised}
	r := t.rows[key]
	switch {
	case r == nil && len(t.rows) >= MaxRefusals:
		t.more++
		return
	case r == nil:
		if t.rows == nil {
			t.rows = map[Refusal]*Refusal{}
		}
		c := key
		c.First, c.Last = d.Time, d.Time
		r = &c
		t.rows[key] = r
	}
	r.Count++
	if d.Time.Before(r.First) {
		r.First = d.Time
	}
	if !d.Time.Before(r.Last) {
		r.Last, r.Reason = d.Time, d.Reason
	}
}

// Refused is what was added, most often refused first.
func (t *Tally) Refused(e Enforcement) *Refused {
	f := &Refused{Enforcement: e, Watched: true, Refusals: []Refusal{}, More: t.more, LeftOut: t.left}
	for _, r := range t.rows {
		f.Refusals = append(f.Refusals, *r)
	}
	slices.SortFunc(f.Refusals, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), a.First.Compare(b.First), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address),
			cmp.Compare(a.Port, b.Port), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Reason, b.Reason))
	})
	return f
}

// Host is what was refused, for people: a name or an address.
func (r Refusal) Host() string { return cmp.Or(r.Name, r.Address) }
