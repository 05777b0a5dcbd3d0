package tests

import (
	"strings"
	"testing"
)

func TestPanesWatchSaysWhy(t *testing.T) {
	// A watcher that cannot start must show why on the client of the server whose tmux.conf starts it, though that comes later; nothing of the text may be read as a format.
	d := newDesk(t, "panes:\n  notify_command: [sh, '-c #(touch DIR/ran) #{pid} %H']\n")
	d.client()
	d.screenHas("agent-container panes watch: ")
	d.screenHas("panes.notify_command")
	if said, err := d.try("ls", d.dir+"/ran"); err == nil {
		t.Errorf("the text was run: %s", said)
	}
	d.until(func() string { return d.must("tmux", "show-options", "-gqv", "@agent_container_says") })
}

func TestNotifyCommandFails(t *testing.T) {
	// A command of the user's that cannot be run must not be the end of the message.
	d := newDesk(t, "panes:\n  notify_command: [DIR/no-such-program]\n")
	d.client()
	d.keepsWritten()
	d.shows(d.agent(), "Esc to cancel")
	d.until(func() string { return d.unwritten("claude is waiting: work:1.0; panes.notify_command: ") })
}

func TestPanesNextByKey(t *testing.T) {
	// The documented key must say on the client why it goes nowhere, also that nobody watches.
	d := newDesk(t, "# none\n")
	d.client()
	// Without the prefix: two keys that a loaded machine brings together count as pasted.
	d.must("tmux", "bind", "-n", "C-g", "run-shell", "agent-container panes next --client '#{client_name}'")
	d.must("tmux", "-L", "outer", "send-keys", "C-g")
	d.screenHas("no other pane waits")
}

func TestPanesListSaysWhatIsNotWatched(t *testing.T) {
	// The list must tell whether somebody watches, and which pane has been given the name of no agent.
	d := newDesk(t, "# none\n")
	d.until(func() string {
		if said := d.must("agent-container", "panes", "list", "--json"); !strings.Contains(said, `"watched":true`) {
			return said
		}
		return ""
	})
	pane := d.must("tmux", "display-message", "-p", "#{pane_id}")
	d.must("tmux", "set-option", "-p", "-t", pane, "@agent_is", "Claude-Code")
	if said := d.must("agent-container", "panes", "list"); !strings.Contains(said, "warning: "+pane+`: @agent_is is "Claude-Code", which is no agent: claude, codex, pi, opencode`) {
		t.Errorf("of a name that is none the list says %q", said)
	}
}
