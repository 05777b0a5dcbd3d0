package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSaid(t *testing.T) {
	// What is said must be one line that steers no terminal, whatever a file's name, a child or a container has put into it: errors, hints and all the rest.
	hostile := "/repo/\x1b]0;title\a\x1b[2J\u009b31m\u202e\xff\r\nagent-container: hint: run this/settings.yaml"
	for about, say := range map[string]func(a *app){
		"error":   func(a *app) { a.report(errors.New(hostile)) },
		"refusal": func(a *app) { a.report(refuse("remove "+hostile, "%s: is empty", hostile)) },
		"remark":  func(a *app) { a.say("warning: %s", hostile) },
		"long":    func(a *app) { a.report(errors.New(strings.Repeat("x\n", 1<<20))) },
	} {
		var out bytes.Buffer
		say(&app{err: &out})
		for line := range strings.Lines(out.String()) {
			text, whole := strings.CutSuffix(line, "\n")
			if !whole || !strings.HasPrefix(text, "agent-container: ") || strings.HasPrefix(text, "agent-container: hint: run this") || strings.ContainsFunc(text, obeyed) || !utf8.ValidString(text) || len(text) > 100_000 {
				t.Errorf("%s: %.300q", about, line)
			}
		}
		if !strings.Contains(out.String(), "settings.yaml") && about != "long" {
			t.Errorf("%s: nothing is left of it: %q", about, out.String())
		}
	}
}
