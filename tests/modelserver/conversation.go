package main

import (
	"encoding/json"
	"strings"
)

// conversation is a model request in no API's terms.
type conversation struct {
	API         string
	Model       string
	Stream      bool
	Text        string // the last text the user typed
	ToolResults int    // tool results since then
	Tools       []tool

	seen map[string]bool // calls whose results are counted
}

// wrappers start the texts that agents add as user messages of their own:
// reminders of claude, the environment and project instructions of codex.
var wrappers = []string{
	"<system-reminder>",
	"<environment_context>",
	"<user_instructions>",
	"# AGENTS.md instructions",
	"<skill>",
	"<turn_aborted>",
	"<subagent_notification>",
}

// addUserText takes a text of a user message in the order of the conversation.
// What the user typed starts the script anew; what an agent added does not.
func (c *conversation) addUserText(text string) {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	for _, w := range wrappers {
		if strings.HasPrefix(trimmed, w) {
			return
		}
	}
	c.Text, c.ToolResults = text, 0
}

// addToolResult counts the result of a call. A call may have several results
// (codex sends what a script notifies of separately) but is one step.
func (c *conversation) addToolResult(callID string) {
	if c.seen[callID] {
		return
	}
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	c.seen[callID] = true
	c.ToolResults++
}

// content is the content of a message: a plain string or a list of blocks.
// Both APIs allow both.
type content []block

// block is one part of a message; only what is read is declared.
type block struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	ToolUseID string `json:"tool_use_id"`
}

func (c *content) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		one := block{Type: "text"}
		*c = content{one}
		return json.Unmarshal(data, &(*c)[0].Text)
	}
	return json.Unmarshal(data, (*[]block)(c))
}
