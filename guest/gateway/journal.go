package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/agent-container/agent-container/spec"
)

// Decision is one line of the gateway's journal.
type Decision = spec.Decision

// The journal writes so many lines a second, after a burst: an agent in a loop
// must not fill a disk. What it leaves out it counts, and says so a moment later.
const (
	journalRate  = 20
	journalBurst = 200
	journalPause = time.Second
)

// journal writes decisions as lines of JSON.
type journal struct {
	mu   sync.Mutex
	to   io.Writer
	now  func() time.Time
	have float64
	at   time.Time
	left int
	last Decision // that was left out
	due  bool     // what is left out is said in a moment
}

func newJournal(to io.Writer, now func() time.Time) *journal {
	return &journal{to: to, now: now, have: journalBurst, at: now()}
}

// write adds a decision, or counts it as left out.
func (j *journal) write(d Decision) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	d.Time = now.UTC()
	// A clock that is set back gives nothing.
	j.have = min(journalBurst, j.have+max(now.Sub(j.at).Seconds(), 0)*journalRate)
	j.at = now
	// Every line has its price, also those about lines: a flood must not make more of
	// them than the rate.
	price := 1.0
	if j.left > 0 {
		price += leftLines
	}
	if j.have < price {
		j.left++
		j.last = d
		if !j.due {
			j.due = true
			time.AfterFunc(journalPause, j.flush)
		}
		return
	}
	j.have -= price
	j.flushLeft()
	j.line(d)
}

// flush says how many lines were left out since it last was said, and what the
// last of them was. It says so also when the rate has no room for it, which is
// then short of that for the lines that follow.
func (j *journal) flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.due = false
	if j.left > 0 {
		j.have -= leftLines
	}
	j.flushLeft()
}

// leftLines is how many lines flushLeft writes.
const leftLines = 2

func (j *journal) flushLeft() {
	if j.left == 0 {
		return
	}
	j.line(Decision{Time: j.last.Time, Verdict: j.last.Verdict, Stage: spec.StageJournal, Reason: "so many lines were left out, the next is the last of them", Left: j.left - 1})
	j.line(j.last)
	j.left = 0
}

func (j *journal) line(d Decision) {
	b, err := json.Marshal(d)
	if err != nil { // strings, numbers and a time always marshal
		panic(err)
	}
	_, _ = j.to.Write(append(asciiJSON(b), '\n')) // a closed log changes no decision
}

// asciiJSON writes what is not ASCII in a JSON document as JSON can too: a letter
// that looks like another one is seen, and no terminal obeys anything. It can only
// stand in strings, so the document means the same.
func asciiJSON(document []byte) []byte {
	out := make([]byte, 0, len(document)+64)
	for _, r := range string(document) {
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
