package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// envelopeSchema names the JSON contract. Adding a field or an error code does
// not change it; renaming or removing one does.
const envelopeSchema = "agent-container/v1"

// envelope is the one JSON document that a command prints with --json.
type envelope struct {
	Schema string         `json:"schema"`
	OK     bool           `json:"ok"` // agrees with the exit status
	Data   any            `json:"data,omitempty"`
	Error  *envelopeError `json:"error,omitempty"`
}

type envelopeError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// texter is data that knows its form for people.
type texter interface{ text(w io.Writer) }

// answer prints what a command returned.
func (a *app) answer(data any) error {
	if a.json {
		if data == nil {
			data = struct{}{}
		}
		return a.writeJSON(envelope{Schema: envelopeSchema, OK: true, Data: data})
	}
	if t, ok := data.(texter); ok {
		var b bytes.Buffer
		t.text(&b)
		_, err := a.out.Write(b.Bytes())
		return err
	}
	return nil
}

// report prints an error, if any, and returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitDone
	}
	f := asFailure(err)
	if a.json {
		name := f.name
		if name == "" {
			name = codeName(f.code)
		}
		e := envelope{Schema: envelopeSchema, Data: f.data, Error: &envelopeError{name, f.message, f.hint}}
		if f.code == exitDone {
			e.OK, e.Error = true, nil
		}
		if err := a.writeJSON(e); err != nil {
			a.say("error: %v", err)
		}
		return f.code
	}
	if !f.quiet {
		a.say("error: %s", oneLine(f.message))
		if f.hint != "" {
			a.say("hint: %s", f.hint)
		}
	}
	return f.code
}

func (a *app) writeJSON(e envelope) error {
	b, err := encodeJSON(e, "")
	if err != nil {
		return err
	}
	_, err = a.out.Write(b)
	return err
}

// encodeJSON renders v for a terminal: "<" and "&" readable, nothing that would
// steer it.
func encodeJSON(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return spec.EscapeJSON(b.Bytes()), err
}

// oneLine keeps an error on one line, whatever a child said.
func oneLine(text string) string {
	return strings.Join(strings.Fields(text), " ")
}

// table prints rows under a header, in columns.
func table(w io.Writer, header []string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(header, "\t"))
	for _, r := range rows {
		for i, cell := range r {
			if cell == "" {
				r[i] = "-"
			}
		}
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
}

// ago renders a time in a sentence: "3h ago" on a terminal, absolute in a pipe, ""
// for none.
func ago(at *time.Time, now time.Time, terminal bool) string {
	if at == nil {
		return ""
	}
	text := age(*at, now, terminal)
	if text != "" && terminal {
		text += " ago"
	}
	return text
}

// age renders a time: relative on a terminal, absolute in a pipe.
func age(at, now time.Time, terminal bool) string {
	if at.IsZero() || at.Year() <= 1 {
		return ""
	}
	if !terminal {
		return at.UTC().Format(time.RFC3339)
	}
	d := max(now.Sub(at), 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
