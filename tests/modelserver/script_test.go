package main

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// A task's directive lines must parse in order, and malformed ones must be errors.
func TestParseScript(t *testing.T) {
	tests := []struct {
		name, task string
		want       []directive
		wantErr    string
	}{
		{name: "none", task: "Please fix the bug.\nThe model: say is not at the start."},
		{name: "run", task: "x\nmodel: run echo a  b | cat", want: []directive{{Verb: "run", Text: "echo a  b | cat"}}},
		{name: "write", task: "model: write /a/b one  two ", want: []directive{{Verb: "write", Path: "/a/b", Text: "one  two "}}},
		{name: "say, line of Windows", task: "model: say hello\r\n", want: []directive{{Verb: "say", Text: "hello"}}},
		{name: "fail for ever", task: "model: fail 401", want: []directive{{Verb: "fail", Status: 401, Times: always}}},
		{name: "fail twice", task: "model: fail 529 2", want: []directive{{Verb: "fail", Status: 529, Times: 2}}},
		{name: "slow", task: "model: slow 3 10ms", want: []directive{{Verb: "slow", Chunks: 3, Delay: 10 * time.Millisecond}}},
		{name: "tokens, hang", task: "model: tokens 7 8\ntext\nmodel: hang", want: []directive{
			{Verb: "tokens", Tokens: tokens{In: 7, Out: 8}}, {Verb: "hang"}}},
		{name: "unknown", task: "model: dance", wantErr: "unknown directive: dance"},
		{name: "write without text", task: "model: write /a", wantErr: "write needs"},
		{name: "fail with a success", task: "model: fail 200", wantErr: "bad arguments of fail"},
		{name: "slow without duration", task: "model: slow 3", wantErr: "bad arguments of slow"},
		{name: "tokens with a word", task: "model: tokens 1 many", wantErr: "bad arguments of tokens"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseScript(tt.task)
			if tt.wantErr == "" && err != nil || tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Fatalf("error %v, want %q", err, tt.wantErr)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// shell and writer are the tools most tests offer.
var (
	shell  = tool{Name: "Bash", Props: map[string]string{"command": "string"}}
	writer = tool{Name: "Write", Props: map[string]string{"file_path": "string", "content": "string"}}
)

// A script must advance by one run or write with each tool result, and by nothing else.
func TestScriptFollowsToolResults(t *testing.T) {
	const task = "model: write /f text\nmodel: tokens 1 2\nmodel: run ls\nmodel: say bye"
	want := []string{"tool:Write", "tool:Bash", "text", "text"}
	d := &director{}
	for results, kind := range want {
		for range 2 { // an agent that asks again must be told the same
			a := d.decide(conversation{Text: task, ToolResults: results, Tools: []tool{shell, writer}})
			if a.logged() != kind {
				t.Errorf("after %d results: %s, want %s", results, a.logged(), kind)
			}
			if wantTokens := (tokens{1, 2}); results > 0 && a.Tokens != wantTokens {
				t.Errorf("after %d results: tokens %v, want %v", results, a.Tokens, wantTokens)
			}
		}
	}
}

// A failure must happen as often as told, for each task on its own, and be over after that.
func TestFailureCounter(t *testing.T) {
	d := &director{}
	ask := func(task string, results int) string {
		return d.decide(conversation{Text: task, ToolResults: results, Tools: []tool{shell}}).logged()
	}
	const task = "model: fail 529 2\nmodel: run ls\nmodel: fail 500 1\nmodel: say ok"
	steps := []struct {
		task    string
		results int
		want    string
	}{
		{task, 0, "fail:529"},
		{task + "\n", 0, "fail:529"}, // another task
		{task, 0, "fail:529"},
		{task, 0, "tool:Bash"},
		{task, 1, "fail:500"},
		{task, 1, "text"},
		{"model: fail 401", 0, "fail:401"},
		{"model: fail 401", 0, "fail:401"},
	}
	for i, s := range steps {
		if got := ask(s.task, s.results); got != s.want {
			t.Errorf("step %d: %s, want %s", i, got, s.want)
		}
	}
}

// A request without tools must be answered with text and use up no failure.
func TestSideRequest(t *testing.T) {
	d := &director{}
	const task = "model: fail 529 1\nmodel: run ls"
	if a := d.decide(conversation{Text: task}); a.Kind != "side" || a.Text != defaultText {
		t.Errorf("side request: %+v", a)
	}
	if a := d.decide(conversation{Text: task, Tools: []tool{shell}}); a.logged() != "fail:529" {
		t.Errorf("request after a side request: %s", a.logged())
	}
}

// A directive whose tool is not offered, and a malformed one, must be answered with the reason.
func TestAnswerNamesWhatIsWrong(t *testing.T) {
	d := &director{}
	for task, want := range map[string]string{
		"model: write /f x": "modelserver: no tool for write among: Bash",
		"model: dance":      "modelserver: unknown directive: dance",
		"no script":         defaultText,
	} {
		if got := d.decide(conversation{Text: task, Tools: []tool{shell}}).Text; got != want {
			t.Errorf("%q: %q, want %q", task, got, want)
		}
	}
}

// The tool must be chosen by name and properties, with the input that tool takes.
func TestChooseCall(t *testing.T) {
	freeform := func(name string) tool { return tool{Name: name, Freeform: true} }
	props := func(name string, pairs ...string) tool {
		out := tool{Name: name, Props: map[string]string{}}
		for _, p := range pairs {
			out.Props[p] = "string"
		}
		return out
	}
	run := directive{Verb: "run", Text: "ls"}
	write := directive{Verb: "write", Path: "/f", Text: "x"}
	const addFile = "*** Begin Patch\n*** Add File: /f\n+x\n*** End Patch\n"
	tests := []struct {
		name string
		tool tool
		dir  directive
		want string // "" when the tool does not fit
	}{
		{"claude shell", shell, run, `{"command":"ls"}`},
		{"codex exec_command", props("exec_command", "cmd"), run, `{"cmd":"ls","yield_time_ms":30000}`},
		{"shell taking a list", tool{Name: "shell", Props: map[string]string{"command": "array"}}, run, `{"command":["bash","-c","ls"]}`},
		{"shell of another shape", props("bash", "script"), run, ""},
		{"claude write", writer, write, `{"content":"x\n","file_path":"/f"}`},
		{"opencode write", props("write", "filePath", "content"), write, `{"content":"x\n","filePath":"/f"}`},
		{"pi write", props("write", "path", "content"), write, `{"content":"x\n","path":"/f"}`},
		{"codex patch", freeform("apply_patch"), write, addFile},
		{"codex patch as function", props("apply_patch", "input"), write, jsonObject("input", addFile)},
		{"code mode shell", freeform("exec"), run, `text(await tools.exec_command({"cmd":"ls","yield_time_ms":30000}));` + "\n"},
		{"code mode patch", freeform("exec"), write, "text(await tools.apply_patch(" + jsonValue(addFile) + "));\n"},
		{"shell for a write", shell, write, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			call, ok := chooseCall([]tool{tt.tool}, tt.dir)
			if call.Input != tt.want || ok != (tt.want != "") {
				t.Errorf("got %q %v, want %q", call.Input, ok, tt.want)
			}
		})
	}
}
