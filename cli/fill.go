package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

// fill is everything that is put into the created container before it starts.
type fill struct {
	task   []byte // nil for none
	env    environment
	job    spec.Job
	ca     []byte // nil for none
	access []byte // lines of authorized_keys; nil when nobody attaches over ssh
	config []configFile

	carried bool // the task is one that no agent has got yet, of the container before
	keeps   bool // such a task stays where it is, on its volume
}

// configFile is one file of the canonical agent configuration.
type configFile struct {
	path    string // below the agent's config directory, slashes
	mode    int64
	content []byte
}

// write writes the tar that Fill copies to /. It holds the directories of ours
// alone, so that a directory entry can reset the owner of no other.
func (f fill) write(t *tar.Writer) error {
	w := fillWriter{tar: t, dirs: map[string]bool{}}
	job, err := json.Marshal(f.job)
	if err != nil {
		return err
	}
	w.file(spec.FillJob, 0o600, job)
	w.environment(f.env)
	if !f.keeps { // writing it anew could be interrupted
		w.undelivered(f.task)
	}
	if f.task != nil {
		w.file(spec.FillTask, 0o600, f.task)
	}
	if f.access != nil {
		w.file(spec.FillAccess, 0o600, f.access)
	}
	if f.ca != nil {
		w.file(spec.FillCA, 0o600, f.ca)
	}
	for _, c := range f.config {
		w.file(path.Join(spec.FillConfig, c.path), c.mode, c.content)
	}
	return w.err
}

// freshStatus writes the status of a container that is about to start again.
func freshStatus(t *tar.Writer) error {
	w := fillWriter{tar: t, dirs: map[string]bool{}}
	w.file(spec.FileStatus, 0o600, []byte(spec.Status{State: spec.Starting, Phase: spec.PhaseContainer}.String()+"\n"))
	return w.err
}

// noSecrets empties the environment that a container was filled with, and the
// task that no agent has got.
func noSecrets(t *tar.Writer) error {
	w := fillWriter{tar: t, dirs: map[string]bool{}}
	w.environment(nil)
	w.undelivered(nil)
	return w.err
}

// fillWriter writes entries below the run directory, owned by the agent user
// unless root is set.
type fillWriter struct {
	tar  *tar.Writer
	dirs map[string]bool
	root bool
	err  error
}

func (w *fillWriter) file(name string, mode int64, content []byte) {
	full := strings.TrimPrefix(path.Join(spec.ContainerRunDir, name), "/")
	w.directory(path.Dir(full))
	w.entry(&tar.Header{Typeflag: tar.TypeReg, Name: full, Mode: mode, Size: int64(len(content))}, content)
}

// environment writes the user's environment.
func (w *fillWriter) environment(env environment) { w.secret(spec.FillEnvironment, env.encode()) }

// undelivered writes the task once more for a redeploy before an agent has got
// it; nil empties what may be there.
func (w *fillWriter) undelivered(task []byte) {
	if task != nil {
		task = append(slices.Clone(task), 0) // it is whole
	}
	w.secret(spec.FillUndelivered, task)
}

// secret writes a file on the secrets volume. Its directory is made by the
// engine from the image: an entry for it could only change what is right.
func (w *fillWriter) secret(name string, content []byte) {
	name = strings.TrimPrefix(path.Join(spec.ContainerSecretsDir, name), "/")
	w.entry(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(content))}, content)
}

// directory writes the entries of dir and its parents down from the run
// directory itself, each once.
func (w *fillWriter) directory(dir string) {
	if w.dirs[dir] || !strings.HasPrefix("/"+dir, spec.ContainerRunDir) {
		return
	}
	w.directory(path.Dir(dir))
	w.dirs[dir] = true
	w.entry(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o700}, nil)
}

func (w *fillWriter) entry(h *tar.Header, content []byte) {
	if w.err != nil {
		return
	}
	if !w.root {
		h.Uid, h.Gid = spec.ContainerUID, spec.ContainerUID
	}
	if w.err = w.tar.WriteHeader(h); w.err == nil {
		_, w.err = w.tar.Write(content)
	}
}

// maxConfigBytes bounds the canonical configuration: a folder that holds more
// is not what the user meant.
const maxConfigBytes = 64 << 20

// readConfig reads the canonical configuration of an agent, links followed. A
// folder that does not exist means none.
func readConfig(dir string) ([]configFile, error) {
	if _, err := os.Stat(dir); absent(err) {
		return nil, nil
	}
	var files []configFile
	total := int64(0)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		if info.IsDir() {
			if d.Type()&fs.ModeSymlink != 0 {
				return fmt.Errorf("%s is a link to a directory", p)
			}
			return nil
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", p)
		}
		if total += info.Size(); total > maxConfigBytes {
			return fmt.Errorf("%s holds more than %d bytes", dir, int64(maxConfigBytes))
		}
		content, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		files = append(files, configFile{filepath.ToSlash(rel), int64(info.Mode().Perm())&0o700 | 0o600, content})
		return err
	})
	if err != nil {
		return nil, refuse("correct it, or move it away", "agent configuration: %v", err)
	}
	return files, nil
}

// gitIdentity reads the name and e-mail address of the user's own git
// configuration. It starts outside any repository, whose configuration may not
// be the user's. No git or no identity is no error.
func (a *app) gitIdentity(ctx context.Context) (name, email string) {
	out, err := a.runner.Output(ctx, process.Command{
		Argv: []string{"git", "config", "--null", "--get-regexp", `^user\.(name|email)$`}, Dir: "/",
	})
	if err != nil {
		return "", ""
	}
	for _, entry := range bytes.Split(out, []byte{0}) {
		key, value, _ := strings.Cut(string(entry), "\n")
		switch key {
		case "user.name":
			name = value
		case "user.email":
			email = value
		}
	}
	return name, email
}

// readCA reads the CA bundle that the spec names.
func readCA(bundle string) ([]byte, error) {
	if bundle == "none" {
		return nil, nil
	}
	return os.ReadFile(bundle)
}
