package main

import (
	"encoding/json"
	"strings"
)

// tool is a tool as an agent offers it.
type tool struct {
	Name      string
	Namespace string            // of the Responses API: the group it is in, or ""
	Freeform  bool              // its input is plain text, not a JSON object
	Props     map[string]string // property name to JSON type
}

// toolCall is a call of an offered tool.
type toolCall struct {
	Tool  tool
	Input string // a JSON object, or plain text for a freeform tool
}

// schema is the part of a JSON schema by which a tool is recognised. Type may
// be a string or a list, so it is looked at only when it is a string.
type schema struct {
	Properties map[string]struct {
		Type any `json:"type"`
	} `json:"properties"`
}

// props flattens the schema to the types of its properties.
func (s schema) props() map[string]string {
	out := map[string]string{}
	for name, p := range s.Properties {
		kind, _ := p.Type.(string)
		out[name] = kind
	}
	return out
}

// chooseCall finds the tool for a run or write directive by the names and
// properties of what is offered, never by who is asking: an agent that changes
// its tools then fails visibly instead of being sent a call it does not know.
// A tool of its own comes before the script runner of codex's code mode.
func chooseCall(offered []tool, dir directive) (toolCall, bool) {
	build := shellInput
	if dir.Verb == "write" {
		build = writeInput
	}
	for _, match := range []func(tool, directive) (string, bool){build, codeModeInput} {
		for _, t := range offered {
			if input, ok := match(t, dir); ok {
				return toolCall{Tool: t, Input: input}, true
			}
		}
	}
	return toolCall{}, false
}

// shellInput is the input of t for a command, if t is a shell: claude's Bash,
// pi's and opencode's bash, codex's exec_command, shell_command or shell.
func shellInput(t tool, dir directive) (string, bool) {
	switch strings.ToLower(t.Name) {
	case "bash", "shell", "shell_command":
		if t.Props["command"] == "array" {
			return jsonObject("command", []string{"bash", "-c", dir.Text}), true
		}
		_, ok := t.Props["command"]
		return jsonObject("command", dir.Text), ok
	case "exec_command":
		// Codex hands a command to the background after 10 s unless told to
		// wait; 30 s is the most it allows.
		_, ok := t.Props["cmd"]
		return jsonObject("cmd", dir.Text, "yield_time_ms", 30000), ok
	}
	return "", false
}

// writeInput is the input of t for a file, if t writes files: claude's Write,
// pi's and opencode's write, codex's apply_patch. The file is the text and a
// newline for all of them, because a patch can only add whole lines.
func writeInput(t tool, dir directive) (string, bool) {
	switch strings.ToLower(t.Name) {
	case "write":
		if _, ok := t.Props["content"]; !ok {
			return "", false
		}
		for _, path := range []string{"file_path", "filePath", "path"} {
			if _, ok := t.Props[path]; ok {
				return jsonObject(path, dir.Path, "content", dir.Text+"\n"), true
			}
		}
	case "apply_patch":
		if t.Freeform {
			return patch(dir), true
		}
		_, ok := t.Props["input"]
		return jsonObject("input", patch(dir)), ok
	}
	return "", false
}

// codeModeInput is a script for codex's code mode, in which the model is given
// only the tool exec and reaches the shell and apply_patch through JavaScript.
func codeModeInput(t tool, dir directive) (string, bool) {
	if t.Name != "exec" || !t.Freeform {
		return "", false
	}
	if dir.Verb == "write" {
		return "text(await tools.apply_patch(" + jsonValue(patch(dir)) + "));\n", true
	}
	args := jsonObject("cmd", dir.Text, "yield_time_ms", 30000)
	return "text(await tools.exec_command(" + args + "));\n", true
}

// patch adds the file of a write directive in codex's patch format.
func patch(dir directive) string {
	return "*** Begin Patch\n*** Add File: " + dir.Path + "\n+" + dir.Text + "\n*** End Patch\n"
}

// jsonObject encodes pairs of a name and a value.
func jsonObject(pairs ...any) string {
	object := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		object[pairs[i].(string)] = pairs[i+1]
	}
	return jsonValue(object)
}

// jsonValue encodes a value that is known to be encodable.
func jsonValue(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
