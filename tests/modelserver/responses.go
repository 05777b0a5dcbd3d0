package main

import "encoding/json"

// responsesRequest is the part of a Responses request that is read.
type responsesRequest struct {
	Model  string          `json:"model"`
	Stream bool            `json:"stream"`
	Input  responsesInput  `json:"input"`
	Tools  []responsesTool `json:"tools"`
}

// responsesInput is a plain string, which is a user message, or a list of items.
type responsesInput []responsesItem

// responsesItem is one item of the conversation; only what is read is declared.
type responsesItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	CallID  string          `json:"call_id"`
	Content content         `json:"content"`
	Tools   []responsesTool `json:"tools"`
}

// responsesTool is a function, a freeform ("custom") tool, a tool that the API
// runs itself (which has no name), or a namespace of further tools.
type responsesTool struct {
	Type       string          `json:"type"`
	Name       string          `json:"name"`
	Parameters schema          `json:"parameters"`
	Tools      []responsesTool `json:"tools"`
}

func (in *responsesInput) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return json.Unmarshal(data, (*[]responsesItem)(in))
	}
	item := responsesItem{Type: "message", Role: "user"}
	if err := json.Unmarshal(data, &item.Content); err != nil {
		return err
	}
	*in = responsesInput{item}
	return nil
}

// parseResponses reads a Responses request. Codex sends its tools in the
// request or, for its newer models, in an item of the input.
func parseResponses(body []byte) (conversation, error) {
	var req responsesRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return conversation{}, err
	}
	conv := conversation{API: "responses", Model: req.Model, Stream: req.Stream}
	conv.addResponsesTools("", req.Tools)
	for _, item := range req.Input {
		switch item.Type {
		case "message", "":
			if item.Role != "user" {
				continue
			}
			for _, b := range item.Content {
				if b.Type == "input_text" || b.Type == "text" {
					conv.addUserText(b.Text)
				}
			}
		case "function_call_output", "custom_tool_call_output":
			conv.addToolResult(item.CallID)
		case "additional_tools":
			conv.addResponsesTools("", item.Tools)
		}
	}
	return conv, nil
}

// addResponsesTools adds the tools that can be called, those of namespaces too.
func (c *conversation) addResponsesTools(namespace string, tools []responsesTool) {
	for _, t := range tools {
		switch t.Type {
		case "namespace":
			c.addResponsesTools(t.Name, t.Tools)
		case "function", "custom":
			c.Tools = append(c.Tools, tool{
				Name: t.Name, Namespace: namespace,
				Freeform: t.Type == "custom", Props: t.Parameters.props(),
			})
		}
	}
}

// responsesBody is the response object, in whole answers and in the events
// that open and close a streamed one.
func responsesBody(conv conversation, id, status string, output []any, used *tokens) object {
	body := object{
		"id": id, "object": "response", "status": status, "model": conv.Model,
		"output": output, "error": nil, "incomplete_details": nil, "usage": nil,
	}
	if used != nil {
		body["usage"] = object{
			"input_tokens":          used.In,
			"input_tokens_details":  object{"cached_tokens": 0},
			"output_tokens":         used.Out,
			"output_tokens_details": object{"reasoning_tokens": 0},
			"total_tokens":          used.In + used.Out,
		}
	}
	return body
}

// responsesOutput is the one output item of an answer. Its id and call id are
// new at every call.
func responsesOutput(a answer) object {
	if a.Call == nil {
		return object{
			"type": "message", "id": newID("msg_"), "role": "assistant", "status": "completed",
			"content": []any{responsesText(a.whole())},
		}
	}
	item := object{"id": newID("call_item_"), "call_id": newID("call_"), "name": a.Call.Tool.Name, "status": "completed"}
	if a.Call.Tool.Namespace != "" {
		item["namespace"] = a.Call.Tool.Namespace
	}
	item["type"], item["arguments"] = "function_call", a.Call.Input
	if a.Call.Tool.Freeform {
		delete(item, "arguments")
		item["type"], item["input"] = "custom_tool_call", a.Call.Input
	}
	return item
}

func responsesText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}}
}

// responsesWhole is the answer to a request that is not streamed.
func responsesWhole(conv conversation, a answer) any {
	return responsesBody(conv, newID("resp_"), "completed", []any{responsesOutput(a)}, &a.Tokens)
}

// responsesStream streams the answer: a response of one output item.
func responsesStream(ew *eventWriter, conv conversation, a answer) {
	id := newID("resp_")
	item := responsesOutput(a)
	started := responsesBody(conv, id, "in_progress", []any{}, nil)
	ew.send("response.created", object{"response": started})
	ew.send("response.in_progress", object{"response": started})
	ew.send("response.output_item.added", object{"output_index": 0, "item": responsesOpened(item)})
	if a.Call != nil {
		responsesCallEvents(ew, item, a.Call)
	} else {
		responsesTextEvents(ew, item, a)
	}
	ew.send("response.output_item.done", object{"output_index": 0, "item": item})
	ew.send("response.completed", object{
		"response": responsesBody(conv, id, "completed", []any{item}, &a.Tokens),
	})
}

// responsesOpened is an item as it is before any of its content has come.
func responsesOpened(item object) object {
	opened := object{}
	for name, value := range item {
		opened[name] = value
	}
	opened["status"] = "in_progress"
	unfilled := object{"content": []any{}, "arguments": "", "input": ""}
	for name, empty := range unfilled {
		if _, ok := item[name]; ok {
			opened[name] = empty
		}
	}
	return opened
}

// responsesTextEvents streams the text of a message.
func responsesTextEvents(ew *eventWriter, item object, a answer) {
	at := func(more object) object {
		more["item_id"], more["output_index"], more["content_index"] = item["id"], 0, 0
		return more
	}
	ew.send("response.content_part.added", at(object{"part": responsesText("")}))
	ew.pace(a, func(chunk string) {
		ew.send("response.output_text.delta", at(object{"delta": chunk}))
	})
	ew.send("response.output_text.done", at(object{"text": a.whole()}))
	ew.send("response.content_part.done", at(object{"part": responsesText(a.whole())}))
}

// responsesCallEvents streams the input of a tool call.
func responsesCallEvents(ew *eventWriter, item object, call *toolCall) {
	event, field := "response.function_call_arguments", "arguments"
	if call.Tool.Freeform {
		event, field = "response.custom_tool_call_input", "input"
	}
	ew.send(event+".delta", object{"item_id": item["id"], "output_index": 0, "delta": call.Input})
	ew.send(event+".done", object{"item_id": item["id"], "output_index": 0, field: call.Input})
}

// responsesFailure is the body of an error answer.
func responsesFailure(status int, message string) any {
	kind, code := "invalid_request_error", any(nil)
	switch {
	case status == 401:
		code = "invalid_api_key"
	case status == 429:
		kind, code = "requests", "rate_limit_exceeded"
	case status >= 500:
		kind, code = "server_error", "server_error"
	}
	return object{"error": object{"message": message, "type": kind, "param": nil, "code": code}}
}
