// Package runs keeps run records on the host: it brings them in from
// containers, cuts them to a bound, and reads them back.
package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/spec"
)

// Store is the directory runs/ below the data directory:
// runs/HOST/DEPLOYMENT/ID.json, beside it ID.out and ID.diff.
type Store struct{ Dir string }

// NotFoundError says that no record, or more than one, matches an id.
type NotFoundError struct {
	ID      string
	Matches []string
}

func (e *NotFoundError) Error() string {
	if len(e.Matches) > 0 {
		return fmt.Sprintf("run %s is not unique: %s", e.ID, strings.Join(e.Matches, ", "))
	}
	return fmt.Sprintf("no run %s", e.ID)
}

func (s Store) path(host, deployment, id string) string {
	return s.file(host, deployment, id, ".json")
}

func (s Store) file(host, deployment, id, suffix string) string {
	return filepath.Join(s.Dir, host, deployment, id+suffix)
}

// Attachment reads what is kept beside a record, spec.OutputSuffix or
// spec.DiffSuffix; empty when there is nothing. It comes from a container and may
// hold any bytes.
func (s Store) Attachment(r *spec.Record, suffix string) ([]byte, error) {
	b, err := readRegular(s.file(r.Host, r.Deployment, r.ID, suffix), maxAttachment)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// readRegular reads a file of at most limit bytes. Opening a FIFO would hang, and
// what is larger was not written by us.
func readRegular(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, limit)
	}
	return os.ReadFile(path)
}

// put writes a record unless the same one is there. It reports whether it wrote.
func (s Store) put(r *spec.Record) (bool, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return false, err
	}
	b = append(spec.EscapeJSON(b), '\n')
	path := s.path(r.Host, r.Deployment, r.ID)
	return writeChanged(path, b)
}

// writeChanged writes a file unless it holds the same already, and reports
// whether it wrote.
func writeChanged(path string, content []byte) (bool, error) {
	if old, err := readRegular(path, int64(len(content))); err == nil && bytes.Equal(old, content) {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	return true, renameio.WriteFile(path, content, 0o600)
}

// get reads one record, or nil when there is none.
func (s Store) get(host, deployment, id string) (*spec.Record, error) {
	b, err := readRegular(s.path(host, deployment, id), maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := decode(b, id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path(host, deployment, id), err)
	}
	return r, nil
}

// Bounds of the files of the store. A record grows when it is kept: control
// characters are written as escapes.
const (
	maxKept       = 8 * spec.MaxRecordBytes
	maxAttachment = spec.MaxOutputBytes + 4096 // and a word on what was left out
)

// Listing is what List found; Unreadable names the files that hold no record
// of this version. They are kept as they are.
type Listing struct {
	Records    []*spec.Record
	Unreadable []string
}

// List reads the records of one deployment, or of all when deployment is
// empty, newest first.
func (s Store) List(deployment string) (Listing, error) {
	var l Listing
	// Glob takes what it cannot read for empty.
	if _, err := os.ReadDir(s.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return l, fmt.Errorf("run records: %w", err)
	}
	pattern := filepath.Join("*", "*", "*.json")
	if deployment != "" {
		pattern = filepath.Join("*", deployment, "*.json")
	}
	paths, err := fs.Glob(os.DirFS(s.Dir), filepath.ToSlash(pattern))
	if err != nil {
		return l, err
	}
	for _, p := range paths {
		part := strings.Split(p, "/")
		r, err := s.get(part[0], part[1], strings.TrimSuffix(part[2], ".json"))
		if err != nil {
			l.Unreadable = append(l.Unreadable, err.Error())
			continue
		}
		if r != nil {
			l.Records = append(l.Records, r)
		}
	}
	slices.SortFunc(l.Records, func(a, b *spec.Record) int {
		if c := b.StartedAt.Compare(a.StartedAt); c != 0 {
			return c
		}
		return strings.Compare(b.ID, a.ID)
	})
	return l, nil
}

// Find returns the one record whose id begins with prefix, or a *NotFoundError.
func (s Store) Find(prefix string) (*spec.Record, error) {
	l, err := s.List("")
	if err != nil {
		return nil, err
	}
	var found []*spec.Record
	for _, r := range l.Records {
		if r.ID == prefix {
			return r, nil
		}
		if prefix != "" && strings.HasPrefix(r.ID, prefix) {
			found = append(found, r)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	e := &NotFoundError{ID: prefix}
	for _, r := range found {
		e.Matches = append(e.Matches, r.ID)
	}
	return nil, e
}

// Remove deletes every record of a deployment.
func (s Store) Remove(host, deployment string) error {
	return os.RemoveAll(filepath.Join(s.Dir, host, deployment))
}
