package cli

import (
	"path"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/spec"
)

// running is the word for a run without an outcome yet.
const running = "running"

// runsFilter chooses among records; its zero value takes all.
type runsFilter struct {
	since    time.Time
	outcomes []string
	changed  string
}

func runsFilterFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringFlag{Name: "since", Usage: "only runs that began since `T`: 90m, 7d, 2026-01-02 or 2026-01-02T15:04:05Z"},
		&ucli.StringSliceFlag{Name: "outcome", Usage: "only runs with this `OUTCOME`: " + strings.Join(outcomeWords(), ", ")},
		&ucli.StringFlag{Name: "changed", Usage: "only runs that changed `PATH` in the repository, or what is below it"},
	}
}

func outcomeWords() []string {
	words := []string{running}
	for _, o := range spec.Outcomes {
		words = append(words, string(o))
	}
	return words
}

func newRunsFilter(c *ucli.Context, now time.Time) (runsFilter, error) {
	var f runsFilter
	var err error
	if c.IsSet("since") {
		if f.since, err = parseSince(c.String("since"), now); err != nil {
			return f, err
		}
	}
	f.outcomes = c.StringSlice("outcome")
	for _, o := range f.outcomes {
		if !slices.Contains(outcomeWords(), o) {
			return f, refuse("use one of "+strings.Join(outcomeWords(), ", "), "--outcome: %q is no outcome", o)
		}
	}
	if c.IsSet("changed") {
		f.changed = path.Clean(strings.TrimPrefix(c.String("changed"), spec.ContainerWorkspace+"/"))
		if c.String("changed") == "" || path.IsAbs(f.changed) || strings.HasPrefix(f.changed, "..") {
			return f, refuse("name a path as git does, from the top of the repository", "--changed: %q is not in the repository", c.String("changed"))
		}
	}
	return f, nil
}

// parseSince reads a time, a day, or how long ago something was. Days are 24
// hours.
func parseSince(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if d, err := time.ParseDuration(days + "h"); err == nil && d >= 0 && d < 24*365*100*time.Hour {
			return now.Add(-24 * d), nil
		}
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, refuse("use 90m, 7d, 2026-01-02 or 2026-01-02T15:04:05Z", "--since: %q is neither a duration nor a time", text)
}

func (f runsFilter) apply(list []*spec.Record) []*spec.Record {
	var kept []*spec.Record
	for _, r := range list {
		if !r.StartedAt.Before(f.since) && f.outcome(r) && f.change(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

func (f runsFilter) outcome(r *spec.Record) bool {
	word := string(r.Outcome)
	if word == "" {
		word = running
	}
	return len(f.outcomes) == 0 || slices.Contains(f.outcomes, word)
}

func (f runsFilter) change(r *spec.Record) bool {
	if f.changed == "" {
		return true
	}
	return r.Repository != nil && slices.ContainsFunc(r.Repository.Paths, func(p string) bool {
		return f.changed == "." || p == f.changed || strings.HasPrefix(p, f.changed+"/")
	})
}
