package images

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/agent-container/agent-container/spec"
)

const base, baseID = "debian:trixie-slim", "sha256:0123"

var agent = spec.Agents[0]

// files are a small source: everything that a real one has, of each kind.
func files() fstest.MapFS {
	fs := fstest.MapFS{}
	for name, content := range map[string]string{
		"Dockerfile":                               "ARG BASE\n",
		"rootfs/etc/profile.d/x.sh":                "PATH=/x\n",
		"agents/claude/package.json":               "{}",
		"agents/claude/package-lock.json":          `{"packages":{}}`,
		"agents/claude/bin/claude":                 "#!/bin/sh\nexec x\n",
		"agents/pi/bin/pi":                         "#!/bin/sh\nexec pi\n",
		"guest/agent-container-guest-amd64":        "\x7fELF amd64",
		"guest/agent-container-guest-arm64":        "\x7fELF arm64",
		"guest/README.md":                          "about",
		"agents/claude/node_modules/.keep-me/file": "x",
	} {
		fs[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fs
}

func source(files fstest.MapFS) Source {
	return Source{files: files, script: []byte("#!/bin/bash\necho entry\n")}
}

func build(t *testing.T, s Source, arch, base, id string) *Context {
	t.Helper()
	c, err := s.Context(agent, arch, base, id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tarOf(t *testing.T, c *Context) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.WriteTar(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSameInputSameBytes(t *testing.T) {
	// The same input must give the same digest and the same tar, every time.
	first := build(t, source(files()), "amd64", base, baseID)
	for range 5 {
		again := build(t, source(files()), "amd64", base, baseID)
		if again.Digest() != first.Digest() || !bytes.Equal(tarOf(t, again), tarOf(t, first)) {
			t.Fatal("the same input gave another context")
		}
	}
	if len(first.Digest()) != 16 || strings.Trim(first.Digest(), "0123456789abcdef") != "" {
		t.Errorf("digest is %q", first.Digest())
	}
}

func TestEveryInputIsInTheDigest(t *testing.T) {
	// Any changed input must change the digest, and no two changes may agree; what does not go in must not.
	digests := map[string]string{}
	add := func(what, digest string) {
		for other, d := range digests {
			if d == digest {
				t.Errorf("%q and %q have one digest", what, other)
			}
		}
		digests[what] = digest
	}
	add("as it is", build(t, source(files()), "amd64", base, baseID).Digest())
	add("architecture", build(t, source(files()), "arm64", base, baseID).Digest())
	add("base name", build(t, source(files()), "amd64", base+"x", baseID).Digest())
	add("base id", build(t, source(files()), "amd64", base, baseID+"x").Digest())
	for name := range files() {
		changed := files()
		changed[name].Data = append(changed[name].Data, 'x')
		renamed := files()
		renamed[name+"x"] = renamed[name]
		delete(renamed, name)
		switch {
		case strings.HasPrefix(name, "agents/pi/"), strings.HasSuffix(name, "arm64"), strings.HasSuffix(name, "README.md"):
			if got := build(t, source(changed), "amd64", base, baseID).Digest(); got != digests["as it is"] {
				t.Errorf("%s does not go in, and changes the digest", name)
			}
		case strings.HasPrefix(name, "rootfs/"), strings.HasPrefix(name, "agents/"):
			add("name of "+name, build(t, source(renamed), "amd64", base, baseID).Digest())
			fallthrough
		default:
			add(name, build(t, source(changed), "amd64", base, baseID).Digest())
		}
	}
	script := source(files())
	script.script = append(script.script, 'x')
	add("entrypoint", build(t, script, "amd64", base, baseID).Digest())
	mode := build(t, source(files()), "amd64", base, baseID)
	mode.entries[0].mode ^= 0o111
	add("mode", mode.Digest())
	for k := range mode.Args() {
		c := build(t, source(files()), "amd64", base, baseID)
		c.args[k] += "y"
		add("argument "+k, c.Digest())
	}
	moved := build(t, source(files()), "amd64", base, baseID)
	moved.args["NEW"] = ""
	add("a new argument", moved.Digest())
}

func TestArgs(t *testing.T) {
	// The arguments must be a copy, and hold the base and every agent's state directory.
	c := build(t, source(files()), "amd64", base, baseID)
	c.Args()["BASE"] = "changed"
	if c.Args()["BASE"] != base {
		t.Error("Args returns what the digest is made of")
	}
	dirs := strings.Fields(c.Args()["STATE_DIRS"])
	for _, a := range spec.Agents {
		for _, v := range a.State {
			if !slices.Contains(dirs, v.Path) {
				t.Errorf("STATE_DIRS has no %s", v.Path)
			}
		}
	}
}

func TestTar(t *testing.T) {
	// The tar must hold the one agent's files as regular files, programs and scripts alone executable.
	want := map[string]int64{
		"Dockerfile": 0o644, "rootfs/etc/profile.d/x.sh": 0o644, "entrypoint.sh": 0o755, "guest/agent-container-guest": 0o755,
		"agent/package.json": 0o644, "agent/package-lock.json": 0o644, "agent/bin/claude": 0o755, "agent/node_modules/.keep-me/file": 0o644,
		".base-id": 0o644,
	}
	got := map[string]int64{}
	r := tar.NewReader(bytes.NewReader(tarOf(t, build(t, source(files()), "amd64", base, baseID))))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || h.Uid != 0 || !h.ModTime.IsZero() && h.ModTime.Unix() != 0 {
			t.Errorf("%s: type %c, uid %d, time %v", h.Name, h.Typeflag, h.Uid, h.ModTime)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "guest/agent-container-guest" && string(content) != "\x7fELF amd64" {
			t.Errorf("the guest is %q", content)
		}
		got[h.Name] = h.Mode
	}
	if !maps.Equal(got, want) {
		t.Errorf("the tar holds %v, want %v", got, want)
	}
}

func TestNoGuest(t *testing.T) {
	// Without a guest for the engine's architecture the error must be ErrNoGuest.
	without := files()
	delete(without, "guest/agent-container-guest-amd64")
	if _, err := source(files()).Context(agent, "riscv64", base, baseID); !errors.Is(err, ErrNoGuest) {
		t.Errorf("error is %v", err)
	}
	_, embeddedErr := Embedded().guest("amd64")
	if _, err := source(without).Context(agent, "amd64", base, baseID); !errors.Is(err, embeddedErr) {
		t.Errorf("error is %v; the embedded guest's is %v", err, embeddedErr)
	}
}

func TestEmbeddedSource(t *testing.T) {
	// The embedded source must hold a complete context for every agent, dot files and all.
	for _, a := range spec.Agents {
		c := &Context{args: map[string]string{}}
		if err := c.addTree(embedded, "agents/"+a.Name, "agent"); err != nil {
			t.Fatal(err)
		}
		for _, e := range c.entries {
			if strings.HasPrefix(e.path, "agent/bin/") && e.mode != 0o755 {
				t.Errorf("%s: %s has mode %o", a.Name, e.path, e.mode)
			}
		}
		if !slices.ContainsFunc(c.entries, func(e entry) bool { return e.path == "agent/bin/"+a.Executable }) {
			t.Errorf("%s has no agent/bin/%s", a.Name, a.Executable)
		}
	}
}

func TestFromDirectory(t *testing.T) {
	// A checkout must be read anew from its files; what is none must be an error.
	dir := t.TempDir()
	if _, err := FromDirectory(dir); !os.IsNotExist(err) {
		t.Errorf("an empty directory: %v", err)
	}
	write := func(name, content string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("entrypoint/entrypoint.sh", "#!/bin/bash\necho entry\n")
	if _, err := FromDirectory(dir); !os.IsNotExist(err) {
		t.Errorf("a directory without images: %v", err)
	}
	for name, f := range files() {
		write("images/"+name, string(f.Data))
	}
	read := func() *Context {
		s, err := FromDirectory(dir)
		if err != nil {
			t.Fatal(err)
		}
		return build(t, s, "amd64", base, baseID)
	}
	same := build(t, source(files()), "amd64", base, baseID)
	if read().Digest() != same.Digest() {
		t.Error("the same files on disk have another digest")
	}
	write("images/agents/claude/bin/claude", "#!/bin/sh\nexec stub\n")
	if read().Digest() == same.Digest() {
		t.Error("a changed file on disk has the same digest")
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "images/agents/claude/link")); err != nil {
		t.Fatal(err)
	}
	s, err := FromDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Context(agent, "amd64", base, baseID); err == nil || !strings.Contains(err.Error(), "link is not a regular file") {
		t.Errorf("a link in the tree: %v", err)
	}
}
