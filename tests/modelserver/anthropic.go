package main

import "encoding/json"

// anthropicRequest is the part of a Messages request that is read.
type anthropicRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string  `json:"role"`
		Content content `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string `json:"name"`
		InputSchema schema `json:"input_schema"`
	} `json:"tools"`
}

// parseAnthropic reads a Messages request. Messages of other roles than user
// are the model's own or, of role system, claude's description of where it is.
func parseAnthropic(body []byte) (conversation, error) {
	var req anthropicRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return conversation{}, err
	}
	conv := conversation{API: "anthropic", Model: req.Model, Stream: req.Stream}
	for _, m := range req.Messages {
		if m.Role != "user" {
			continue
		}
		for _, b := range m.Content {
			switch b.Type {
			case "text":
				conv.addUserText(b.Text)
			case "tool_result":
				conv.addToolResult(b.ToolUseID)
			}
		}
	}
	for _, t := range req.Tools {
		conv.Tools = append(conv.Tools, tool{Name: t.Name, Props: t.InputSchema.props()})
	}
	return conv, nil
}

// anthropicMessage is a message with the given content, as it stands in a
// whole answer and, empty, at the start of a streamed one.
func anthropicMessage(conv conversation, content []any, stopReason any, used tokens) object {
	return object{
		"id": newID("msg_"), "type": "message", "role": "assistant", "model": conv.Model,
		"content": content, "stop_reason": stopReason, "stop_sequence": nil,
		"usage": object{"input_tokens": used.In, "output_tokens": used.Out},
	}
}

func anthropicStopReason(a answer) string {
	if a.Call != nil {
		return "tool_use"
	}
	return "end_turn"
}

// anthropicWhole is the answer to a request that is not streamed.
func anthropicWhole(conv conversation, a answer) any {
	block := object{"type": "text", "text": a.whole()}
	if a.Call != nil {
		block = anthropicToolUse(a.Call, json.RawMessage(a.Call.Input))
	}
	return anthropicMessage(conv, []any{block}, anthropicStopReason(a), a.Tokens)
}

func anthropicToolUse(call *toolCall, input any) object {
	return object{"type": "tool_use", "id": newID("toolu_"), "name": call.Tool.Name, "input": input}
}

// anthropicStream streams the answer: a message of one block. The real API
// reports the output tokens at the end, so the start carries none.
func anthropicStream(ew *eventWriter, conv conversation, a answer) {
	start := anthropicMessage(conv, []any{}, nil, tokens{In: a.Tokens.In})
	ew.send("message_start", object{"message": start})
	if a.Call != nil {
		anthropicBlock(ew, anthropicToolUse(a.Call, object{}), func() {
			anthropicDelta(ew, object{"type": "input_json_delta", "partial_json": a.Call.Input})
		})
	} else {
		anthropicBlock(ew, object{"type": "text", "text": ""}, func() {
			ew.pace(a, func(chunk string) {
				anthropicDelta(ew, object{"type": "text_delta", "text": chunk})
			})
		})
	}
	ew.send("message_delta", object{
		"delta": object{"stop_reason": anthropicStopReason(a), "stop_sequence": nil},
		"usage": object{"input_tokens": a.Tokens.In, "output_tokens": a.Tokens.Out},
	})
	ew.send("message_stop", object{})
}

func anthropicBlock(ew *eventWriter, block object, deltas func()) {
	ew.send("content_block_start", object{"index": 0, "content_block": block})
	deltas()
	ew.send("content_block_stop", object{"index": 0})
}

func anthropicDelta(ew *eventWriter, delta object) {
	ew.send("content_block_delta", object{"index": 0, "delta": delta})
}

// anthropicErrors are the error types by status; other statuses are api_error.
var anthropicErrors = map[int]string{
	400: "invalid_request_error",
	401: "authentication_error",
	403: "permission_error",
	404: "not_found_error",
	413: "request_too_large",
	429: "rate_limit_error",
	529: "overloaded_error",
}

// anthropicFailure is the body of an error answer.
func anthropicFailure(status int, message string) any {
	kind, ok := anthropicErrors[status]
	if !ok {
		kind = "api_error"
	}
	return object{
		"type":       "error",
		"error":      object{"type": kind, "message": message},
		"request_id": newID("req_"),
	}
}
