package runs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fill stores one record of each deployment and minute.
func fill(t *testing.T, s Store, host, deployment string, minutes ...int) {
	t.Helper()
	for _, n := range minutes {
		r := closed(n, 0)
		r.Host, r.Deployment = host, deployment
		if wrote, err := s.put(&r); !wrote || err != nil {
			t.Fatal(wrote, err)
		}
	}
}

func ids(l Listing) []string {
	var list []string
	for _, r := range l.Records {
		list = append(list, r.Deployment+" "+r.ID)
	}
	return list
}

func TestList(t *testing.T) {
	// List must give the records of one deployment, or of all, on every host, newest first by their start.
	s := Store{t.TempDir()}
	fill(t, s, "local", "web", 3, 1)
	fill(t, s, "remote", "web", 2)
	fill(t, s, "local", "api", 5, 0)
	late := closed(4, 0)
	late.Host, late.Deployment, late.StartedAt = "local", "api", noon.Add(24*time.Hour)
	if _, err := s.put(&late); err != nil {
		t.Fatal(err)
	}
	for deployment, want := range map[string][]string{
		"web": {"web " + idAt(3), "web " + idAt(2), "web " + idAt(1)},
		"":    {"api " + idAt(4), "api " + idAt(5), "web " + idAt(3), "web " + idAt(2), "web " + idAt(1), "api " + idAt(0)},
		"we":  nil,
	} {
		l, err := s.List(deployment)
		if err != nil || len(l.Unreadable) > 0 {
			t.Fatal(l.Unreadable, err)
		}
		if d := cmp.Diff(want, ids(l)); d != "" {
			t.Errorf("%q: %s", deployment, d)
		}
	}
}

func TestListSameStart(t *testing.T) {
	// Records of the same start must be in a fixed order, the greater id first.
	s := Store{t.TempDir()}
	for _, n := range []int{1, 3, 2} {
		r := closed(n, 0)
		r.Host, r.Deployment, r.StartedAt = "local", "web", noon
		if _, err := s.put(&r); err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.List("web")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"web " + idAt(3), "web " + idAt(2), "web " + idAt(1)}, ids(l)); d != "" {
		t.Error(d)
	}
}

func TestListNothing(t *testing.T) {
	// A store that does not exist yet must list nothing, without an error.
	l, err := Store{filepath.Join(t.TempDir(), "absent")}.List("")
	if err != nil || len(l.Records)+len(l.Unreadable) > 0 {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestListReportsUnreadable(t *testing.T) {
	// A file that holds no record must be reported by its path, kept, and must not hide the others.
	s := Store{t.TempDir()}
	fill(t, s, "local", "web", 1)
	dir := filepath.Join(s.Dir, "local", "web")
	for name, content := range map[string]string{idAt(2) + ".json": "garbage", idAt(3) + ".json": text(t, closed(1, 0)), "notes.json": "{}", "README": "not looked at"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, idAt(4)+".json"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := s.List("web")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"web " + idAt(1)}, ids(l)); d != "" {
		t.Error(d)
	}
	all := strings.Join(l.Unreadable, "\n")
	for _, want := range []string{idAt(2) + ".json: not a record in JSON", idAt(3) + ".json: its id is not its name", idAt(4) + ".json: not a regular file", "notes.json: its name is not a record id"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in:\n%s", want, all)
		}
	}
	if len(l.Unreadable) != 4 || !strings.Contains(all, dir) {
		t.Errorf("unreadable:\n%s", all)
	}
}

func TestFind(t *testing.T) {
	// A record must be found by its id or by a beginning that only it has; else the error must say whether there is none or which.
	s := Store{t.TempDir()}
	fill(t, s, "local", "web", 1, 2)
	fill(t, s, "local", "api", 70)
	for prefix, want := range map[string]struct {
		id      string
		matches []string
	}{
		idAt(1):             {idAt(1), nil},
		idAt(1)[:24]:        {idAt(1), nil},
		"20260301T1310":     {idAt(70), nil},
		"20260301T12":       {"", []string{idAt(2), idAt(1)}},
		"2026":              {"", []string{idAt(70), idAt(2), idAt(1)}},
		"2027":              {},
		"":                  {},
		idAt(1) + "0":       {},
		"../web/" + idAt(1): {},
		"*":                 {},
	} {
		r, err := s.Find(prefix)
		if want.id != "" {
			if err != nil || r.ID != want.id {
				t.Errorf("Find(%q) = %v, %v; want %s", prefix, r, err, want.id)
			}
			continue
		}
		var e *NotFoundError
		if !errors.As(err, &e) || r != nil {
			t.Fatalf("Find(%q) = %v, %v", prefix, r, err)
		}
		if d := cmp.Diff(want.matches, e.Matches); d != "" {
			t.Errorf("Find(%q): %s", prefix, d)
		}
	}
	if got := (&NotFoundError{ID: "x"}).Error(); got != "no run x" {
		t.Error(got)
	}
	if got := (&NotFoundError{"2", []string{"2a", "2b"}}).Error(); got != "run 2 is not unique: 2a, 2b" {
		t.Error(got)
	}
}

func TestPut(t *testing.T) {
	// A record must be written when it is new or differs, readable as it was, and not otherwise.
	s := Store{t.TempDir()}
	r := closed(0, 1)
	r.Host, r.Deployment = "local", "web"
	for i, want := range []bool{true, false, true, false} {
		if i == 2 {
			r.Notes = []string{"<more> & é"}
		}
		wrote, err := s.put(&r)
		if err != nil || wrote != want {
			t.Errorf("put %d: wrote %v, %v; want %v", i, wrote, err, want)
		}
		if d := cmp.Diff(r, stored(t, s, 0)); d != "" {
			t.Errorf("put %d: %s", i, d)
		}
	}
}

func TestGetAbsent(t *testing.T) {
	// A record that is not there must be nil without an error.
	if r, err := (Store{t.TempDir()}).get("local", "web", idAt(0)); r != nil || err != nil {
		t.Errorf("%v, %v", r, err)
	}
}

func TestRemove(t *testing.T) {
	// Remove must delete the records of one deployment on one host only.
	s := Store{t.TempDir()}
	fill(t, s, "local", "web", 1, 2)
	fill(t, s, "local", "web2", 3)
	fill(t, s, "remote", "web", 4)
	for range 2 {
		if err := s.Remove("local", "web"); err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.List("")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"web " + idAt(4), "web2 " + idAt(3)}, ids(l)); d != "" {
		t.Error(d)
	}
}
