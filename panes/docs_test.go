package panes

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The lines for tmux.conf in docs/tmux.md must be taken by tmux, and show an agent, and a window with a pane that waits, whichever of its panes is active.
func TestDocumentedLines(t *testing.T) {
	text, err := os.ReadFile("../docs/tmux.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^    ((?:set -g|bind) .*)$`).FindAllStringSubmatch(string(text), -1)
	if len(lines) < 5 {
		t.Fatalf("the document has %d lines of configuration", len(lines))
	}
	s := newServer(t)
	var conf []string
	for _, line := range lines {
		conf = append(conf, line[1])
	}
	file := s.dir + "/doc.conf"
	if err := os.WriteFile(file, []byte(strings.Join(conf, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("source-file", file)
	first := s.must("new-window", "-d", "-n", "w", "-P", "-F", "#{pane_id}", "sh")
	second := s.must("split-window", "-t", first, "-P", "-F", "#{pane_id}", "sh")
	s.must("select-pane", "-t", second)
	shows := func(pane, option string) string {
		return s.must("display-message", "-p", "-t", pane, s.must("show-options", "-gv", option))
	}
	if got := shows(second, "window-status-format"); got != "1:w" {
		t.Errorf("without an agent the window is shown as %q", got)
	}
	s.must("set-option", "-p", "-t", first, MarkAgent, "claude", ";", "set-option", "-p", "-t", first, MarkRuntime, "docker", ";", "set-option", "-p", "-t", first, MarkState, "waiting")
	if got := shows(second, "window-status-format"); got != "1:w!" {
		t.Errorf("with a pane that waits the window is shown as %q", got)
	}
	if got := shows(first, "status-right"); got != "claude docker waiting" {
		t.Errorf("the status line shows %q", got)
	}
	if got := shows(first, "pane-border-format"); got != "0 claude in docker waiting" {
		t.Errorf("the border shows %q", got)
	}
	s.runs(second, "sh") // tmux itself, for a moment
	if got := shows(second, "pane-border-format"); got != "1 sh" {
		t.Errorf("the border without an agent shows %q", got)
	}
}
