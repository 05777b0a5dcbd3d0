package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

const journalLine = `{"time":"2026-03-01T12:00:00Z","verdict":"denied","stage":"dns","name":"a.test"}` + "\n"

func readAllJournal(text string, left int64) (*journalReader, []spec.Decision, error) {
	var got []spec.Decision
	r := &journalReader{left: left, each: func(d spec.Decision) error { got = append(got, d); return nil }}
	buffer := make([]byte, 7)
	var err error
	for in := strings.NewReader(text); err == nil && in.Len() > 0; {
		n, _ := in.Read(buffer)
		_, err = r.Write(buffer[:n])
	}
	return r, got, err
}

// A journal must be read whole in whatever parts it comes; a line that is too
// long or no decision be counted and passed over; one that has not ended wait.
func TestJournalReader(t *testing.T) {
	long := strings.Replace(journalLine, "a.test", strings.Repeat("a", maxJournalLine), 1)
	r, got, err := readAllJournal(journalLine+"nonsense\n"+long+"\n"+journalLine+strings.TrimSuffix(journalLine, "\n"), maxJournal)
	if err != nil || len(got) != 2 || r.unreadable != 3 || got[1].Name != "a.test" {
		t.Errorf("%d decisions, %d unreadable, %v", len(got), r.unreadable, err)
	}
	if len(r.line) > maxJournalLine {
		t.Errorf("%d bytes of a line are kept", len(r.line))
	}
}

// More than the bound must not be read, and be an error.
func TestJournalReaderIsBounded(t *testing.T) {
	_, got, err := readAllJournal(strings.Repeat(journalLine, 10), int64(3*len(journalLine)))
	if !errors.Is(err, engine.ErrTooMuch) || len(got) > 3 {
		t.Errorf("%d decisions, %v", len(got), err)
	}
}

// FuzzJournalReader: whatever a gateway's output is and however it is cut, the
// same must be read from it, every line be a decision or counted, and memory
// bounded.
func FuzzJournalReader(f *testing.F) {
	f.Add([]byte(journalLine+"\n\x1b[2J\n"+journalLine), 3)
	f.Add([]byte(strings.Repeat("x", 2*maxJournalLine)+"\n"+journalLine), 1000)
	f.Fuzz(func(t *testing.T, text []byte, at int) {
		read := func(parts ...[]byte) (int, int) {
			n := 0
			r := &journalReader{left: maxJournal, each: func(spec.Decision) error { n++; return nil }}
			for _, p := range parts {
				if _, err := r.Write(p); err != nil {
					t.Fatal(err)
				}
			}
			if len(r.line) > maxJournalLine {
				t.Errorf("%d bytes are kept", len(r.line))
			}
			return n, r.unreadable
		}
		at = max(min(at, len(text)), 0)
		whole, unreadable := read(text)
		if cut, cutUnreadable := read(text[:at], text[at:]); cut != whole || cutUnreadable != unreadable {
			t.Errorf("%d and %d whole, %d and %d cut", whole, unreadable, cut, cutUnreadable)
		}
		if n := bytes.Count(text, []byte("\n")); whole+unreadable != n {
			t.Errorf("%d decisions and %d others in %d lines", whole, unreadable, n)
		}
	})
}

// What is printed must be one line a decision, and a reader that has gone be
// noticed.
func TestJournalPrinter(t *testing.T) {
	text := journalLine +
		`{"time":"2026-03-01T12:00:01Z","verdict":"allowed","stage":"open","name":"b.test","port":443,"rule":"b.test:443"}` + "\n" +
		`{"time":"2026-03-01T12:00:02Z","verdict":"denied","stage":"address","address":"198.51.100.1","port":22,"reason":"not\u001b[2J\ndeclared"}` + "\n" +
		`{"time":"2026-03-01T12:00:03Z","verdict":"denied","stage":"journal","left_out":17}` + "\n"
	var plain, asJSON bytes.Buffer
	for w, isJSON := range map[*bytes.Buffer]bool{&plain: false, &asJSON: true} {
		if _, err := newJournalPrinter(w, isJSON).Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	want := `2026-03-01T12:00:00Z denied dns a.test
2026-03-01T12:00:01Z allowed open b.test port 443 by b.test:443
2026-03-01T12:00:02Z denied address 198.51.100.1 port 22: not [2J declared
2026-03-01T12:00:03Z 17 lines were left out here: there were too many
`
	if plain.String() != want {
		t.Errorf("%s", plain.String())
	}
	if strings.Count(asJSON.String(), "\n") != 4 || strings.ContainsRune(asJSON.String(), '\x1b') || !strings.HasPrefix(asJSON.String(), `{"time":"2026-03-01T12:00:00Z","verdict":"denied",`) {
		t.Errorf("%s", asJSON.String())
	}
	p := newJournalPrinter(brokenPipe{}, false)
	if _, err := p.Write([]byte(journalLine)); !errors.Is(err, syscall.EPIPE) || !errors.Is(p.failed, syscall.EPIPE) {
		t.Errorf("%v, %v", err, p.failed)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, fmt.Errorf("write: %w", syscall.EPIPE) }

// The runs of a container must divide its life among them without a gap, whatever
// they say of themselves; those of a former container have no part in it.
func TestSpansOf(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(1000+n), 0).UTC() }
	run := func(id string, n int) *spec.Record { return &spec.Record{ID: id, StartedAt: at(n)} }
	c := &engine.Container{Created: at(0)}
	spans := spansOf(c, []*spec.Record{run("former", -5), run("first", 10), run("second", 20)})
	if len(spans) != 2 {
		t.Fatalf("%d spans", len(spans))
	}
	for n, want := range map[int]string{-1: "", 0: "first", 9: "first", 15: "first", 19: "first", 20: "second", 1000: "second"} {
		got := ""
		for _, s := range spans {
			if s.has(at(n)) {
				got += s.record.ID
			}
		}
		if got != want {
			t.Errorf("second %d is of %q, want %q", n, got, want)
		}
	}
}
