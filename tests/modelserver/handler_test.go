package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// start serves for one test; lines receives the log of stdout.
func start(t *testing.T) (url string, lines *bytes.Buffer) {
	t.Helper()
	lines = &bytes.Buffer{}
	srv := httptest.NewServer(newHandler(&requestLog{lines: lines}))
	t.Cleanup(srv.Close)
	return srv.URL, lines
}

// post sends a body with credentials and returns the status and the answer.
func post(t *testing.T, url string, body any) (int, string) {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(jsonValue(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer secret-a")
	req.Header.Set("X-Api-Key", "secret-b")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// messagesRequest is shaped as claude shapes it: reminders around the task.
func messagesRequest(task string, stream bool, results ...string) object {
	text := func(s string) object { return object{"type": "text", "text": s} }
	messages := []any{
		object{"role": "user", "content": []any{text("<system-reminder>\nmodel: say wrong\n</system-reminder>"), text(task)}},
		object{"role": "system", "content": "model: say wrong"},
	}
	for _, id := range results {
		messages = append(messages,
			object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": id, "name": "Bash", "input": object{}}}},
			object{"role": "user", "content": []any{
				object{"type": "tool_result", "tool_use_id": id, "content": "model: say wrong"},
				text("<system-reminder>be brief</system-reminder>"),
			}})
	}
	return object{"model": "m", "stream": stream, "messages": messages, "tools": []any{object{
		"name": "Bash", "input_schema": object{"properties": object{"command": object{"type": "string"}}}}}}
}

// responsesRequestOf is shaped as codex shapes it: the environment before the task.
func responsesRequestOf(task string, stream bool, results ...string) object {
	message := func(role, s string) object {
		return object{"type": "message", "role": role, "content": []any{object{"type": "input_text", "text": s}}}
	}
	input := []any{
		message("developer", "model: say wrong"),
		message("user", "<environment_context>model: say wrong</environment_context>"),
		message("user", task),
	}
	for _, id := range results {
		input = append(input,
			object{"type": "custom_tool_call", "call_id": id, "name": "apply_patch", "input": "x"},
			object{"type": "custom_tool_call_output", "call_id": id, "output": "ok"},
			object{"type": "custom_tool_call_output", "call_id": id, "output": "a second output of the call"})
	}
	return object{"model": "m", "stream": stream, "input": input, "tools": []any{
		object{"type": "custom", "name": "apply_patch"}, object{"type": "web_search"},
		object{"type": "namespace", "name": "ns", "tools": []any{object{
			"type": "function", "name": "exec_command", "parameters": object{"properties": object{"cmd": object{"type": "string"}}}}}},
	}}
}

// event is one server-sent event.
type event struct {
	name string
	data map[string]any
}

// events splits a stream and checks that each event names itself in its data.
func events(t *testing.T, stream string) []event {
	t.Helper()
	var out []event
	for frame := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, data, ok := strings.Cut(strings.TrimPrefix(frame, "event: "), "\ndata: ")
		e := event{name: name}
		if err := json.Unmarshal([]byte(data), &e.data); !ok || err != nil || e.data["type"] != name {
			t.Fatalf("bad event %q: %v", frame, err)
		}
		out = append(out, e)
	}
	return out
}

func names(list []event) string {
	var out []string
	for _, e := range list {
		out = append(out, e.name)
	}
	return strings.Join(out, " ")
}

// A streamed Messages answer must have the events of the real API, in its order.
func TestAnthropicStream(t *testing.T) {
	url, _ := start(t)
	const task = "do\nmodel: tokens 7 3\nmodel: run ls\nmodel: say bye"
	const want = "message_start content_block_start content_block_delta content_block_stop message_delta message_stop"

	_, stream := post(t, url+"/v1/messages", messagesRequest(task, true))
	call := events(t, stream)
	if got := names(call); got != want {
		t.Fatalf("events %s", got)
	}
	block := call[1].data["content_block"].(map[string]any)
	delta := call[2].data["delta"].(map[string]any)
	if block["type"] != "tool_use" || block["name"] != "Bash" || delta["partial_json"] != `{"command":"ls"}` {
		t.Errorf("call %v %v", block, delta)
	}
	if end := jsonValue(call[4].data); !strings.Contains(end, `"stop_reason":"tool_use"`) || !strings.Contains(end, `"output_tokens":3`) {
		t.Errorf("end %s", end)
	}

	_, stream = post(t, url+"/v1/messages", messagesRequest(task, true, "c1"))
	text := events(t, stream)
	if got := jsonValue(text[2].data); names(text) != want || !strings.Contains(got, `"text":"bye"`) {
		t.Errorf("text %s", got)
	}
}

// A streamed Responses answer must have the events of the real API, in its order.
func TestResponsesStream(t *testing.T) {
	url, _ := start(t)
	const task = "model: write /f x\nmodel: run ls\nmodel: say bye"
	const open, end = "response.created response.in_progress response.output_item.added ", " response.output_item.done response.completed"
	tests := []struct {
		results     []string
		want, field string
	}{
		{nil, "response.custom_tool_call_input.delta response.custom_tool_call_input.done", `"input":"*** Begin Patch\n*** Add File: /f\n+x\n`},
		{[]string{"c1"}, "response.function_call_arguments.delta response.function_call_arguments.done", `"namespace":"ns"`},
		{[]string{"c1", "c2"}, "response.content_part.added response.output_text.delta response.output_text.done response.content_part.done", `"text":"bye"`},
	}
	for _, tt := range tests {
		_, stream := post(t, url+"/v1/responses", responsesRequestOf(task, true, tt.results...))
		list := events(t, stream)
		if got := names(list); got != open+tt.want+end {
			t.Errorf("after %d results: events %s", len(tt.results), got)
			continue
		}
		done := list[len(list)-2].data["item"]
		output := list[len(list)-1].data["response"].(map[string]any)["output"].([]any)
		if item := jsonValue(done); !strings.Contains(item, tt.field) || jsonValue(output[0]) != item {
			t.Errorf("after %d results: item %s, output %s", len(tt.results), item, jsonValue(output))
		}
	}
}

// An answer that is not streamed must carry the same as a streamed one.
func TestWholeAnswers(t *testing.T) {
	url, _ := start(t)
	for path, body := range map[string]object{
		"/v1/messages":  messagesRequest("model: tokens 7 3\nmodel: slow 2 1ms", false),
		"/v1/responses": responsesRequestOf("model: tokens 7 3\nmodel: slow 2 1ms", false),
	} {
		status, got := post(t, url+path, body)
		if status != 200 || !strings.Contains(got, `"text":"chunk 1 of 2\nchunk 2 of 2\n"`) || !strings.Contains(got, `"input_tokens":7`) {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
}

// A slow answer must come in as many pieces as told, with the delay between them.
func TestSlow(t *testing.T) {
	url, _ := start(t)
	begin := time.Now()
	_, stream := post(t, url+"/v1/messages", messagesRequest("model: slow 3 20ms", true))
	if n := strings.Count(names(events(t, stream)), "content_block_delta"); n != 3 {
		t.Errorf("%d pieces", n)
	}
	if took := time.Since(begin); took < 40*time.Millisecond {
		t.Errorf("took %s", took)
	}
}

// A scripted failure, and an endpoint that does not exist, must have the API's error shape.
func TestErrorShapes(t *testing.T) {
	url, _ := start(t)
	tests := []struct {
		path   string
		body   object
		status int
		want   string
	}{
		{"/v1/messages", messagesRequest("model: fail 529", true), 529, `"type":"overloaded_error"`},
		{"/v1/messages", messagesRequest("model: fail 401", true), 401, `"type":"authentication_error"`},
		{"/v1/responses", responsesRequestOf("model: fail 401", true), 401, `"code":"invalid_api_key"`},
		{"/v1/responses", responsesRequestOf("model: fail 500", true), 500, `"code":"server_error"`},
		{"/v1/messages", object{"messages": 1}, 400, `"type":"invalid_request_error"`},
		{"/v1/elsewhere", object{}, 404, `"type":"not_found_error"`},
	}
	for _, tt := range tests {
		if status, got := post(t, url+tt.path, tt.body); status != tt.status || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.path, status, got, tt.status, tt.want)
		}
	}
}

// A request that is told to hang must be logged, and must end when the client goes.
func TestHang(t *testing.T) {
	url, _ := start(t)
	client := &http.Client{Timeout: 100 * time.Millisecond}
	body := jsonValue(messagesRequest("model: hang", true))
	if resp, err := client.Post(url+"/v1/messages", "application/json", strings.NewReader(body)); err == nil {
		t.Errorf("answered %s", resp.Status)
	}
	if got := requests(t, url); len(got) != 1 || got[0].Answer != "hang" {
		t.Errorf("requests %+v", got)
	}
}

func requests(t *testing.T, url string) []record {
	t.Helper()
	resp, err := http.Get(url + "/requests")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out []record
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A task must come back from GET /requests byte for byte, however large, and no credential with it.
func TestRequests(t *testing.T) {
	url, lines := start(t)
	task := " \r\n" + strings.Repeat("é<&>\t\"\\漢\n", 1<<16) + "\n\n"
	post(t, url+"/v1/messages", messagesRequest(task, true))
	post(t, url+"/v1/responses", responsesRequestOf(task, true))
	sum := sha256.Sum256([]byte(task))
	got := requests(t, url)
	if len(got) != 2 {
		t.Fatalf("%d requests", len(got))
	}
	for _, r := range got {
		if r.Text != task || r.TextSHA256 != hex.EncodeToString(sum[:]) || r.TextLength != len(task) {
			t.Errorf("%s: %d bytes, want %d", r.API, r.TextLength, len(task))
		}
		if !r.Authorization || !r.APIKey || !r.Stream || r.Model != "m" {
			t.Errorf("%s: %+v", r.API, r)
		}
	}
	if n := strings.Count(lines.String(), "\n"); n != 2 || lines.Len() > 4096 {
		t.Errorf("%d lines of %d bytes", n, lines.Len())
	}
	if strings.Contains(lines.String()+jsonValue(got), "secret") {
		t.Error("a credential was logged")
	}
}

// The health probe must tell a running server from anything else.
func TestProbe(t *testing.T) {
	url, _ := start(t)
	if err := probe(url + "/healthz"); err != nil {
		t.Error(err)
	}
	if probe(url+"/elsewhere") == nil || probe("http://127.0.0.1:1/") == nil {
		t.Error("no error")
	}
}
