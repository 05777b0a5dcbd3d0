package runs

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// MaxBytes bounds what is read of one container's records and what is beside
// them, and so the memory that reading takes. The guest keeps less than that in
// its volume.
const MaxBytes = 128 << 20

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

// Bring reads the tar of a container's runs directory and stores its records
// with their output and changes. The host's words (deployment, host, image,
// engine, egress) replace the container's. A record that is open although its container
// is not alive, or although a newer one exists, is closed as lost. When the tar
// ends with an error, what was read before is stored all the same and the error
// returned. Afterwards the deployment's records are cut to what is kept.
func (s Store) Bring(t *tar.Reader, c Container) (Brought, error) {
	var b Brought
	records, attached, newest, readErr := readAll(t, &b)
	cut, err := s.readCut(c.Host, c.Deployment)
	if err != nil {
		return b, err
	}
	changed := false
	newest = newestOf(records, newest)
	torn := justBegun(records, newest)
	for _, r := range records {
		// The volume outlives containers: only the newest record can be of this
		// one, and only if it is not older.
		current := r.ID == newest && !r.StartedAt.Before(c.Created)
		if cut[r.ID] && !current {
			continue // it was kept, and then cut
		}
		open, err := s.stamp(r, c, current, torn && !r.StartedAt.Before(c.Created))
		if err != nil {
			b.leaveOut("%v", err)
			continue
		}
		wrote, err := s.keep(r, attached[r.ID], open || current)
		if err != nil {
			return b, fmt.Errorf("keep run %s: %w", r.ID, err)
		}
		changed = changed || wrote
		b.Records = append(b.Records, r)
		if current {
			b.Current = r
		}
	}
	if changed {
		err = s.prune(c.Host, c.Deployment, records, cut, time.Now())
	}
	return b, errors.Join(readErr, err)
}

// tornTime is more than the reading of a container's records takes.
const tornTime = time.Minute

// justBegun reports whether a run began so lately that it may have done so while the
// directory was read, file by file: the one before it was open when that was read, and
// its end is seen the next time.
func justBegun(records []*spec.Record, id string) bool {
	return slices.ContainsFunc(records, func(r *spec.Record) bool {
		age := time.Since(r.StartedAt)
		return r.ID == id && age > -tornTime && age < tornTime
	})
}

// newestOf is the id of the newest record: the one that the guest names, or when
// that one is not there, since a new run may have begun while the directory was
// read, the last that began, but for what says that it begins in the future.
func newestOf(records []*spec.Record, named string) string {
	for _, r := range slices.Backward(records) {
		if r.ID == named {
			return named
		}
	}
	soon := time.Now().Add(time.Minute)
	for _, r := range slices.Backward(records) {
		if r.StartedAt.Before(soon) {
			return r.ID
		}
	}
	return ""
}

// keep writes a record and what came with it, and reports whether the record is
// new or another one now. Output and changes of a former run are kept as they
// came in with its end, unless anew says otherwise.
func (s Store) keep(r *spec.Record, attached map[string][]byte, anew bool) (bool, error) {
	wrote, err := s.put(r)
	if err != nil {
		return false, err
	}
	for suffix, content := range attached {
		path := s.file(r.Host, r.Deployment, r.ID, suffix)
		if _, err := os.Lstat(path); err == nil && !anew {
			continue
		}
		if _, err := writeChanged(path, content); err != nil {
			return false, err
		}
	}
	return wrote, nil
}

// readAll reads and checks every record of the tar and returns them, oldest
// first, what is beside them by id and suffix, and the id of the newest one if the
// guest names it; also what came before an error.
func readAll(t *tar.Reader, b *Brought) (records []*spec.Record, attached map[string]map[string][]byte, newest string, err error) {
	attached = map[string]map[string][]byte{}
	for {
		var h *tar.Header
		if h, err = t.Next(); err != nil {
			break
		}
		base := path.Base(h.Name)
		id, suffix := strings.TrimSuffix(base, path.Ext(base)), path.Ext(base)
		var failed error
		switch {
		case h.Typeflag == tar.TypeDir || strings.Count(path.Clean(h.Name), "/") > 1:
			continue // nothing of ours is below the directory's own files
		case base == spec.FileCurrent:
			content, _ := readEntry(t, h, 100)
			newest = strings.TrimSpace(string(content))
		case suffix == ".json":
			var r *spec.Record
			if r, failed = readOne(t, h, id); failed == nil {
				records = append(records, r)
			}
		case suffix == spec.OutputSuffix || suffix == spec.DiffSuffix:
			var content []byte
			if content, failed = readEntry(t, h, maxAttachment); failed == nil && spec.ValidRecordID(id) {
				if attached[id] == nil {
					attached[id] = map[string][]byte{}
				}
				attached[id][suffix] = content
			}
		default:
			continue // a file that is being written
		}
		if failed != nil {
			b.leaveOut("%s: %v", spec.Printable(base, 100), failed)
		}
	}
	slices.SortFunc(records, func(a, b *spec.Record) int {
		if c := a.StartedAt.Compare(b.StartedAt); c != 0 {
			return c // ids know only seconds, and attempts follow each other faster
		}
		return strings.Compare(a.ID, b.ID)
	})
	if errors.Is(err, io.EOF) {
		return records, attached, newest, nil
	}
	return records, attached, newest, fmt.Errorf("records of the container: %w", err)
}

func readOne(t *tar.Reader, h *tar.Header, id string) (*spec.Record, error) {
	content, err := readEntry(t, h, spec.MaxRecordBytes)
	if err != nil {
		return nil, err
	}
	return decode(content, id)
}

// readEntry reads a regular file of at most limit bytes.
func readEntry(t *tar.Reader, h *tar.Header, limit int64) ([]byte, error) {
	if h.Typeflag != tar.TypeReg {
		return nil, errors.New("not a regular file")
	}
	if h.Size > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	return io.ReadAll(io.LimitReader(t, limit))
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
// deployment was is kept from when it was brought in. Of a living container current
// is left open, and torn, which was perhaps so only when it was read.
func (s Store) stamp(r *spec.Record, c Container, current, torn bool) (open bool, err error) {
	now := time.Now().UTC()
	r.Host, r.Deployment, r.Image, r.Engine, r.KeptAt, r.Disagreement, r.Egress = c.Host, c.Deployment, c.Image, nil, &now, "", nil
	known, err := s.get(c.Host, c.Deployment, r.ID)
	if err != nil {
		return false, err
	}
	open = known == nil || known.EndedAt == nil
	if !open && (!current || r.EndedAt == nil) {
		// What a former run was cannot be changed by a later one; and what was
		// closed as lost stays so, also when the container runs again.
		*r = *known
		return open, nil
	}
	if known != nil {
		r.Image, r.Engine, r.Egress = known.Image, known.Engine, known.Egress
		if known.KeptAt != nil {
			r.KeptAt = known.KeptAt
		}
	}
	if current && c.Engine != nil {
		r.Engine = c.Engine
	}
	if r.EndedAt == nil && !(c.Alive && (current || torn)) {
		closeLost(r, c, current)
	}
	r.Disagreement = disagreement(r, current && !c.Alive)
	return open, nil
}

// closeLost closes a record that its container left open.
func closeLost(r *spec.Record, c Container, current bool) {
	at, note := time.Now(), "the container ended without closing this record"
	if current && c.Engine != nil {
		if finished, err := time.Parse(time.RFC3339Nano, c.Engine.FinishedAt); err == nil {
			at = finished
		}
		note += fmt.Sprintf("; the engine says: %s, exit code %d", c.Engine.Status, c.Engine.ExitCode)
		if c.Engine.OOMKilled {
			note += ", a process was killed for memory"
		}
	}
	r.Finish(spec.OutcomeLost, spec.CauseLost, nil, at)
	r.Notes = append(r.Notes, note)
}

// disagreement says where the record and the engine differ, or where the record
// contradicts itself. It is written in an untrusted container.
func disagreement(r *spec.Record, over bool) string {
	switch {
	case over && r.Kind == spec.Headless && r.ExitCode != nil && r.Engine != nil && r.Engine.ExitCode != *r.ExitCode:
		return fmt.Sprintf("the record says exit code %d, the engine %d", *r.ExitCode, r.Engine.ExitCode)
	case r.EndedAt != nil && r.EndedAt.Before(r.StartedAt):
		return "it ends before it begins: a clock was set, or the record is not true"
	}
	return ""
}
