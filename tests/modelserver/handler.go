package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// maxBody bounds a request. The largest task of the tests is a megabyte.
const maxBody = 64 << 20

// object is a JSON object to be sent.
type object map[string]any

// api is one of the two APIs.
type api struct {
	parse   func(body []byte) (conversation, error)
	stream  func(*eventWriter, conversation, answer)
	whole   func(conversation, answer) any
	failure func(status int, message string) any
}

var (
	anthropicAPI = api{parseAnthropic, anthropicStream, anthropicWhole, anthropicFailure}
	responsesAPI = api{parseResponses, responsesStream, responsesWhole, responsesFailure}
)

// handler serves both APIs, what agents probe, and what tests assert on.
type handler struct {
	log      *requestLog
	director *director
}

// newHandler returns the server. Every request is logged except the tests' own
// (GET /healthz and GET /requests).
func newHandler(log *requestLog) http.Handler {
	h := &handler{log: log, director: &director{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, object{"status": "ok"})
	})
	mux.HandleFunc("GET /requests", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, log.all())
	})
	mux.HandleFunc("POST /v1/messages", h.model(anthropicAPI))
	mux.HandleFunc("POST /v1/messages/count_tokens", h.countTokens)
	mux.HandleFunc("POST /v1/responses", h.model(responsesAPI))
	mux.HandleFunc("GET /v1/models", h.models)
	mux.HandleFunc("HEAD /{$}", h.hello)
	mux.HandleFunc("HEAD /api/hello", h.hello)
	mux.HandleFunc("/", h.notFound)
	return mux
}

// model serves a model request of one of the APIs.
func (h *handler) model(api api) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conv, ok := h.read(w, r, api)
		if !ok {
			return
		}
		a := h.director.decide(conv)
		h.log.add(newRecord(r, conv, a.logged()))
		switch {
		case a.Kind == "hang":
			<-r.Context().Done()
		case a.Kind == "fail":
			writeJSON(w, a.Status, api.failure(a.Status, a.Text))
		case conv.Stream:
			api.stream(newEventWriter(w, r), conv, a)
		default:
			time.Sleep(a.Delay * time.Duration(max(a.Chunks-1, 0)))
			writeJSON(w, http.StatusOK, api.whole(conv, a))
		}
	}
}

// read parses a request, or answers it with the API's error and reports false.
func (h *handler) read(w http.ResponseWriter, r *http.Request, api api) (conversation, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil && r.Header.Get("Content-Encoding") != "" {
		err = fmt.Errorf("content encoding %s is not understood", r.Header.Get("Content-Encoding"))
	}
	var conv conversation
	if err == nil {
		conv, err = api.parse(body)
	}
	if err != nil {
		h.log.add(newRecord(r, conv, "bad-request"))
		writeJSON(w, http.StatusBadRequest, api.failure(http.StatusBadRequest, "modelserver: "+err.Error()))
		return conv, false
	}
	return conv, true
}

// countTokens answers with a guess of four bytes to a token, which is all that
// agents use it for.
func (h *handler) countTokens(w http.ResponseWriter, r *http.Request) {
	conv, ok := h.read(w, r, anthropicAPI)
	if !ok {
		return
	}
	h.log.add(newRecord(r, conv, "count-tokens"))
	writeJSON(w, http.StatusOK, object{"input_tokens": len(conv.Text)/4 + 1})
}

// models answers with one model, in fields of both APIs. Agents use it to look
// a model up and go on without the answer.
func (h *handler) models(w http.ResponseWriter, r *http.Request) {
	h.log.add(newRecord(r, conversation{}, "models"))
	writeJSON(w, http.StatusOK, object{
		"object": "list", "has_more": false,
		"data": []any{object{
			"id": "modelserver", "object": "model", "type": "model", "display_name": "modelserver",
			"owned_by": "modelserver", "created": 0, "created_at": "2025-01-01T00:00:00Z",
		}},
	})
}

// hello answers the connectivity probes.
func (h *handler) hello(w http.ResponseWriter, r *http.Request) {
	h.log.add(newRecord(r, conversation{}, "hello"))
	w.WriteHeader(http.StatusOK)
}

// notFound answers everything else, so that an agent which asks for something
// new shows up in the log.
func (h *handler) notFound(w http.ResponseWriter, r *http.Request) {
	h.log.add(newRecord(r, conversation{}, "not-found"))
	message := "modelserver: no such endpoint: " + r.Method + " " + r.URL.Path
	writeJSON(w, http.StatusNotFound, anthropicFailure(http.StatusNotFound, message))
}

// logged is the answer as the log tells it, such as "tool:Bash" or "fail:529".
func (a answer) logged() string {
	switch {
	case a.Call != nil:
		return a.Kind + ":" + a.Call.Tool.Name
	case a.Status != 0:
		return fmt.Sprintf("%s:%d", a.Kind, a.Status)
	}
	return a.Kind
}

// whole is the text of an answer in one piece.
func (a answer) whole() string { return strings.Join(a.chunks(), "") }

// eventWriter sends server-sent events.
type eventWriter struct {
	ctx context.Context
	w   http.ResponseWriter
	n   int
}

func newEventWriter(w http.ResponseWriter, r *http.Request) *eventWriter {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	return &eventWriter{ctx: r.Context(), w: w}
}

// send sends one event at once. Both APIs repeat its name as the type in the
// data; the Responses API numbers the events as well, and the other allows it.
func (e *eventWriter) send(name string, data object) {
	data["type"] = name
	if strings.HasPrefix(name, "response.") {
		data["sequence_number"] = e.n
	}
	e.n++
	fmt.Fprintf(e.w, "event: %s\ndata: %s\n\n", name, jsonValue(data))
	_ = http.NewResponseController(e.w).Flush()
}

// pace sends the chunks of a text with the answer's delay between them. It
// stops when the client has gone; what is sent afterwards goes nowhere.
func (e *eventWriter) pace(a answer, send func(chunk string)) {
	for i, chunk := range a.chunks() {
		if i > 0 {
			select {
			case <-time.After(a.Delay):
			case <-e.ctx.Done():
				return
			}
		}
		send(chunk)
	}
}

// writeJSON answers with v. A client that has gone is of no interest.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// newID returns an id that is unlike any other: agents take two calls of the
// same id for one.
func newID(prefix string) string {
	random := make([]byte, 12)
	_, _ = rand.Read(random)
	return prefix + hex.EncodeToString(random)
}
