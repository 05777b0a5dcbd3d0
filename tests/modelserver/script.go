package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// directivePrefix starts a line of the task that scripts the model.
const directivePrefix = "model: "

// defaultText is the answer when nothing else is scripted.
const defaultText = "done"

// always is the number of times of a failure that never ends.
const always = -1

// tokens are the counts reported as usage.
type tokens struct{ In, Out int }

var defaultTokens = tokens{In: 10, Out: 5}

// directive is one parsed line. Only the fields of its Verb are set.
type directive struct {
	Verb   string // run, write, say, fail, hang, slow or tokens
	Text   string // run: the command; write: the content; say: the answer
	Path   string // write
	Status int    // fail
	Times  int    // fail: how often, or always
	Chunks int    // slow
	Delay  time.Duration
	Tokens tokens
}

// parseScript returns the directives of a task in order. A malformed directive
// is an error: a test with a typo must not pass as a test without directives.
func parseScript(task string) ([]directive, error) {
	var script []directive
	for line := range strings.SplitSeq(task, "\n") {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\r"), directivePrefix)
		if !ok {
			continue
		}
		d, err := parseDirective(rest)
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, cut(rest, loggedText))
		}
		script = append(script, d)
	}
	return script, nil
}

// parseDirective parses what follows the prefix. Texts are taken verbatim.
func parseDirective(s string) (directive, error) {
	verb, rest, _ := strings.Cut(s, " ")
	d := directive{Verb: verb, Text: rest}
	switch verb {
	case "run", "say":
		return d, needs(rest != "", verb+" needs a text")
	case "write":
		d.Path, d.Text, _ = strings.Cut(rest, " ")
		return d, needs(d.Path != "" && d.Text != "", "write needs a path and a text")
	case "hang":
		return d, needs(rest == "", "hang takes no argument")
	case "fail", "slow", "tokens":
		return parseNumbers(verb, strings.Fields(rest))
	}
	return d, fmt.Errorf("unknown directive")
}

// parseNumbers parses the directives whose arguments are numbers.
func parseNumbers(verb string, args []string) (directive, error) {
	d := directive{Verb: verb}
	bad := fmt.Errorf("bad arguments of %s", verb)
	if len(args) != 2 && !(verb == "fail" && len(args) == 1) {
		return d, bad
	}
	first, err := strconv.Atoi(args[0])
	if err != nil || first < 0 {
		return d, bad
	}
	if verb == "slow" {
		d.Chunks = first
		d.Delay, err = time.ParseDuration(args[1])
		return d, needs(err == nil && first > 0 && d.Delay >= 0, bad.Error())
	}
	second := always
	if len(args) == 2 {
		if second, err = strconv.Atoi(args[1]); err != nil || second < 0 {
			return d, bad
		}
	}
	if verb == "tokens" {
		d.Tokens = tokens{In: first, Out: second}
		return d, nil
	}
	d.Status, d.Times = first, second
	return d, needs(first >= 400 && first <= 599, bad.Error())
}

func needs(ok bool, message string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s", message)
}

// answer is what the model does with one request, in no API's terms.
type answer struct {
	Kind   string // as logged: text, tool, side, no-tool, script-error, fail, hang or slow
	Text   string
	Call   *toolCall // of kind tool
	Status int       // of kind fail
	Chunks int       // of kind slow
	Delay  time.Duration
	Tokens tokens
}

// director decides answers. All it remembers between requests is how often
// each failure has happened; the rest follows from the conversation.
type director struct {
	mu     sync.Mutex
	failed map[failureKey]int
}

// failureKey names a failure by its task and its place in that task's script.
type failureKey struct {
	task  [sha256.Size]byte
	index int
}

// decide returns the answer to a request. A request that offers no tools is a
// side request (a title, a quota probe): it may quote the task, and must
// neither run the script nor use up a failure.
func (d *director) decide(conv conversation) answer {
	if len(conv.Tools) == 0 {
		return answer{Kind: "side", Text: defaultText, Tokens: defaultTokens}
	}
	script, err := parseScript(conv.Text)
	if err != nil {
		return answer{Kind: "script-error", Text: "modelserver: " + err.Error(), Tokens: defaultTokens}
	}
	return d.play(conv, script)
}

// play walks the script. Each tool result since the task stands for one run or
// write that is behind us; failures behind us are over; the first thing left is
// the answer.
func (d *director) play(conv conversation, script []directive) answer {
	used := defaultTokens
	behind := conv.ToolResults
	for i, dir := range script {
		switch dir.Verb {
		case "tokens":
			used = dir.Tokens
		case "run", "write":
			if behind == 0 {
				return callAnswer(conv.Tools, dir, used)
			}
			behind--
		case "fail":
			if behind == 0 && d.failsNow(conv.Text, i, dir.Times) {
				return answer{Kind: "fail", Status: dir.Status, Text: failText(dir.Status)}
			}
		case "say":
			return answer{Kind: "text", Text: dir.Text, Tokens: used}
		case "slow":
			return answer{Kind: "slow", Chunks: dir.Chunks, Delay: dir.Delay, Tokens: used}
		case "hang":
			return answer{Kind: "hang"}
		}
	}
	return answer{Kind: "text", Text: defaultText, Tokens: used}
}

// failsNow reports whether a failure is still due, and counts it if so.
func (d *director) failsNow(task string, index, times int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := failureKey{sha256.Sum256([]byte(task)), index}
	if times != always && d.failed[key] >= times {
		return false
	}
	if d.failed == nil {
		d.failed = map[failureKey]int{}
	}
	d.failed[key]++
	return true
}

func failText(status int) string {
	if text := http.StatusText(status); text != "" {
		return "modelserver: scripted failure: " + text
	}
	return "modelserver: scripted failure"
}

// callAnswer is the tool call for a run or write, or a text that names what is
// missing, so that the test which needed the tool fails with the reason.
func callAnswer(offered []tool, dir directive, used tokens) answer {
	if call, ok := chooseCall(offered, dir); ok {
		return answer{Kind: "tool", Call: &call, Tokens: used}
	}
	names := make([]string, len(offered))
	for i, t := range offered {
		names[i] = t.Name
	}
	text := fmt.Sprintf("modelserver: no tool for %s among: %s", dir.Verb, strings.Join(names, ", "))
	return answer{Kind: "no-tool", Text: text, Tokens: used}
}

// chunks are the pieces in which the text of an answer is streamed.
func (a answer) chunks() []string {
	if a.Kind != "slow" {
		return []string{a.Text}
	}
	pieces := make([]string, a.Chunks)
	for i := range pieces {
		pieces[i] = fmt.Sprintf("chunk %d of %d\n", i+1, a.Chunks)
	}
	return pieces
}
