package runs

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// idAt is the id of a run that began n minutes after noon.
func idAt(n int) string { return spec.NewRecordID(at(n), []byte{0, 0, 0, byte(n)}) }

// lied is when a container says that the host kept its record.
var lied = noon.AddDate(-1, 0, 0)

func at(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }

// open is the record of a run that began n minutes after noon, as a container
// would write it that lies about all that the host knows better.
func open(n int) spec.Record {
	return spec.Record{
		Schema: spec.RecordSchema, ID: idAt(n), Deployment: "lie", Host: "lie", Image: "lie", Engine: &spec.EngineReport{Status: "lie"},
		Agent: "pi", Kind: spec.Headless, StartedAt: at(n), Outcome: "", Disagreement: "lie", KeptAt: &lied,
		Egress: &spec.Refused{Watched: true, Refusals: []spec.Refusal{{Name: "lie"}}},
	}
}

// closed is the same run, ended with code a minute later.
func closed(n, code int) spec.Record {
	r := open(n)
	r.Finish(spec.OutcomeFinished, spec.CauseExit, &code, at(n+1))
	return r
}

func text(t *testing.T, r spec.Record) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// entry is one member of a container's tar.
type entry struct {
	name, content string
	kind          byte // a regular file when 0
}

func file(t *testing.T, r spec.Record) entry {
	return entry{name: "runs/" + r.ID + ".json", content: text(t, r)}
}

func archive(t *testing.T, entries ...entry) *tar.Reader {
	t.Helper()
	return tar.NewReader(bytes.NewReader(archiveBytes(t, entries...)))
}

func archiveBytes(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range append([]entry{{name: "runs/", kind: tar.TypeDir}}, entries...) {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.content)), Mode: 0o600}
		if e.kind == tar.TypeSymlink || e.kind == tar.TypeLink {
			h.Linkname, h.Size, e.content = e.content, 0, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// dead is a container that ended half an hour after noon.
var dead = Container{
	Host: "local", Deployment: "web", Image: "sha256:1", Created: noon,
	Engine: &spec.EngineReport{Status: "exited", ExitCode: 137, OOMKilled: true, FinishedAt: "2026-03-01T12:30:00.5Z"},
}

func alive() Container {
	c := dead
	c.Alive, c.Engine = true, &spec.EngineReport{Status: "running"}
	return c
}

func bring(t *testing.T, s Store, c Container, entries ...entry) Brought {
	t.Helper()
	b, err := s.Bring(archive(t, entries...), c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// stored returns what the store holds of a run.
func stored(t *testing.T, s Store, n int) spec.Record {
	t.Helper()
	r, err := s.get("local", "web", idAt(n))
	if err != nil || r == nil {
		t.Fatalf("run %d: %v, %v", n, r, err)
	}
	return *r
}

func TestBringStampsTheHostsWord(t *testing.T) {
	// Deployment, host, image and engine must be the host's, whatever the container wrote; all else must be kept.
	s := Store{t.TempDir()}
	r := closed(0, 7)
	r.Notes, r.Repository = []string{"a note"}, &spec.Repository{State: "ok", Commits: []string{"c"}}
	b := bring(t, s, dead, file(t, r))
	want := r
	want.Deployment, want.Host, want.Image, want.Engine = "web", "local", "sha256:1", dead.Engine
	want.Disagreement, want.Egress = "the record says exit code 7, the engine 137", nil
	want.KeptAt = stored(t, s, 0).KeptAt
	if want.KeptAt == nil || time.Since(*want.KeptAt) > time.Minute {
		t.Errorf("kept at %v", want.KeptAt)
	}
	if d := cmp.Diff(want, stored(t, s, 0)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Brought{Records: []*spec.Record{&want}, Current: &want}, b); d != "" {
		t.Error(d)
	}
}

func TestBringClosesAsLost(t *testing.T) {
	// An open record of a dead container must be closed as lost at the time at which the engine saw it end.
	s := Store{t.TempDir()}
	bring(t, s, dead, file(t, open(0)))
	got := stored(t, s, 0)
	end := time.Date(2026, 3, 1, 12, 30, 0, 500000000, time.UTC)
	if got.Outcome != spec.OutcomeLost || got.Cause != spec.CauseLost || got.EndedAt == nil || !got.EndedAt.Equal(end) || got.ExitCode != nil || len(got.Notes) != 1 {
		t.Errorf("got %+v, ended at %v", got, got.EndedAt)
	}
}

func TestBringBetweenTwoAttempts(t *testing.T) {
	// An attempt that was read before its end, and the next one after its beginning, must not count as lost: its end is seen the next time. In a dead container it is lost.
	s := Store{t.TempDir()}
	now := time.Now().UTC().Truncate(time.Second)
	attempt := func(n int) spec.Record {
		r := open(n)
		r.StartedAt = now.Add(time.Duration(n) * time.Second)
		r.ID = spec.NewRecordID(r.StartedAt, []byte{0, 0, 0, byte(n)})
		return r
	}
	first, second, code := attempt(1), attempt(2), 7
	get := func() spec.Record {
		t.Helper()
		r, err := s.get("local", "web", first.ID)
		if err != nil || r == nil {
			t.Fatal(r, err)
		}
		return *r
	}
	bring(t, s, alive(), file(t, first), file(t, second))
	if r := get(); r.EndedAt != nil || r.Outcome != "" {
		t.Errorf("it is closed: %+v", r)
	}
	ended := first
	ended.Finish(spec.OutcomeFailed, spec.CauseExit, &code, now)
	bring(t, s, alive(), file(t, ended), file(t, second))
	if r := get(); r.Outcome != spec.OutcomeFailed || r.ExitCode == nil || *r.ExitCode != 7 {
		t.Errorf("its end is not taken: %+v", r)
	}
	s = Store{t.TempDir()}
	bring(t, s, dead, file(t, first), file(t, second))
	if r := get(); r.Outcome != spec.OutcomeLost {
		t.Errorf("of a dead container: %+v", r)
	}
}

func TestBringLeavesOpenWhatRuns(t *testing.T) {
	// Of a living container the newest record must stay open, and an older open one be closed as lost.
	s := Store{t.TempDir()}
	b := bring(t, s, alive(), file(t, open(5)), file(t, closed(2, 0)), file(t, open(0)))
	if old := stored(t, s, 0); old.Outcome != spec.OutcomeLost || old.Engine != nil || !old.EndedAt.After(at(30)) {
		t.Errorf("older: %+v", old)
	}
	if now := stored(t, s, 5); now.EndedAt != nil || now.Outcome != "" || now.Engine.Status != "running" {
		t.Errorf("newest: %+v", now)
	}
	if len(b.Records) != 3 || b.Records[0].ID != idAt(0) || b.Current == nil || b.Current.ID != idAt(5) {
		t.Errorf("records are not oldest first: %v", b.Records)
	}
}

func TestBringKnowsFormerContainers(t *testing.T) {
	// A record that began before the container was made is of a former one: it must be lost although this one lives, and must not get its report.
	s, c := Store{t.TempDir()}, alive()
	c.Created = at(10)
	bring(t, s, c, file(t, open(5)))
	if got := stored(t, s, 5); got.Outcome != spec.OutcomeLost || got.Engine != nil {
		t.Errorf("got %+v", got)
	}
}

func TestBringKeepsTheImage(t *testing.T) {
	// A record must keep the image and the report of the container that ran it, when a later container brings it again.
	s := Store{t.TempDir()}
	bring(t, s, dead, file(t, closed(0, 0)))
	later := alive()
	later.Image, later.Created = "sha256:2", at(40)
	bring(t, s, later, file(t, closed(0, 0)), file(t, open(41)))
	if old := stored(t, s, 0); old.Image != "sha256:1" || cmp.Diff(dead.Engine, old.Engine) != "" {
		t.Errorf("old: %+v", old)
	}
	if now := stored(t, s, 41); now.Image != "sha256:2" {
		t.Errorf("new: %+v", now)
	}
}

func TestBringTwice(t *testing.T) {
	// Bringing the same again must rewrite nothing and change nothing.
	s := Store{t.TempDir()}
	old := time.Unix(1, 0)
	for i := range 2 {
		b := bring(t, s, dead, file(t, open(0)), file(t, closed(2, 0)), file(t, open(4)))
		if len(b.Records) != 3 || len(b.LeftOut) > 0 {
			t.Fatalf("%+v", b)
		}
		for _, n := range []int{0, 2, 4} {
			path := s.path("local", "web", idAt(n))
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if i == 1 && !info.ModTime().Equal(old) {
				t.Errorf("run %d was rewritten", n)
			}
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestLostStaysLost(t *testing.T) {
	// A record closed as lost must stay so with its time, also when the container runs again and has not opened a new one yet.
	s := Store{t.TempDir()}
	bring(t, s, dead, file(t, open(0)))
	want := stored(t, s, 0)
	for about, c := range map[string]Container{"dead": dead, "alive": alive()} {
		c.Image = "sha256:2"
		b := bring(t, s, c, file(t, open(0)))
		if d := cmp.Diff(want, stored(t, s, 0)); d != "" {
			t.Errorf("%s: %s", about, d)
		}
		if d := cmp.Diff(&want, b.Current); d != "" {
			t.Errorf("%s, returned: %s", about, d)
		}
	}
}

func TestBringCompletesAnOpenRecord(t *testing.T) {
	// A record that was brought in open must be replaced by its end.
	s := Store{t.TempDir()}
	bring(t, s, alive(), file(t, open(0)))
	bring(t, s, dead, file(t, closed(0, 3)))
	if got := stored(t, s, 0); got.Outcome != spec.OutcomeFinished || *got.ExitCode != 3 || got.Engine.ExitCode != 137 {
		t.Errorf("got %+v", got)
	}
}

func TestBringIsPrivate(t *testing.T) {
	// Records hold tasks: files must be 0600 and directories 0700.
	s := Store{filepath.Join(t.TempDir(), "runs")}
	bring(t, s, dead, file(t, closed(0, 0)))
	for path, want := range map[string]os.FileMode{s.path("local", "web", idAt(0)): 0o600, s.Dir: 0o700, filepath.Join(s.Dir, "local"): 0o700, filepath.Join(s.Dir, "local", "web"): 0o700} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", path, info.Mode(), want)
		}
	}
}

func TestBringBrokenTar(t *testing.T) {
	// A stream that is no tar, or ends early, must be an error and store nothing of it.
	s := Store{t.TempDir()}
	for _, content := range []string{strings.Repeat("x", 1024), strings.Repeat("runs/", 50)} {
		if b, err := s.Bring(tar.NewReader(strings.NewReader(content)), dead); err == nil || len(b.Records) > 0 {
			t.Errorf("%+v, %v", b, err)
		}
	}
	if b, err := s.Bring(tar.NewReader(strings.NewReader("")), dead); err != nil || len(b.Records)+len(b.LeftOut) > 0 {
		t.Errorf("empty: %+v, %v", b, err)
	}
}

func TestBringStoresWhatCameBeforeTheEnd(t *testing.T) {
	// When the stream is cut, the records before must be stored and the error returned.
	s := Store{t.TempDir()}
	content, cut := archiveBytes(t, file(t, closed(0, 0))), errors.New("cut")
	content = content[:len(content)-1024] // without the two blocks that end a tar
	b, err := s.Bring(tar.NewReader(io.MultiReader(bytes.NewReader(content), iotest.ErrReader(cut))), dead)
	if !errors.Is(err, cut) || len(b.Records) != 1 || stored(t, s, 0).Outcome != spec.OutcomeFinished {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestBringIsBrief(t *testing.T) {
	// However many files are no records, only a few may be told of, and good ones must come in.
	s := Store{t.TempDir()}
	var entries []entry
	for i := range 500 {
		entries = append(entries, entry{name: fmt.Sprintf("runs/0%d.json", i)})
	}
	b := bring(t, s, dead, append(entries, file(t, closed(0, 0)))...)
	if len(b.LeftOut) != maxReasons+1 || b.LeftOut[maxReasons] != "and more" || len(b.Records) != 1 {
		t.Errorf("%d reasons, %d records", len(b.LeftOut), len(b.Records))
	}
}

func TestFormerRunsCannotBeChanged(t *testing.T) {
	// A record of a former container that is closed on the host must stay as it is, and must not pass for this container's.
	s := Store{t.TempDir()}
	bring(t, s, dead, file(t, closed(0, 3)))
	want := stored(t, s, 0)
	next := dead
	next.Created, next.Image = at(40), "sha256:2"
	b := bring(t, s, next, file(t, closed(0, 0)))
	if d := cmp.Diff(want, stored(t, s, 0)); d != "" || b.Current != nil {
		t.Errorf("current %v; %s", b.Current, d)
	}
}

func TestCurrentAmongAttemptsOfOneSecond(t *testing.T) {
	// Of attempts within one second the one that began last must be the current run, whatever its id.
	var entries []entry
	for i := range 4 {
		r := closed(0, i)
		r.StartedAt = at(0).Add(time.Duration(i) * time.Millisecond)
		r.ID = spec.NewRecordID(r.StartedAt, []byte{byte(3 - i), 0, 0, 0})
		entries = append(entries, file(t, r))
	}
	if b := bring(t, Store{t.TempDir()}, dead, entries...); b.Current == nil || *b.Current.ExitCode != 3 {
		t.Errorf("current is %+v", b.Current)
	}
}

func TestRecordFromTheFuture(t *testing.T) {
	// A record that says it began far in the future, of a clock that was wrong or of an agent that lies, must not stand in for the runs after it.
	s := Store{t.TempDir()}
	ahead := closed(0, 0)
	ahead.StartedAt = noon.AddDate(50, 0, 0)
	ahead.ID = spec.NewRecordID(ahead.StartedAt, []byte{1, 2, 3, 4})
	newest := entry{name: "runs/" + spec.FileCurrent, content: idAt(5)}
	b := bring(t, s, alive(), file(t, ahead), file(t, open(5)), newest)
	if b.Current == nil || b.Current.ID != idAt(5) || b.Current.EndedAt != nil {
		t.Fatalf("the run that goes on is %+v", b.Current)
	}
	// A run that began while the directory was read is named, and not there yet.
	begun := entry{name: "runs/" + spec.FileCurrent, content: idAt(6)}
	if b := bring(t, s, alive(), file(t, ahead), file(t, open(5)), begun); b.Current == nil || b.Current.ID != idAt(5) || b.Current.EndedAt != nil {
		t.Fatalf("the run that went on while another began is %+v", b.Current)
	}
	done := dead
	done.Engine = &spec.EngineReport{Status: "exited"}
	b = bring(t, s, done, file(t, ahead), file(t, closed(5, 0)), newest)
	if b.Current == nil || b.Current.ID != idAt(5) || b.Current.Outcome != spec.OutcomeFinished {
		t.Errorf("the run that ended is %+v", b.Current)
	}
	if got, err := s.get("local", "web", ahead.ID); err != nil || got.Engine != nil {
		t.Errorf("the record from the future got the engine's word: %+v, %v", got, err)
	}
}

func TestEgressIsTheHosts(t *testing.T) {
	// What a gateway refused must be what the host has kept, however often the container's own word comes in.
	s := Store{t.TempDir()}
	b := bring(t, s, dead, file(t, closed(1, 0)))
	if b.Current.Egress != nil || stored(t, s, 1).Egress != nil {
		t.Error("the container's word was taken")
	}
	kept := &spec.Refused{Enforcement: spec.Strict, Watched: true, Refusals: []spec.Refusal{{Name: "evil.test", Stage: spec.StageDNS, Count: 2}}}
	if err := s.KeepEgress(b.Current, kept); err != nil {
		t.Fatal(err)
	}
	for _, again := range []Brought{bring(t, s, dead, file(t, closed(1, 0))), bring(t, s, dead, file(t, closed(1, 0)), file(t, closed(2, 0)))} {
		if d := cmp.Diff(kept, again.Records[0].Egress); d != "" {
			t.Error(d)
		}
	}
	if d := cmp.Diff(kept, stored(t, s, 1).Egress); d != "" {
		t.Error(d)
	}
}
