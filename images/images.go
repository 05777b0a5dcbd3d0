// Package images holds what agent images are built from, and names them by it.
package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-container/agent-container/entrypoint"
	"github.com/agent-container/agent-container/spec"
)

//go:embed Dockerfile all:rootfs all:agents all:guest
var embedded embed.FS

// ErrNoGuest says that this binary was built without the guest.
var ErrNoGuest = errors.New("this agent-container was built without its guest program")

// Source is where the image files come from.
type Source struct {
	files  fs.FS // Dockerfile, rootfs, agents, guest
	script []byte
}

// Embedded is the source inside this binary.
func Embedded() Source { return Source{files: embedded, script: entrypoint.Script} }

// FromDirectory is the source of a checkout: dir/images and dir/entrypoint. The
// guest comes from this binary unless the checkout has built its own.
func FromDirectory(dir string) (Source, error) {
	script, err := os.ReadFile(filepath.Join(dir, "entrypoint", "entrypoint.sh"))
	if err != nil {
		return Source{}, err
	}
	files := os.DirFS(filepath.Join(dir, "images"))
	if _, err := fs.Stat(files, "Dockerfile"); err != nil {
		return Source{}, err
	}
	return Source{files: files, script: script}, nil
}

// Context is everything that goes into one agent image.
type Context struct {
	entries []entry // sorted by path
	args    map[string]string
}

type entry struct {
	path    string
	mode    int64
	content []byte
}

// Context collects the build context of agent for an engine of architecture
// arch ("amd64", "arm64"). base is the base image's name, baseID the id it has
// on the engine now. It returns ErrNoGuest when there is no guest to put in.
func (s Source) Context(agent spec.Agent, arch, base, baseID string) (*Context, error) {
	guest, err := s.guest(arch)
	if err != nil {
		return nil, err
	}
	c := &Context{args: map[string]string{
		"BASE":       base,
		"STATE_DIRS": strings.Join(stateDirs(), " "),
	}}
	c.add("entrypoint.sh", s.script)
	c.add("guest/agent-container-guest", guest)
	for from, to := range map[string]string{"Dockerfile": "Dockerfile", "rootfs": "rootfs", "agents/" + agent.Name: "agent"} {
		if err := c.addTree(s.files, from, to); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(c.entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	// Not a build argument: it must change the digest and nothing else.
	c.entries = append(c.entries, entry{path: ".base-id", mode: 0o644, content: []byte(baseID)})
	return c, nil
}

// guest returns the guest for arch: the source's own, else the embedded one.
func (s Source) guest(arch string) ([]byte, error) {
	name := "guest/agent-container-guest-" + arch
	b, err := fs.ReadFile(s.files, name)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = embedded.ReadFile(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoGuest
	}
	return b, err
}

// addTree adds a file, or every file below a directory.
func (c *Context) addTree(files fs.FS, from, to string) error {
	return fs.WalkDir(files, from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", p)
		}
		content, err := fs.ReadFile(files, p)
		c.add(path.Join(to, strings.TrimPrefix(p, from)), content)
		return err
	})
}

// add takes a file. An embedded file has lost its mode, so it is derived:
// what begins as a script or a program may be executed.
func (c *Context) add(name string, content []byte) {
	mode := int64(0o644)
	if bytes.HasPrefix(content, []byte("#!")) || bytes.HasPrefix(content, []byte("\x7fELF")) {
		mode = 0o755
	}
	c.entries = append(c.entries, entry{name, mode, content})
}

// stateDirs are the directories that the image must hold, owned by the agent
// user, for volumes to inherit the owner.
func stateDirs() []string {
	var dirs []string
	for _, a := range spec.Agents {
		for _, v := range a.State {
			dirs = append(dirs, v.Path)
		}
	}
	return dirs
}

// Args returns the build arguments.
func (c *Context) Args() map[string]string { return maps.Clone(c.args) }

// Digest names the content: 16 hexadecimal digits that change with any file,
// mode, build argument or the base image's id.
func (c *Context) Digest() string {
	h := sha256.New()
	for _, k := range slices.Sorted(maps.Keys(c.args)) {
		fmt.Fprintf(h, "arg %q %q\n", k, c.args[k])
	}
	for _, e := range c.entries {
		fmt.Fprintf(h, "file %q %o %x\n", e.path, e.mode, sha256.Sum256(e.content))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// WriteTar writes the build context. The same content gives the same bytes.
func (c *Context) WriteTar(w io.Writer) error {
	tw := tar.NewWriter(w)
	for _, e := range c.entries {
		if err := tw.WriteHeader(&tar.Header{Name: e.path, Mode: e.mode, Size: int64(len(e.content)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := tw.Write(e.content); err != nil {
			return err
		}
	}
	return tw.Close()
}

// AgentFolders lists the folders under agents, for the test that compares them
// with the agent table.
func (s Source) AgentFolders() ([]string, error) {
	list, err := fs.ReadDir(s.files, "agents")
	var names []string
	for _, d := range list {
		names = append(names, d.Name())
	}
	return names, err
}

// Read returns one file of the source, for tests of its content.
func (s Source) Read(name string) ([]byte, error) { return fs.ReadFile(s.files, name) }
