package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-container/agent-container/spec"
)

// Brought is a file that a project brings and that takes effect once it is
// trusted: its content was read once, and is what its digest is of.
type Brought struct {
	Path       string // below the project's folder, with slashes
	Executable bool
	Content    []byte
	Digest     string // of path, Executable and content
}

// Kinds of files that a project may bring for a deployment NAME, by what
// follows the name.
const (
	BroughtServices = ".services.yaml"
	BroughtEnv      = ".env"
	BroughtConfig   = ".config" // a directory, AGENT/… below it
)

// Bounds of what a project may bring: a folder that holds more is not what
// anybody looks at before trusting it.
const (
	maxBrought      = 64 << 20
	maxBroughtFiles = 10000
)

// BroughtFor returns the deployment that a path below a project's folder is
// for, or "" where it is of no kind.
func BroughtFor(rel string) string {
	first, below, inDirectory := strings.Cut(rel, "/")
	for _, kind := range []string{BroughtServices, BroughtEnv, BroughtConfig} {
		name, ok := strings.CutSuffix(first, kind)
		if ok && inDirectory == (kind == BroughtConfig) && (!inDirectory || below != "") && spec.ValidateName(name) == nil {
			return name
		}
	}
	return ""
}

// ReadBrought reads what a project brings for deployment name, or with "" for
// every one, in the order of paths. Links are followed within the project; one
// that leads out of it is an *Error, as is what is no regular file. unused are
// the other names in the folder.
func ReadBrought(project, name string) (files []Brought, unused []string, err error) {
	root, err := os.OpenRoot(project)
	if err != nil {
		return nil, nil, &Error{Where: project, Problem: "not readable: " + reason(err)}
	}
	defer root.Close()
	r := broughtReader{root: root}
	entries, err := r.list(ProjectDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, r.refused(ProjectDir, err)
	}
	for _, e := range entries {
		rel := e.Name()
		of := BroughtFor(rel)
		if strings.HasSuffix(rel, BroughtConfig) {
			of = BroughtFor(rel + "/x")
		}
		switch {
		case of == "" && rel != FileName:
			unused = append(unused, rel)
		case of != "" && (name == "" || of == name):
			if err := r.take(rel, strings.HasSuffix(rel, BroughtConfig)); err != nil {
				return nil, nil, err
			}
		}
	}
	return r.files, unused, nil
}

// broughtReader collects files below a project's folder.
type broughtReader struct {
	root  *os.Root
	files []Brought
	bytes int64
}

// take reads a file, or all files below a directory.
func (r *broughtReader) take(rel string, directory bool) error {
	if !directory {
		return r.file(rel)
	}
	entries, err := r.list(path.Join(ProjectDir, rel))
	if err != nil {
		return r.refused(path.Join(ProjectDir, rel), err)
	}
	for _, e := range entries {
		if err := r.take(path.Join(rel, e.Name()), e.IsDir()); err != nil {
			return err
		}
	}
	return nil
}

func (r *broughtReader) list(name string) ([]fs.DirEntry, error) {
	// Without O_NONBLOCK a FIFO in the place of a directory would wait.
	d, err := r.root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxBroughtFiles + 1)
	if len(entries) > maxBroughtFiles {
		return nil, errors.New("holds too many files")
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (r *broughtReader) file(rel string) error {
	name := path.Join(ProjectDir, rel)
	f, err := r.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return r.refused(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		return r.refused(name, err)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxBrought-r.bytes+1))
	if r.bytes += int64(len(content)); err == nil && (r.bytes > maxBrought || len(r.files) == maxBroughtFiles) {
		err = fmt.Errorf("a project may bring no more than %d bytes and %d files", maxBrought, maxBroughtFiles)
	}
	if err != nil {
		return r.refused(name, err)
	}
	b := Brought{Path: rel, Executable: info.Mode()&0o100 != 0, Content: content}
	b.Digest = b.digest()
	r.files = append(r.files, b)
	return nil
}

// digest is of all that the file can effect.
func (b Brought) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %s\x00%t\x00", len(b.Path), b.Path, b.Executable)
	h.Write(b.Content)
	return hex.EncodeToString(h.Sum(nil))
}

// refused is the *Error for something in the project's folder. os.Root has no
// name for its refusal of a link, so the link itself is looked at.
func (r *broughtReader) refused(name string, err error) error {
	e := &Error{Where: path.Join(r.root.Name(), name), Problem: reason(err)}
	if info, linkErr := r.root.Lstat(name); linkErr == nil && info.Mode()&fs.ModeSymlink != 0 {
		e.Problem = "a link that leads out of the project, to a directory, or to nothing"
		e.Hint = "put the file itself there"
	}
	return e
}

// reason is err without the path, which stands before it.
func reason(err error) string {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return err.Error()
}
