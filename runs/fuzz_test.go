package runs

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func FuzzBring(f *testing.F) {
	// Whatever a container hands out as its records, only files of records may be written, in the deployment's own directory, they must be readable again, and reasons be few and printable.
	record := `{"schema":"agent-container/run/v1","id":"` + idAt(1) + `","agent":"pi","kind":"headless","started_at":"2026-03-01T12:01:00Z","ended_at":null,"outcome":"","exit_code":null}`
	for _, entries := range [][]entry{
		{{name: "runs/" + idAt(1) + ".json", content: record}},
		{{name: "../../" + idAt(1) + ".json", content: record}, {name: "runs/" + idAt(1) + ".json", content: record}},
		{{name: "runs/" + idAt(1) + ".json", content: record}, {name: "runs/" + idAt(1) + spec.OutputSuffix, content: "\x1b[2J"}, {name: "/etc/" + idAt(1) + spec.DiffSuffix, content: "+a"}},
		{{"runs/" + idAt(1) + ".json", "/etc/passwd", tar.TypeSymlink}, {"runs/x.json", "", tar.TypeChar}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range entries {
			h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.content)), Mode: 0o600}
			if e.kind == tar.TypeSymlink {
				h.Linkname, h.Size, e.content = e.content, 0, ""
			}
			if err := w.WriteHeader(h); err != nil {
				f.Fatal(err)
			}
			if _, err := w.Write([]byte(e.content)); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), true)
		f.Add(b.Bytes()[:b.Len()-700], false)
	}
	f.Fuzz(func(t *testing.T, archive []byte, alive bool) {
		dir := t.TempDir()
		s := Store{filepath.Join(dir, "data", "runs")}
		c := dead
		if alive {
			c.Alive = true
		}
		b, err := s.Bring(tar.NewReader(bytes.NewReader(archive)), c)
		if err != nil {
			b.LeftOut = append(b.LeftOut, err.Error())
		}
		checkLines(t, "", b.LeftOut)
		if len(b.LeftOut) > maxReasons+2 {
			t.Errorf("%d reasons", len(b.LeftOut))
		}
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			id, suffix, _ := strings.Cut(d.Name(), ".")
			known := suffix == "json" || "."+suffix == spec.OutputSuffix || "."+suffix == spec.DiffSuffix
			if filepath.Dir(path) != filepath.Join(s.Dir, "local", "web") || !spec.ValidRecordID(id) || !known || !d.Type().IsRegular() {
				t.Errorf("%s was written", path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		l, err := s.List("web")
		if err != nil || len(l.Unreadable) > 0 {
			t.Errorf("what was brought in cannot be read: %q, %v", l.Unreadable, err)
		}
		for _, r := range l.Records {
			if r.Host != "local" || r.Deployment != "web" || r.EndedAt == nil && !alive {
				t.Errorf("a record says %+v", r)
			}
		}
	})
}
