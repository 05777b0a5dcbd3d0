package spec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// obeyed reports whether a terminal may obey r. It is said here once more, by
// Unicode's own tables, so that the sanitisers do not check themselves.
func obeyed(r rune) bool {
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// hostile are texts that steer a terminal, break a line, or are no text.
var hostile = []string{
	"plain", "ünïcode 日本 🙂", "\x1b[2J\x1b]0;title\a", "\u009b31m", "\x9b31m", "\xc2", "\x7f\x00", "\r\n\t", "\u202etxt.exe", "\u2066\u061c\u200f",
	"\u2028\u2029\u0085", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\ufffd", "\ufeff", "", "e\u0301\u200d",
}

func FuzzPrintable(f *testing.F) {
	// Whatever a container says must come out bounded, valid UTF-8 and without a character that a terminal obeys; harmless text that fits must stay as it is.
	for _, s := range hostile {
		f.Add(s, uint16(len(s)))
		f.Add(s, uint16(1))
	}
	f.Fuzz(func(t *testing.T, text string, limit uint16) {
		got := Printable(text, int(limit))
		if len(got) > int(limit)+len("…") || !utf8.ValidString(got) || strings.ContainsFunc(got, obeyed) {
			t.Errorf("Printable(%q, %d) = %q", text, limit, got)
		}
		if again := Printable(got, len(got)); again != got {
			t.Errorf("%q becomes %q the second time", got, again)
		}
		if len(text) <= int(limit) && utf8.ValidString(text) && !strings.ContainsFunc(text, obeyed) && got != text {
			t.Errorf("harmless %q became %q", text, got)
		}
	})
}

func FuzzPrintableText(f *testing.F) {
	// Whatever a job wrote must come out valid UTF-8, with the lines it had and without a character that a terminal obeys but line feed and tab; harmless text must stay as it is.
	for _, s := range hostile {
		f.Add(s)
		f.Add("a\n\t" + s + "\r\n\r" + s + "\n")
	}
	unsafe := func(r rune) bool { return obeyed(r) && r != '\n' && r != '\t' }
	f.Fuzz(func(t *testing.T, text string) {
		got := PrintableText(text)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unsafe) || strings.Count(got, "\n") != strings.Count(text, "\n") || len(got) > 3*len(text) {
			t.Errorf("PrintableText(%q) = %q", text, got)
		}
		if again := PrintableText(got); again != got {
			t.Errorf("%q becomes %q the second time", got, again)
		}
		if utf8.ValidString(text) && !strings.ContainsFunc(text, unsafe) && got != text {
			t.Errorf("harmless %q became %q", text, got)
		}
	})
}

func FuzzEscapeJSON(f *testing.F) {
	// Any bytes must come out as UTF-8 without a character that a terminal obeys but white space; a JSON document must mean what it meant.
	for _, s := range hostile {
		f.Add([]byte(s))
		f.Add([]byte(`{"k` + s + `": ["` + s + `", 1.50, null]}`))
		quoted, _ := json.Marshal([]string{s}) // a string always marshals
		f.Add(quoted)
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		before := bytes.Clone(document)
		got := EscapeJSON(document)
		if !bytes.Equal(document, before) {
			t.Fatalf("%q was changed in place", before)
		}
		// C0 controls are encoding/json's to escape: it leaves none in a string.
		if i := bytes.IndexFunc(got, func(r rune) bool { return r >= 0x20 && obeyed(r) }); i >= 0 || !utf8.Valid(got) || len(got) > 6*len(document) {
			t.Errorf("%q gives %q", document, got)
		}
		if again := EscapeJSON(got); !bytes.Equal(again, got) {
			t.Errorf("%q becomes %q the second time", got, again)
		}
		want, err := meaning(document)
		if err != nil {
			return
		}
		if bytes.ContainsFunc(got, func(r rune) bool { return obeyed(r) && !strings.ContainsRune(" \t\r\n", r) }) {
			t.Errorf("%q steers a terminal", got)
		}
		if have, err := meaning(got); err != nil || !reflect.DeepEqual(want, have) {
			t.Errorf("%q means %v, %q means %v, %v", document, want, got, have, err)
		}
	})
}

func meaning(document []byte) (value any, err error) {
	dec := json.NewDecoder(bytes.NewReader(document))
	dec.UseNumber()
	if !json.Valid(document) {
		return nil, &json.SyntaxError{}
	}
	err = dec.Decode(&value)
	return value, err
}

func FuzzParseDuration(f *testing.F) {
	// A time limit must be refused on one printable line, or lie within its bounds and read the same when it is written as text and as JSON.
	for _, s := range []string{"90s", "1h30m", "720h", "720h0m0.1s", "1s", "0.9s", "999999999ns", "-5m", "90", "1e3s", "1.5h", ".5m", "9223372036854775807ns", "2562047h48m", "1µs", "\x1bs", "\u202e1s", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			if line := err.Error(); line != Printable(line, len(line)) || d != 0 {
				t.Errorf("%q: %d and the refusal %q", text, d, line)
			}
			return
		}
		if d < minDuration || d > maxDuration {
			t.Errorf("%q was accepted as %s", text, d)
		}
		if again, err := ParseDuration(d.String()); again != d || err != nil {
			t.Errorf("%q is %s, which reads as %s, %v", text, d, again, err)
		}
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back Duration
		if err := json.Unmarshal(b, &back); back != d || err != nil {
			t.Errorf("%q is %s in JSON, which reads as %s, %v", text, b, back, err)
		}
	})
}

func FuzzParseRestart(f *testing.F) {
	// A restart policy must be refused on one printable line, or be written as it was typed, come back from JSON, and never resurrect a finished job.
	for _, s := range []string{"no", "on-failure", "on-failure:3", "on-failure:0", "on-failure:-1", "on-failure:+1", "on-failure:99999999999999999999", "always", "unless-stopped", "on-failure:\x1b", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRestart(text)
		if err != nil {
			if line := err.Error(); line != Printable(line, len(line)) || r != (Restart{}) {
				t.Errorf("%q: %+v and the refusal %q", text, r, line)
			}
			return
		}
		if word, _, _ := strings.Cut(text, ":"); r.String() != text || word != "no" && word != "on-failure" || r.Max < 0 || r.Max > 1000 || r.Attempts() < 0 {
			t.Errorf("%q became the policy %q: %+v", text, r, r)
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back Restart
		if err := json.Unmarshal(b, &back); back != r || err != nil {
			t.Errorf("%q is %s in JSON, which reads as %s, %v", text, b, back, err)
		}
	})
}
