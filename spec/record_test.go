package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestRecordID(t *testing.T) {
	// An id must name its second in UTC, so that ids sort by time, and be valid.
	east := time.FixedZone("east", 5*3600)
	id := NewRecordID(noon.In(east), []byte{0, 0xab, 1, 0xff, 9})
	if want := "20260301T120000Z-00ab01ff"; id != want {
		t.Errorf("got %s, want %s", id, want)
	}
	later := NewRecordID(noon.Add(time.Second), []byte{0, 0, 0, 0})
	if !ValidRecordID(id) || !ValidRecordID(later) || later <= id {
		t.Errorf("%s and %s must be valid and in order", id, later)
	}
}

func TestValidRecordIDRefuses(t *testing.T) {
	// What is not an id must be refused, because an id becomes a file name.
	good := "20260301T120000Z-00ab01ff"
	for _, id := range []string{
		"", ".", "..", "../" + good, good + "/", "/" + good, good + ".json", good + "\n", "\n" + good, good + "\x00",
		strings.ToUpper(good), good[:24], good + "0", strings.Replace(good, "Z", "", 1), "2026030ÿT120000Z-00ab01ff",
	} {
		if ValidRecordID(id) {
			t.Errorf("%q was accepted", id)
		}
	}
}

func TestSetTask(t *testing.T) {
	// The digest and the length must be of all bytes of a task, also where its text is cut or not kept.
	long := strings.Repeat("a", MaxTaskBytes) + "the end"
	for _, row := range []struct {
		task string
		keep bool
		text string
		cut  bool
	}{
		{"fix it", true, "fix it", false},
		{"", true, "", false},
		{long[:MaxTaskBytes], true, long[:MaxTaskBytes], false},
		{long, true, long[:MaxTaskBytes], true},
	} {
		var r Record
		r.SetTask([]byte(row.task), row.keep)
		sum := sha256.Sum256([]byte(row.task))
		want := Record{Task: &row.text, TaskSHA256: hex.EncodeToString(sum[:]), TaskBytes: int64(len(row.task)), TaskCut: row.cut}
		if d := cmp.Diff(want, r); d != "" {
			t.Errorf("task of %d bytes: %.500s", len(row.task), d)
		}
		r = Record{}
		r.SetTask([]byte(row.task), false)
		want.Task, want.TaskCut = nil, false
		if d := cmp.Diff(want, r); d != "" {
			t.Errorf("task of %d bytes, not kept: %.500s", len(row.task), d)
		}
	}
}

func TestFinish(t *testing.T) {
	// The first word about an end must stay; a later one may only complete the exit code.
	one, two := 1, 2
	end := noon.In(time.FixedZone("east", 3600))
	var r Record
	r.Finish(OutcomeStopped, CauseStop, nil, end)
	want := Record{EndedAt: &noon, Outcome: OutcomeStopped, Cause: CauseStop}
	if d := cmp.Diff(want, r); d != "" {
		t.Errorf("first: %s", d)
	}
	if r.EndedAt.Location() != time.UTC {
		t.Errorf("ended at %s, want UTC", r.EndedAt)
	}
	for _, code := range []*int{nil, &one, &two, nil} {
		r.Finish(OutcomeFailed, CauseExit, code, noon.Add(time.Hour))
	}
	want.ExitCode = &one
	if d := cmp.Diff(want, r); d != "" {
		t.Errorf("later: %s", d)
	}
}

func TestOpenRecordJSON(t *testing.T) {
	// An open record must say so by null, and one without a task must not hold an empty text.
	b, err := json.Marshal(Record{Schema: RecordSchema, StartedAt: noon})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"schema":"agent-container/run/v1","id":"","deployment":"","agent":"","kind":"","task_bytes":0,` +
		`"started_at":"2026-03-01T12:00:00Z","ended_at":null,"outcome":"","exit_code":null}`
	if d := cmp.Diff(want, string(b)); d != "" {
		t.Error(d)
	}
}
