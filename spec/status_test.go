package spec

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestStatusRoundTrip(t *testing.T) {
	// A status must be one line that reads back as the same status.
	for line, s := range map[string]Status{
		"starting seed":           {State: Starting, Phase: "seed"},
		"starting git identity":   {State: Starting, Phase: "git identity"},
		"ready":                   {State: Ready},
		"ready: it is empty":      {State: Ready, Reason: "it is empty"},
		"pending ssh-key":         {State: Pending, Phase: PhaseSSHKey},
		"failed seed: no space":   {State: Failed, Phase: "seed", Reason: "no space"},
		"failed seed: a: b: c":    {State: Failed, Phase: "seed", Reason: "a: b: c"},
		"failed agent: é \"q\" $": {State: Failed, Phase: "agent", Reason: `é "q" $`},
	} {
		if s.String() != line {
			t.Errorf("%+v is written %q, want %q", s, s.String(), line)
		}
		got, err := ParseStatus(line + "\n")
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if d := cmp.Diff(s, got); d != "" {
			t.Errorf("%q: %s", line, d)
		}
	}
}

func TestStatusReasonIsOneLine(t *testing.T) {
	// A reason of several lines must be written as one, because the reader reads one line.
	s := Status{State: Failed, Phase: "seed", Reason: "first\n\tsecond\r\n  third "}
	if want := "failed seed: first second third"; s.String() != want {
		t.Errorf("got %q, want %q", s.String(), want)
	}
}

func TestParseStatusRefuses(t *testing.T) {
	// What is not a status must be an error that is safe to print, never a state.
	for _, line := range []string{
		"", " ", "starting", "starting ", "failed", "failed ", "failed seed", "failed seed:no", "Ready", "ready now", "readyx", "done",
		"pending", "pending ", "pending x", "ready:", "\x1b[2J", "\x00", "ready\x00", "\xff", strings.Repeat("x", 1<<20),
	} {
		s, err := ParseStatus(line)
		if err == nil {
			t.Errorf("ParseStatus(%.40q) = %+v, want an error", line, s)
		} else if len(err.Error()) > 200 || strings.ContainsFunc(err.Error(), obeyed) {
			t.Errorf("ParseStatus(%.40q): unsafe error %.300q", line, err)
		}
	}
}

func TestParseStatusHostile(t *testing.T) {
	// A status from a container must not steer a terminal or fill a screen.
	got, err := ParseStatus("failed se\x1b]0;x\aed: \x1b[31mred\u009b2J\u2028" + strings.Repeat("é", 4000))
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(got.Phase+got.Reason, obeyed) || len(got.Reason) > 1000+len("…") {
		t.Errorf("unsafe: %.100q, %d bytes", got, len(got.Reason))
	}
	if want := "se ]0;x ed"; got.Phase != want {
		t.Errorf("phase %q, want %q", got.Phase, want)
	}
}

func TestPrintable(t *testing.T) {
	// Printable must replace every control character, repair the encoding, and cut at the limit without splitting a character.
	for _, row := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 10, ""},
		{"plain é 🙂", 100, "plain é 🙂"},
		{"a\tb\nc\rd", 100, "a b c d"},
		{"\x1b[2J\x07\x7f\u0085\u009b", 100, " [2J    "},
		{"a\u2028b\u2029c\u00a0d", 100, "a b c\u00a0d"},
		{"\xff\xfeok", 100, "\uFFFDok"},
		{"12345", 5, "12345"},
		{"123456", 5, "12345…"},
		{"1234é", 5, "1234…"},
		{"x", 0, "…"},
	} {
		if got := Printable(row.text, row.limit); got != row.want {
			t.Errorf("Printable(%q, %d) = %q, want %q", row.text, row.limit, got, row.want)
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	// Whatever a container writes must be an error or one of three states, printable, bounded and valid UTF-8.
	for _, s := range []string{"ready", "starting seed", "failed seed: no space", "failed : ", "starting \x1b[2J", "failed \xff: \u2028", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, err := ParseStatus(line)
		text := s.Phase + s.Reason
		if err != nil {
			if s != (Status{}) {
				t.Errorf("%q: %v and a status %+v", line, err, s)
			}
			text = err.Error()
		} else if s.State != Ready && s.State != Starting && s.State != Failed {
			t.Errorf("%q: state %q", line, s.State)
		}
		again, againErr := ParseStatus(s.String())
		if err == nil && strings.TrimSpace(s.Phase) != "" && (s.State == Starting || strings.TrimSpace(s.Reason) != "") && (againErr != nil || again.State != s.State) {
			t.Errorf("%q: %+v reads as %+v, %v when it is written out", line, s, again, againErr)
		}
		if strings.ContainsFunc(text, obeyed) || !utf8.ValidString(text) || len(text) > 1200 {
			t.Errorf("%q: unsafe text %q", line, text)
		}
	})
}
