package cli

import (
	"context"
	"slices"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// span is the time of a run in its container's life. The runs of a container
// divide that life among them, so that no refusal is nobody's, whatever an agent
// has written into its records.
type span struct {
	record   *spec.Record
	from, to time.Time // to is zero for the last one, which has no end
	tally    spec.Tally
}

// spansOf divides the life of c among those of its records, oldest first, that
// were written in it.
func spansOf(c *engine.Container, records []*spec.Record) []*span {
	var list []*span
	for _, r := range records {
		if r.StartedAt.Before(c.Created) {
			continue // of a former container
		}
		s := &span{record: r, from: r.StartedAt}
		if len(list) == 0 {
			s.from = c.Created
		} else {
			list[len(list)-1].to = s.from
		}
		list = append(list, s)
	}
	return list
}

// has reports whether at is in s.
func (s *span) has(at time.Time) bool {
	return !at.Before(s.from) && (s.to.IsZero() || at.Before(s.to))
}

// keepRefusals puts what the gateway refused into the records of runs that are
// over and do not have it yet. A journal that cannot be read is noted in them: the
// container may be about to go.
func (a *app) keepRefusals(ctx context.Context, e *engine.Engine, c *engine.Container, records []*spec.Record) {
	s, err := specOf(c)
	if err != nil || s.Egress == nil {
		return
	}
	spans := spansOf(c, records)
	wanted := slices.DeleteFunc(slices.Clone(spans), func(s *span) bool {
		r := s.record
		return r.EndedAt == nil || s.to.IsZero() && c.State.Alive() || r.Egress != nil && r.Egress.Watched
	})
	if len(wanted) == 0 {
		return
	}
	a.awaitJournal(ctx, e, c)
	unreadable, err := readJournal(ctx, e, s.Name, wanted[0].from, func(d spec.Decision) {
		for _, s := range wanted {
			if s.has(d.Time) {
				s.tally.Add(d)
			}
		}
	})
	if ctx.Err() != nil {
		return
	}
	problem := ""
	if err != nil {
		problem = spec.Printable(oneLine(err.Error()), 500)
		a.say("warning: what %s was refused is not known: %s", s.Name, problem)
	}
	for _, w := range wanted {
		refused := &spec.Refused{Enforcement: s.Egress.Enforcement, Refusals: []spec.Refusal{}, Problem: problem}
		if err == nil {
			refused = w.tally.Refused(s.Egress.Enforcement)
			refused.Unreadable = unreadable
		}
		if err := a.runs().KeepEgress(w.record, refused); err != nil {
			a.say("warning: what run %s was refused is not kept: %s", w.record.ID, oneLine(err.Error()))
		}
	}
}

// journalTime is how long a refusal may be on its way into the engine's log.
const journalTime = 2 * time.Second

// awaitJournal waits until what c was refused before its end is in its gateway's
// journal: the log of one that has ended is whole. What fails is said by its reading.
func (a *app) awaitJournal(ctx context.Context, e *engine.Engine, c *engine.Container) {
	left := journalTime - time.Since(c.State.FinishedAt)
	if c.State.Alive() || left <= 0 {
		return
	}
	gateway, err := e.Inspect(ctx, compose.GatewayContainer(c.Deployment()))
	if err != nil || gateway == nil || !gateway.State.Alive() {
		return
	}
	_ = pause(ctx, min(left, journalTime))
}
