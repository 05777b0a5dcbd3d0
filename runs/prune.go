package runs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// What is kept of a deployment's records.
const (
	KeepFor  = 90 * 24 * time.Hour
	KeepMost = 500
	// keepLeast are kept whatever their age: a clock that jumps ahead must not
	// empty a history.
	keepLeast = 20
)

// prune cuts the records of a deployment to what is kept. brought are the
// records that the container still holds: of those, what is cut is remembered,
// so that it is not brought in again; cut is what was remembered so far.
func (s Store) prune(host, deployment string, brought []*spec.Record, cut map[string]bool, now time.Time) error {
	kept, err := s.kept(host, deployment)
	if err != nil {
		return err
	}
	for _, id := range expired(kept, now) {
		for _, suffix := range []string{".json", spec.OutputSuffix, spec.DiffSuffix} {
			if err := os.Remove(s.file(host, deployment, id, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		cut[id] = true
	}
	return s.writeCut(host, deployment, brought, cut)
}

// keptRun is what prune knows of a record.
type keptRun struct {
	id   string
	at   time.Time // when the host first had it: what a container says of times is not trusted
	open bool
}

// kept lists the records of a deployment. What cannot be read is left alone.
func (s Store) kept(host, deployment string) ([]keptRun, error) {
	entries, err := os.ReadDir(filepath.Join(s.Dir, host, deployment))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(entries) <= keepLeast {
		return nil, nil // nothing can be expired
	}
	var list []keptRun
	for _, e := range entries {
		id, isRecord := strings.CutSuffix(e.Name(), ".json")
		if !isRecord {
			continue
		}
		r, err := s.get(host, deployment, id)
		if err != nil || r == nil {
			continue
		}
		k := keptRun{id: id, at: r.StartedAt, open: r.EndedAt == nil}
		if r.KeptAt != nil {
			k.at = *r.KeptAt
		}
		list = append(list, k)
	}
	return list, nil
}

// expired returns the ids that are not kept: what is older than KeepFor, and of
// the rest, when there are more than KeepMost, the oldest of the days that have
// most, so that a burst on one day cannot push out the days before.
func expired(list []keptRun, now time.Time) []string {
	slices.SortFunc(list, func(a, b keptRun) int { // newest first
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(b.id, a.id)
	})
	var gone []string
	days := map[string]int{}
	var rest []keptRun
	for i, k := range list {
		if i >= keepLeast && !k.open && now.Sub(k.at) > KeepFor {
			gone = append(gone, k.id)
			continue
		}
		rest = append(rest, k)
		days[day(k, now)]++
	}
	share := fairShare(days, KeepMost)
	seen := map[string]int{}
	spare := KeepMost
	for _, n := range days {
		spare -= min(n, share)
	}
	for _, k := range rest {
		d := day(k, now)
		seen[d]++
		switch {
		case k.open || seen[d] <= share:
		case seen[d] == share+1 && spare > 0: // what an even share leaves over, to the newest days
			spare--
		default:
			gone = append(gone, k.id)
		}
	}
	return gone
}

// day is the UTC day under which a record counts; a time that is still to come
// is a clock's mistake and counts as today.
func day(k keptRun, now time.Time) string {
	at := k.at
	if at.After(now) {
		at = now
	}
	return at.UTC().Format(time.DateOnly)
}

// fairShare is the largest number such that at most so many of each day are no
// more than total together.
func fairShare(days map[string]int, total int) int {
	share := 0
	for {
		sum := 0
		for _, n := range days {
			sum += min(n, share+1)
		}
		if sum > total || share >= total {
			return share
		}
		share++
	}
}

// cutFile holds the ids of records that were cut although their container still
// has them, one a line.
const cutFile = "cut"

// readCut reads what was remembered as cut; it never returns nil.
func (s Store) readCut(host, deployment string) (map[string]bool, error) {
	cut := map[string]bool{}
	b, err := readRegular(filepath.Join(s.Dir, host, deployment, cutFile), maxKept)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, id := range strings.Fields(string(b)) {
		cut[id] = true
	}
	return cut, nil
}

// writeCut remembers of cut what the container still holds.
func (s Store) writeCut(host, deployment string, brought []*spec.Record, cut map[string]bool) error {
	var lines strings.Builder
	for _, r := range brought {
		if cut[r.ID] {
			lines.WriteString(r.ID + "\n")
		}
	}
	path := filepath.Join(s.Dir, host, deployment, cutFile)
	if lines.Len() == 0 {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	_, err := writeChanged(path, []byte(lines.String()))
	return err
}
