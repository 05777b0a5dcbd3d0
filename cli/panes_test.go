package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/panes"
)

// The keys of the popup must choose a pane, stay within the list, begin at one that waits, and close without a choice.
func TestChoose(t *testing.T) {
	list := []panes.Pane{{ID: "%0", Agent: "claude"}, {ID: "%1", Agent: "codex", State: "waiting"}, {ID: "%2", Agent: "pi"}}
	for keys, want := range map[string]string{
		"\r": "%1", "k\r": "%0", "kkk\r": "%0", "j\r": "%2", "jjj\r": "%2", "jk\r": "%1",
		"\x1b[A\r": "%0", "\x1b[B\r": "%2", "\x1bOB\r": "%2", "x\x1b[C\r": "%1",
		"q": "", "\x03": "", "\x1b": "", "": "", "j": "",
	} {
		got, ok := choose(strings.NewReader(keys), io.Discard, list)
		if got.ID != want || ok != (want != "") {
			t.Errorf("%q chooses %q, %v; want %q", keys, got.ID, ok, want)
		}
	}
	var drawn strings.Builder
	if got, ok := choose(strings.NewReader("jk\r"), &drawn, nil); ok || !strings.Contains(drawn.String(), "no pane has an agent") {
		t.Errorf("of no panes %q is chosen; drawn is %q", got.ID, drawn.String())
	}
}
