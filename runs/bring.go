package runs

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// MaxBytes bounds what is read of one container's records. Kept records are
// bounded by it too, and so is the memory that reading takes.
const MaxBytes = 64 << 20

// maxReasons bounds how many reasons are told for what was left out.
const maxReasons = 10

// Container is what the host knows of the container whose records come in.
type Container struct {
	Host       string
	Deployment string
	Image      string // the engine's id of the image
	Created    time.Time
	Alive      bool // whether its process runs or is about to
	Engine     *spec.EngineReport
}

// Brought is what came in: the records, oldest first, and what was left out
// and why. The container is not trusted, so every reason names a file only.
type Brought struct {
	Records []*spec.Record
	Current *spec.Record // the record of this container's last run, nil when it has none
	LeftOut []string
}

// leaveOut notes a reason, as long as there are few.
func (b *Brought) leaveOut(format string, args ...any) {
	switch {
	case len(b.LeftOut) < maxReasons:
		b.LeftOut = append(b.LeftOut, fmt.Sprintf(format, args...))
	case len(b.LeftOut) == maxReasons:
		b.LeftOut = append(b.LeftOut, "and more")
	}
}

// Bring reads the tar of a container's runs directory and stores its records.
// The host's words (deployment, host, image, engine) replace the container's. A
// record that is open although its container is not alive, or although a newer
// one exists, is closed as lost. When the tar ends with an error, what was read
// before is stored all the same and the error returned.
func (s Store) Bring(t *tar.Reader, c Container) (Brought, error) {
	var b Brought
	records, readErr := readAll(t, &b)
	for i, r := range records {
		// The volume outlives containers: only the newest record can be of this
		// one, and only if it is not older.
		current := i == len(records)-1 && !r.StartedAt.Before(c.Created)
		if err := s.stamp(r, c, current); err != nil {
			b.leaveOut("%v", err)
			continue
		}
		if _, err := s.put(r); err != nil {
			return b, fmt.Errorf("keep run %s: %w", r.ID, err)
		}
		b.Records = append(b.Records, r)
		if current {
			b.Current = r
		}
	}
	return b, readErr
}

// readAll reads and checks every record of the tar and returns them, oldest
// first, also those before an error.
func readAll(t *tar.Reader, b *Brought) ([]*spec.Record, error) {
	var records []*spec.Record
	var err error
	for {
		var h *tar.Header
		if h, err = t.Next(); err != nil {
			break
		}
		id, isRecord := strings.CutSuffix(path.Base(h.Name), ".json")
		if h.Typeflag == tar.TypeDir || !isRecord {
			continue // the directory itself, or a file that is being written
		}
		r, err := readOne(t, h, id)
		if err != nil {
			b.leaveOut("%s: %v", spec.Printable(path.Base(h.Name), 100), err)
			continue
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b *spec.Record) int { return strings.Compare(a.ID, b.ID) })
	if errors.Is(err, io.EOF) {
		return records, nil
	}
	return records, fmt.Errorf("records of the container: %w", err)
}

func readOne(t *tar.Reader, h *tar.Header, id string) (*spec.Record, error) {
	if h.Typeflag != tar.TypeReg {
		return nil, errors.New("not a regular file")
	}
	if h.Size > spec.MaxRecordBytes {
		return nil, fmt.Errorf("larger than %d bytes", spec.MaxRecordBytes)
	}
	content, err := io.ReadAll(io.LimitReader(t, spec.MaxRecordBytes))
	if err != nil {
		return nil, err
	}
	return decode(content, id)
}

// decode reads a record and holds it against its file's name.
func decode(content []byte, id string) (*spec.Record, error) {
	if !spec.ValidRecordID(id) {
		return nil, errors.New("its name is not a record id")
	}
	var r spec.Record
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, errors.New("not a record in JSON")
	}
	if r.Schema != spec.RecordSchema {
		return nil, fmt.Errorf("schema %q is not %q", spec.Printable(r.Schema, 100), spec.RecordSchema)
	}
	if r.ID != id {
		return nil, errors.New("its id is not its name")
	}
	if !r.Known() {
		return nil, errors.New("its kind, outcome or cause is not a known word")
	}
	return &r, nil
}

// stamp puts the host's word on a record: what a former container of the
// deployment was is kept from when it was brought in.
func (s Store) stamp(r *spec.Record, c Container, current bool) error {
	r.Host, r.Deployment, r.Image, r.Engine = c.Host, c.Deployment, c.Image, nil
	known, err := s.get(c.Host, c.Deployment, r.ID)
	if err != nil {
		return err
	}
	if known != nil && known.EndedAt != nil && !current {
		*r = *known // what a former run was cannot be changed by a later one
		return nil
	}
	if known != nil {
		r.Image = known.Image
	}
	if current && c.Engine != nil {
		r.Engine = c.Engine
	} else if known != nil {
		r.Engine = known.Engine
	}
	if r.EndedAt != nil {
		return nil
	}
	if known != nil && known.EndedAt != nil {
		*r = *known // closed as lost before; its time stays, also when the container runs again
		return nil
	}
	if current && c.Alive {
		return nil
	}
	at := time.Now()
	if current && c.Engine != nil {
		if finished, err := time.Parse(time.RFC3339Nano, c.Engine.FinishedAt); err == nil {
			at = finished
		}
	}
	r.Finish(spec.OutcomeLost, spec.CauseLost, nil, at)
	r.Notes = append(r.Notes, "the container ended without closing this record")
	return nil
}
