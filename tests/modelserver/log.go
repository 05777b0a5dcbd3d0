package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// loggedText is how many bytes of a text a line on stdout carries. A task may
// be a megabyte; the whole of it is in GET /requests.
const loggedText = 200

// record is what is kept of one request. Credentials are noted as present or
// absent and never by value.
type record struct {
	Time          time.Time `json:"time"`
	Method        string    `json:"method"`
	Path          string    `json:"path"`
	UserAgent     string    `json:"user_agent"`
	API           string    `json:"api"`
	Model         string    `json:"model"`
	Stream        bool      `json:"stream"`
	Authorization bool      `json:"authorization"`
	APIKey        bool      `json:"api_key"`
	Tools         []string  `json:"tools"`
	ToolResults   int       `json:"tool_results"`
	Answer        string    `json:"answer"`
	TextLength    int       `json:"text_length"`
	TextSHA256    string    `json:"text_sha256"`
	Text          string    `json:"text"`
}

// newRecord describes r and, for a model request, what it asked. conv is the
// zero value for other requests.
func newRecord(r *http.Request, conv conversation, answerKind string) record {
	tools := []string{}
	for _, t := range conv.Tools {
		tools = append(tools, t.Name)
	}
	sum := sha256.Sum256([]byte(conv.Text))
	return record{
		Time:          time.Now().UTC(),
		Method:        r.Method,
		Path:          r.URL.Path,
		UserAgent:     r.UserAgent(),
		API:           conv.API,
		Model:         conv.Model,
		Stream:        conv.Stream,
		Authorization: r.Header.Get("Authorization") != "",
		APIKey:        r.Header.Get("X-Api-Key") != "",
		Tools:         tools,
		ToolResults:   conv.ToolResults,
		Answer:        answerKind,
		TextLength:    len(conv.Text),
		TextSHA256:    hex.EncodeToString(sum[:]),
		Text:          conv.Text,
	}
}

// requestLog keeps every request for GET /requests and writes each one as a
// JSON line: to lines with the text cut short, to full (if set) with all of it.
type requestLog struct {
	mu      sync.Mutex
	records []record
	lines   io.Writer
	full    io.Writer
}

// add records a request. It is called before the answer is sent, so that a
// request that is never answered can be asserted on too.
func (l *requestLog) add(rec record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, rec)
	if l.full != nil {
		writeJSONLine(l.full, rec)
	}
	rec.Text = cut(rec.Text, loggedText)
	writeJSONLine(l.lines, rec)
}

// all returns a copy of the requests so far, oldest first, never nil.
func (l *requestLog) all() []record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]record{}, l.records...)
}

// writeJSONLine writes v without HTML escapes, which would make the logged
// text hard to read. An unwritable log must not change what an agent sees.
func writeJSONLine(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v)
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n])
}
