// Package runs keeps run records on the host: it brings them in from
// containers, and reads them back.
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
// runs/HOST/DEPLOYMENT/ID.json.
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
	return filepath.Join(s.Dir, host, deployment, id+".json")
}

// put writes a record unless the same one is there. It reports whether it wrote.
func (s Store) put(r *spec.Record) (bool, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return false, err
	}
	b = append(spec.EscapeJSON(b), '\n')
	path := s.path(r.Host, r.Deployment, r.ID)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, b) {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, err
	}
	return true, renameio.WriteFile(path, b, 0o600)
}

// get reads one record, or nil when there is none.
func (s Store) get(host, deployment, id string) (*spec.Record, error) {
	b, err := os.ReadFile(s.path(host, deployment, id))
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
