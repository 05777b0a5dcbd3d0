package panes

import (
	"fmt"
	"testing"
)

// A pane's line must be read whatever its session is called, and marks of others be none.
func TestParsePane(t *testing.T) {
	for line, want := range map[string]string{
		"900 %3 42 0 110 1 1796051952 [claude] [docker] [idle] [] [] my work:0.1": "%3 42 my work:0.1 claude docker idle true",
		"900 %3 42 0 010 1 1 [claude] [] [] [] [] a:0.1":                          "%3 42 a:0.1 claude   true",
		"900 %3 42 0 011 1 1 [claude] [] [] [] [] a:0.1":                          "%3 42 a:0.1 claude   false",
		"900 %3 42 0 110 0 1 [codex] [] [] [] [] a:0.1":                           "%3 42 a:0.1 codex   false",
		"900 %3 42 0 110 1 1 [somebody's] [docker] [idle] [] [] a:0.1":            "%3 42 a:0.1    true",
		"900 %3 42 1 110 1 1 [claude] [] [] [] [] a:0.1":                          "%3 42 a:0.1 claude   true dead",
		"900 %3;x 42 0 110 1 1 [claude] [] [] [] [] a:0.1":                        "none",
		"900 %3 0 0 110 1 1 [claude] [] [] [] [] a:0.1":                           "none",
		"": "none",
	} {
		p, ok := parsePane(line)
		got := fmt.Sprint(p.ID, " ", p.PID, " ", p.Where, " ", p.Agent, " ", p.Runtime, " ", p.State, " ", p.InView)
		if p.dead {
			got += " dead"
		}
		if !ok {
			got = "none"
		}
		if got != want {
			t.Errorf("%q:\n%q, want\n%q", line, got, want)
		}
	}
}
