package runs

import (
	"archive/tar"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

func TestBringLeavesOut(t *testing.T) {
	// What is not a record must be left out, named with the reason on one printable line, and must not stop the good ones.
	id, good := idAt(1), text(t, closed(1, 0))
	for about, row := range map[string]struct {
		e      entry
		reason string
	}{
		"wrong schema":      {entry{name: "runs/" + id + ".json", content: strings.Replace(good, "run/v1", "run/v9", 1)}, `schema "agent-container/run/v9" is not "agent-container/run/v1"`},
		"schema of escape":  {entry{name: "runs/" + id + ".json", content: `{"schema":"\u001b[2J\u009b"}`}, `schema " [2J "`},
		"id is not name":    {entry{name: "runs/" + idAt(2) + ".json", content: good}, idAt(2) + ".json: its id is not its name"},
		"no id":             {entry{name: "runs/notes.json", content: good}, "notes.json: its name is not a record id"},
		"dots":              {entry{name: "runs/..json", content: good}, "..json: its name is not a record id"},
		"escape in name":    {entry{name: "runs/\x1b]0;x\a.json", content: good}, " ]0;x .json: its name is not a record id"},
		"long name":         {entry{name: "runs/" + strings.Repeat("n", 5000) + ".json", content: good}, "…: its name is not a record id"},
		"lower case":        {entry{name: "runs/" + strings.ToLower(id) + ".json", content: good}, "its name is not a record id"},
		"symlink":           {entry{"runs/" + id + ".json", "/etc/passwd", tar.TypeSymlink}, "not a regular file"},
		"hard link":         {entry{"runs/" + id + ".json", "runs/other", tar.TypeLink}, "not a regular file"},
		"fifo":              {entry{"runs/" + id + ".json", "", tar.TypeFifo}, "not a regular file"},
		"device":            {entry{"runs/" + id + ".json", "", tar.TypeChar}, "not a regular file"},
		"empty":             {entry{name: "runs/" + id + ".json"}, "not a record in JSON"},
		"garbage":           {entry{name: "runs/" + id + ".json", content: "\x00\xff{"}, "not a record in JSON"},
		"cut short":         {entry{name: "runs/" + id + ".json", content: good[:len(good)/2]}, "not a record in JSON"},
		"two documents":     {entry{name: "runs/" + id + ".json", content: good + good}, "not a record in JSON"},
		"a list":            {entry{name: "runs/" + id + ".json", content: "[" + good + "]"}, "not a record in JSON"},
		"null":              {entry{name: "runs/" + id + ".json", content: "null"}, `schema "" is not`},
		"wrong type":        {entry{name: "runs/" + id + ".json", content: strings.Replace(good, `"task_bytes":0`, `"task_bytes":"0"`, 1)}, "not a record in JSON"},
		"huge number":       {entry{name: "runs/" + id + ".json", content: strings.Replace(good, `"task_bytes":0`, `"task_bytes":1e99`, 1)}, "not a record in JSON"},
		"no time":           {entry{name: "runs/" + id + ".json", content: strings.Replace(good, "2026-03-01T12:01", "99999-03-01T12:01", 1)}, "not a record in JSON"},
		"outcome of escape": {entry{name: "runs/" + id + ".json", content: strings.Replace(good, `"outcome":"finished"`, `"outcome":"\u001b]0;x\u0007"`, 1)}, "not a known word"},
		"oversize":          {entry{name: "runs/" + id + ".json", content: good + strings.Repeat(" ", spec.MaxRecordBytes)}, "larger than 8388608 bytes"},
	} {
		s := Store{filepath.Join(t.TempDir(), "store")}
		b := bring(t, s, dead, row.e, file(t, closed(9, 0)))
		if len(b.LeftOut) != 1 || !strings.Contains(b.LeftOut[0], row.reason) {
			t.Errorf("%s: left out %.300q, want %q", about, b.LeftOut, row.reason)
		}
		if len(b.Records) != 1 || b.Current == nil || b.Current.ID != idAt(9) {
			t.Errorf("%s: records %v", about, b.Records)
		}
		checkLines(t, about, b.LeftOut)
		onlyFile(t, s, idAt(9)+".json")
	}
}

// checkLines requires lines that are safe to print.
func checkLines(t *testing.T, about string, lines []string) {
	t.Helper()
	for _, line := range lines {
		if len(line) > 500 || strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("%s: unsafe reason %.600q", about, line)
		}
	}
}

// onlyFile requires that name of the deployment is the one file of the store.
func onlyFile(t *testing.T, s Store, name string) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(filepath.Dir(s.Dir), func(path string, d fs.DirEntry, err error) error {
		if !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, s.Dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"/local/web/" + name}, files); d != "" {
		t.Errorf("files: %s", d)
	}
}

func TestBringSkipsSilently(t *testing.T) {
	// Directories and files that are being written are not worth a word.
	s := Store{t.TempDir()}
	b := bring(t, s, dead, entry{name: "runs/" + idAt(1) + ".json.tmp", content: "{"}, entry{name: "runs/.tmp123", content: "x"}, entry{"runs/x.json/", "", tar.TypeDir}, file(t, closed(9, 0)))
	if len(b.LeftOut) > 0 || len(b.Records) != 1 {
		t.Errorf("%+v", b)
	}
}

func TestBringPathTraversal(t *testing.T) {
	// Where a tar says a record lies must not matter: it is stored in its deployment's directory or not at all.
	for _, dir := range []string{"../../../", "/etc/", "runs/../../", "", "./", "runs/deep/er/", `..\`} {
		s := Store{filepath.Join(t.TempDir(), "store")}
		b := bring(t, s, dead, entry{name: dir + idAt(3) + ".json", content: text(t, closed(3, 0))}, file(t, closed(9, 0)))
		if dir == `..\` {
			if len(b.LeftOut) != 1 {
				t.Errorf("%s: %+v", dir, b)
			}
			continue
		}
		if deep := strings.Count(filepath.Clean(dir+"x"), "/") > 1; deep { // nothing of ours is there
			if len(b.Records) != 1 {
				t.Errorf("%s: %+v", dir, b)
			}
			onlyFile(t, s, idAt(9)+".json")
			continue
		}
		if len(b.Records) != 2 {
			t.Errorf("%s: %+v", dir, b)
		}
		if err := os.Remove(s.path("local", "web", idAt(3))); err != nil {
			t.Error(err)
		}
		onlyFile(t, s, idAt(9)+".json")
	}
}

func TestBringControlCharacters(t *testing.T) {
	// A record that holds control characters must come in, and its file must hold none that a terminal would obey.
	s := Store{t.TempDir()}
	r := closed(0, 0)
	task := "\x1b]0;title\a\x00 \r\n"
	r.Task, r.Agent, r.Notes = &task, "\x1b[2J", []string{"\x7f\x1b\u009b31m\u202e"}
	bring(t, s, dead, file(t, r))
	if got := stored(t, s, 0); *got.Task != task || got.Agent != r.Agent || got.Notes[0] != r.Notes[0] {
		t.Errorf("task %q, agent %q", *got.Task, got.Agent)
	}
	content, err := os.ReadFile(s.path("local", "web", idAt(0)))
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(string(content), func(r rune) bool {
		return r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u202e'
	}); i >= 0 {
		t.Errorf("control character in %q", content[i:])
	}
}

func TestBringOverAnUnreadableFile(t *testing.T) {
	// A file of the host that is no record of this version must be kept as it is, and the record be left out with its path.
	s := Store{t.TempDir()}
	path := s.path("local", "web", idAt(0))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := bring(t, s, dead, file(t, closed(0, 0)), file(t, closed(1, 0)))
	if len(b.LeftOut) != 1 || !strings.Contains(b.LeftOut[0], path) || len(b.Records) != 1 {
		t.Errorf("%+v", b)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "{}" {
		t.Errorf("%q, %v", content, err)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	// Arbitrary bytes must be refused on one printable line, or be a record of that id that can be stored and read back the same.
	task := "t"
	full := closed(1, 7)
	full.Task, full.Repository, full.Notes = &task, &spec.Repository{State: "ok"}, []string{"n"}
	b, err := json.Marshal(full)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	for _, s := range []string{"", "{}", "null", "[]", `{"schema":"agent-container/run/v1","id":"` + idAt(1) + `","started_at":"0000-01-01T00:00:00+23:59"}`, `{"schema":"\u001b"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		r, err := decode(content, idAt(1))
		if err != nil {
			checkLines(t, "", []string{err.Error()})
			return
		}
		s := Store{t.TempDir()}
		r.Host, r.Deployment = "local", "web"
		if _, err := s.put(r); err != nil {
			t.Fatal(err)
		}
		again, err := s.get("local", "web", idAt(1))
		if err != nil {
			t.Fatal(err)
		}
		if wrote, err := s.put(again); wrote || err != nil {
			t.Errorf("what was read back is not what was stored: %v, %v", err, cmp.Diff(r, again))
		}
	})
}
