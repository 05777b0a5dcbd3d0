package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
)

// Trust keeps, a file a project, which files of it were trusted and as what.
type Trust struct{ Dir string }

// trusted is the document of one project.
type trusted struct {
	Project string            `json:"project"`
	At      time.Time         `json:"trusted_at"`
	Files   map[string]string `json:"files"` // path to digest
}

// The states of a file that a project brings.
const (
	StateTrusted = "trusted"
	StateNew     = "new"     // never trusted
	StateChanged = "changed" // since it was trusted
	StateRemoved = "removed" // since it was trusted
)

// Judged is a file with what trust says of it.
type Judged struct {
	Path  string
	State string
}

func (t Trust) path(project string) string {
	sum := sha256.Sum256([]byte(project))
	return filepath.Join(t.Dir, hex.EncodeToString(sum[:16])+".json")
}

// Judge compares files with what was trusted of project, for deployment name,
// or with "" for every one, in the order of paths. A document that cannot be
// read is an *Error, and trusts nothing.
func (t Trust) Judge(project, name string, files []Brought) ([]Judged, error) {
	before, err := t.load(project)
	if err != nil {
		return nil, err
	}
	states := map[string]string{}
	for rel := range before {
		if name == "" || BroughtFor(rel) == name {
			states[rel] = StateRemoved
		}
	}
	for _, f := range files {
		switch digest, known := before[f.Path]; {
		case !known:
			states[f.Path] = StateNew
		case digest != f.Digest:
			states[f.Path] = StateChanged
		default:
			states[f.Path] = StateTrusted
		}
	}
	var list []Judged
	for _, rel := range slices.Sorted(maps.Keys(states)) {
		list = append(list, Judged{rel, states[rel]})
	}
	return list, nil
}

func (t Trust) load(project string) (map[string]string, error) {
	path := t.path(project)
	content, err := ReadRegular(path, maxFile*16)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var d trusted
	if err == nil {
		err = json.Unmarshal(content, &d)
	}
	if err == nil && d.Project != project {
		err = errors.New("is of another project")
	}
	if err != nil {
		return nil, &Error{Where: path, Problem: reason(err), Hint: "remove it, and run: agent-container trust"}
	}
	return d.Files, nil
}

// Allow trusts files as they were read, and nothing else of project.
func (t Trust) Allow(project string, files []Brought, now time.Time) error {
	d := trusted{Project: project, At: now.UTC(), Files: map[string]string{}}
	for _, f := range files {
		d.Files[f.Path] = f.Digest
	}
	content, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := MakePrivate(t.Dir); err != nil {
		return err
	}
	return renameio.WriteFile(t.path(project), append(content, '\n'), 0o600)
}

// Revoke trusts nothing of project any more, and reports whether anything was.
func (t Trust) Revoke(project string) (bool, error) {
	err := os.Remove(t.path(project))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
