package cli

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// Bounds of a gateway's journal: of a line, and of what is read at a time. An
// engine keeps less than that.
const (
	maxJournalLine = 4 << 10
	maxJournal     = 64 << 20
)

// journalReader takes a journal apart as it comes. Names in it were chosen by an
// agent.
type journalReader struct {
	each       func(spec.Decision) error
	unreadable int // lines that are no decisions

	left int64 // of what may be read
	line []byte
	long bool // the line has more than maxJournalLine
}

// Write takes a part of a journal. It returns engine.ErrTooMuch beyond the bound,
// or the error of each.
func (r *journalReader) Write(p []byte) (int, error) {
	n := len(p)
	if r.left -= int64(n); r.left < 0 {
		return 0, engine.ErrTooMuch
	}
	for len(p) > 0 {
		part, rest, whole := bytes.Cut(p, []byte("\n"))
		p = rest
		if r.long = r.long || len(r.line)+len(part) > maxJournalLine; !r.long {
			r.line = append(r.line, part...)
		}
		if whole {
			if err := r.end(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// end hands on the line that is whole now.
func (r *journalReader) end() error {
	line, long := r.line, r.long
	r.line, r.long = r.line[:0], false
	d, err := spec.ParseDecision(line)
	if long || err != nil {
		r.unreadable++
		return nil
	}
	return r.each(d)
}

// readJournal hands on every decision that the gateway of a deployment has
// written since then, and returns how many lines are none. A gateway that is not
// there is an error: that nothing is known must not read as nothing.
func readJournal(ctx context.Context, e *engine.Engine, name string, since time.Time, each func(spec.Decision)) (unreadable int, err error) {
	r := &journalReader{left: maxJournal, each: func(d spec.Decision) error { each(d); return nil }}
	err = e.Logs(ctx, compose.GatewayContainer(name), false, since.UTC().Format(time.RFC3339Nano), "", engine.Streams{Out: r})
	if r.left < 0 {
		err = engine.ErrTooMuch // whatever the engine's command made of it
	}
	if err != nil {
		return r.unreadable, fmt.Errorf("read the journal of %s's gateway: %w", name, err)
	}
	return r.unreadable, nil
}

// refusedSince is what a deployment was refused since then, and before until
// unless that is zero.
func refusedSince(ctx context.Context, e *engine.Engine, name string, enforcement spec.Enforcement, since, until time.Time) (*spec.Refused, error) {
	var tally spec.Tally
	unreadable, err := readJournal(ctx, e, name, since, func(d spec.Decision) {
		if until.IsZero() || d.Time.Before(until) {
			tally.Add(d)
		}
	})
	if err != nil {
		return nil, err
	}
	refused := tally.Refused(enforcement)
	refused.Unreadable = unreadable
	return refused, nil
}

// endless is the bound of a journal that is followed.
const endless = math.MaxInt64
