package cli

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

// obeyed reports whether a terminal may obey r.
func obeyed(r rune) bool {
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// anyEnvironment is an environment of NAME=VALUE lines, as far as they may be
// one: what set refuses is left out, on one printable line that is no secret.
func anyEnvironment(t *testing.T, lines string) environment {
	t.Helper()
	env := environment{}
	for _, line := range strings.Split(lines, "\n") {
		name, value, _ := strings.Cut(line, "=")
		if err := env.set("--env", name, value); err != nil {
			if _, taken := env[name]; taken && !strings.ContainsRune(value, 0) {
				t.Errorf("%q was refused and taken: %v", line, err)
			}
			if text := asFailure(err).message; strings.ContainsFunc(text, obeyed) || !utf8.ValidString(text) || len(text) > 1000+4*len(name) {
				t.Errorf("%q: unsafe refusal %q", line, text)
			}
		}
	}
	return env
}

func FuzzFill(f *testing.F) {
	// Whatever is filled must come out of the tar byte for byte, in regular files and directories of the agent's own user below our two directories, each once.
	f.Add([]byte("--version\n$HOME \xff 🦊"), "A=1\nB=x=\xff", []byte("pem"), "settings.json", []byte("{}"), "Ada")
	f.Add([]byte(nil), "", []byte(nil), "deep/er/run", []byte("#!"), "")
	f.Add([]byte{}, "AGENT_CONTAINER_X=1\n1A=2\nA=\x00", []byte("\x00"), strings.Repeat("long/", 60)+"é\xff\n\x1b", bytes.Repeat([]byte{0}, 513), "\xff")
	f.Add([]byte("x"), "PATH=", []byte("x"), "../../etc/passwd", []byte("x"), "a\nb")
	f.Add([]byte("x"), "A=1", []byte("x"), "task", []byte("x"), "")
	f.Fuzz(func(t *testing.T, task []byte, lines string, ca []byte, name string, content []byte, git string) {
		want := fill{task: task, env: anyEnvironment(t, lines), ca: ca, job: spec.Job{RecordTask: len(task)%2 == 0, GitName: git}}
		dir := t.TempDir()
		at := filepath.Join(dir, "config", filepath.Join("/", name)) // nobody's configuration is elsewhere
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, content, 0o640)); err != nil {
			return // no file system has such a name
		}
		var err error
		if want.config, err = readConfig(filepath.Join(dir, "config")); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(want.write(w), w.Close()); err != nil {
			t.Fatalf("a file called %q cannot be filled: %v", name, err)
		}
		got := contents(t, &b)
		below := func(parts ...string) string {
			return strings.TrimPrefix(path.Join(append([]string{spec.ContainerRunDir}, parts...)...), "/")
		}
		files := map[string]string{
			strings.TrimPrefix(path.Join(spec.ContainerSecretsDir, spec.FillEnvironment), "/"): string(want.env.encode()),
			below(spec.FillConfig, filepath.Join("/", name)):                                   string(content),
		}
		undelivered := strings.TrimPrefix(path.Join(spec.ContainerSecretsDir, spec.FillUndelivered), "/")
		files[undelivered] = ""
		if task != nil {
			files[below(spec.FillTask)], files[undelivered] = string(task), string(task)+"\x00"
		}
		if ca != nil {
			files[below(spec.FillCA)] = string(ca)
		}
		var job spec.Job
		if err := json.Unmarshal([]byte(got[below(spec.FillJob)]), &job); err != nil || utf8.ValidString(git) && !cmp.Equal(job, want.job) {
			t.Errorf("the job is %q, %v", got[below(spec.FillJob)], err)
		}
		delete(got, below(spec.FillJob))
		if !maps.Equal(got, files) {
			t.Errorf("filled %q, want %q", got, files)
		}
	})
}

// contents reads a fill to its very end, holds each entry against what a fill
// may be, and returns the files' contents.
func contents(t *testing.T, b *bytes.Buffer) map[string]string {
	t.Helper()
	files, dirs := map[string]string{}, map[string]bool{"run": true, strings.TrimPrefix(spec.ContainerSecretsDir, "/"): true}
	for r := tar.NewReader(b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(h.Name, "/")
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, again := files[name]
		switch {
		case h.Uid != spec.ContainerUID || h.Gid != spec.ContainerUID || h.Linkname != "" || h.Mode&^0o700 != 0:
			t.Errorf("%q belongs to %d:%d, mode %o, links to %q", h.Name, h.Uid, h.Gid, h.Mode, h.Linkname)
		case path.IsAbs(name) || path.Clean(name) != name || slices.Contains(strings.Split(name, "/"), ".."):
			t.Errorf("%q is not a place below", h.Name)
		case !dirs[path.Dir(name)]:
			t.Errorf("%q comes before its directory", h.Name)
		case again || dirs[name]:
			t.Errorf("%q is there twice", h.Name)
		case h.Typeflag == tar.TypeDir && strings.HasPrefix("/"+name+"/", spec.ContainerRunDir+"/") && len(content) == 0:
			dirs[name] = true
		case h.Typeflag == tar.TypeReg && (strings.HasPrefix("/"+name, spec.ContainerRunDir+"/") || strings.HasPrefix("/"+name, spec.ContainerSecretsDir+"/")):
			files[name] = string(content)
		default:
			t.Errorf("%q of type %c may not be filled", h.Name, h.Typeflag)
		}
	}
	if b.Len() > 0 {
		t.Errorf("%d bytes follow the end of the tar", b.Len())
	}
	return files
}

// entriesOf reads what encode wrote by the words of spec.FillEnvironment alone:
// entries that each end with NUL, and one more NUL. It returns nil for half a
// file.
func entriesOf(content []byte) environment {
	rest, whole := strings.CutSuffix("\x00"+string(content), "\x00\x00")
	if !whole {
		return nil
	}
	env := environment{}
	for _, entry := range strings.Split(rest, "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return env
}

func FuzzEnvironment(f *testing.F) {
	// Any environment must come back from what is written of it, and nothing from a part of that.
	for _, s := range []string{"A=1\nB=2", "A=", "A=x\ty=\"z\"\xff", "_=\n__=\r", "", "A=\nA=2", "PATH=/bin\nHOME=\x1b[2J"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		env := anyEnvironment(t, lines)
		whole := env.encode()
		if got := entriesOf(whole); got == nil || !maps.Equal(got, env) {
			t.Fatalf("%q is written as %q, which is %q", env, whole, got)
		}
		for n := range whole {
			if tail := whole[max(0, n-2):n]; string(tail) == "\x00\x00" || n == 1 && string(tail) == "\x00" {
				t.Fatalf("%d of the %d bytes %q pass for a whole file", n, len(whole), whole)
			}
		}
	})
}

func FuzzFilledEnvironment(f *testing.F) {
	// What a container hands out as its environment must be read entry for entry when it is whole, and be nothing when it is not.
	engine := copyingEngine(f)
	for _, s := range []string{"A=1\x00B=2\x00\x00", "\x00", "", "A=1\x00", "A=1", "=\x00\x00", "A\x00\x00", "A=1\x00\x00B=2\x00\x00", "A=1\x00A=\xff\n\x00\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if got := engine.environment(t, content); !maps.Equal(got, entriesOf(content)) {
			t.Errorf("%q gives %q", content, got)
		}
	})
}

// copying is an engine whose "cp CONTAINER:PATH -" gives a file's tar.
type copying struct {
	*engine.Engine
	tar string
}

func copyingEngine(f *testing.F) copying {
	f.Helper()
	dir := f.TempDir()
	c := copying{tar: filepath.Join(dir, "tar")}
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in version) echo '{\"Server\":{\"Version\":\"26.1.5\"}}' ;; cp) exec cat %q ;; esac\n", c.tar)
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o700); err != nil {
		f.Fatal(err)
	}
	f.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	c.Engine = engine.New(&process.Runner{})
	return c
}

// environment is what the CLI reads of a container whose file has this content.
func (c copying) environment(t *testing.T, content []byte) environment {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h := &tar.Header{Typeflag: tar.TypeReg, Name: spec.FillEnvironment, Mode: 0o600, Size: int64(len(content))}
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	_, err := w.Write(content)
	if err := errors.Join(err, w.Close(), os.WriteFile(c.tar, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	env, err := filledEnvironment(t.Context(), c.Engine, "web")
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func FuzzBuildProgress(f *testing.F) {
	// Whatever a builder prints, in whatever pieces, must be shown as whole lines that steer no terminal, and be kept within bounds.
	f.Add([]byte("#4 [base 1/3] FROM x\n#5 [base 2/3] RUN set -eu\r\n#5 0.4 hello\n"), uint8(1))
	f.Add([]byte("#4 [a 1/1] \x1b]0;x\a\u009b31m\xff\u202e\n\n\n#4 [a 1/1] y"), uint8(7))
	f.Add([]byte("#4 [a 1/1] "+strings.Repeat("x", 300)), uint8(200))
	f.Fuzz(func(t *testing.T, output []byte, size uint8) {
		var out bytes.Buffer
		p := newBuildProgress(&out, false)
		for rest := output; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			if written, err := p.Write(rest[:n]); written != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", written, n, err)
			}
			rest = rest[n:]
		}
		p.finish()
		for line := range strings.Lines(out.String()) {
			text, whole := strings.CutSuffix(line, "\n")
			if !whole || !strings.HasPrefix(text, "agent-container: build: [") || strings.ContainsFunc(text, obeyed) || !utf8.ValidString(text) || len(text) > 110 {
				t.Errorf("%q shows %q", output, line)
			}
		}
		if len(p.last()) > keptLines {
			t.Errorf("%d lines are kept", len(p.last()))
		}
		for _, line := range p.last() {
			if strings.Contains(line, "\n") || !bytes.Contains(output, []byte(line)) {
				t.Errorf("%q was never printed", line)
			}
		}
	})
}
