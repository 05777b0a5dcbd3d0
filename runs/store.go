// Package runs keeps run records on the host: it brings them in from
// containers, cuts them to a bound, and reads them back.
package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

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

// readRegular reads a file of at most limit bytes. We write no links and nothing
// larger, and to open a FIFO would wait for its other end. fs.ErrNotExist means
// that nothing has that name.
func readRegular(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, limit)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, limit)
	}
	return b, err
}

// readDir lists a directory; one that is not there has nothing in it. A link to
// nothing is there: its target is on a disk, say, that is not mounted.
func readDir(path string) ([]fs.DirEntry, error) {
	list, err := os.ReadDir(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return list, err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s: a link to nothing", path)
	}
	return nil, nil
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

// KeepEgress adds to a record that was brought in what its gateway refused it.
func (s Store) KeepEgress(r *spec.Record, refused *spec.Refused) error {
	r.Egress = refused
	_, err := s.put(r)
	return err
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
	return true, renameio.WriteFile(path, content, 0o600, renameio.WithTempDir(filepath.Dir(path)))
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

// Listing is what List found; Unreadable says of each file or directory that is
// not what it should be its path and why. They are kept as they are.
type Listing struct {
	Records    []*spec.Record
	Unreadable []string

	unreadable map[string]string // those of records, by the id that the file's name has
}

// List reads the records of one deployment, or of all when deployment is
// empty, newest first.
func (s Store) List(deployment string) (Listing, error) {
	l := Listing{unreadable: map[string]string{}}
	hosts, err := readDir(s.Dir)
	if err != nil {
		return l, fmt.Errorf("run records: %w", err)
	}
	for _, host := range hosts {
		names := []string{deployment}
		if deployment == "" {
			if names, err = dirNames(filepath.Join(s.Dir, host.Name())); err != nil {
				l.Unreadable = append(l.Unreadable, err.Error())
			}
		}
		for _, name := range names {
			s.list(host.Name(), name, &l)
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

// list adds the records of a deployment on a host to l.
func (s Store) list(host, deployment string, l *Listing) {
	names, err := dirNames(filepath.Join(s.Dir, host, deployment))
	if err != nil {
		l.Unreadable = append(l.Unreadable, err.Error())
	}
	for _, name := range names {
		id, isRecord := strings.CutSuffix(name, ".json")
		if !isRecord {
			continue
		}
		r, err := s.get(host, deployment, id)
		if err != nil {
			l.Unreadable = append(l.Unreadable, err.Error())
			l.unreadable[id] = err.Error()
			continue
		}
		if r != nil { // it may be gone since
			l.Records = append(l.Records, r)
		}
	}
}

func dirNames(path string) ([]string, error) {
	entries, err := readDir(path)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Find returns the one record whose id begins with prefix, or a *NotFoundError,
// or what is wrong with the only file of such a name.
func (s Store) Find(prefix string) (*spec.Record, error) {
	l, err := s.List("")
	if err != nil {
		return nil, err
	}
	return l.Find(prefix)
}

// Find is Store.Find among the records of l.
func (l Listing) Find(prefix string) (*spec.Record, error) {
	found := map[string]*spec.Record{}
	for _, r := range l.Records {
		found[r.ID] = r
	}
	for id := range l.unreadable {
		found[id] = nil
	}
	e := &NotFoundError{ID: prefix}
	for id := range found {
		if id == prefix {
			e.Matches = []string{id}
			break
		}
		if prefix != "" && strings.HasPrefix(id, prefix) {
			e.Matches = append(e.Matches, id)
		}
	}
	if len(e.Matches) != 1 {
		slices.Sort(e.Matches)
		slices.Reverse(e.Matches)
		return nil, e
	}
	id := e.Matches[0]
	if found[id] == nil {
		return nil, errors.New(l.unreadable[id])
	}
	return found[id], nil
}

// Remove deletes every record of a deployment.
func (s Store) Remove(host, deployment string) error {
	return os.RemoveAll(filepath.Join(s.Dir, host, deployment))
}
