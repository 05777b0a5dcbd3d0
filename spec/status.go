package spec

import (
	"fmt"
	"strings"
)

// State is the first word of a Status.
type State string

// The states of a container's set-up.
const (
	Starting State = "starting" // Phase says how far it is
	Ready    State = "ready"    // the agent runs or may be started; Reason is empty or a note for the user
	Pending  State = "pending"  // it waits for somebody to register Phase, which is PhaseSSHKey; sticky like Failed
	Failed   State = "failed"   // Phase failed for Reason; sticky until recreated or restarted
)

// PhaseSSHKey is what a Pending status names: the container's own SSH key, which
// the repository's host does not know yet.
const PhaseSSHKey = "ssh-key"

// PhaseContainer is the phase of a container that is about to start: the host says
// it, before the guest can.
const PhaseContainer = "container"

// Status is how far a container has come: what the guest writes and what up,
// list and the engine's health check read.
type Status struct {
	State  State
	Phase  string
	Reason string
}

// String returns the one line that ParseStatus reads.
func (s Status) String() string {
	switch s.State {
	case Starting:
		return fmt.Sprintf("starting %s", s.Phase)
	case Pending:
		return fmt.Sprintf("pending %s", s.Phase)
	case Ready:
		if s.Reason != "" {
			return "ready: " + strings.Join(strings.Fields(s.Reason), " ")
		}
	case Failed:
		return fmt.Sprintf("failed %s: %s", s.Phase, strings.Join(strings.Fields(s.Reason), " "))
	}
	return string(s.State)
}

// ParseStatus reads a line that String made. The line comes from a container
// and is not trusted: what it cannot read is an error, never a state.
func ParseStatus(line string) (Status, error) {
	line = strings.TrimSpace(line)
	if line == string(Ready) {
		return Status{State: Ready}, nil
	}
	if note, ok := strings.CutPrefix(line, "ready: "); ok {
		return Status{State: Ready, Reason: Printable(note, 1000)}, nil
	}
	if line == "pending "+PhaseSSHKey {
		return Status{State: Pending, Phase: PhaseSSHKey}, nil
	}
	if phase, ok := strings.CutPrefix(line, "starting "); ok && phase != "" {
		return Status{State: Starting, Phase: Printable(phase, 100)}, nil
	}
	if rest, ok := strings.CutPrefix(line, "failed "); ok {
		if phase, reason, ok := strings.Cut(rest, ": "); ok {
			return Status{State: Failed, Phase: Printable(phase, 100), Reason: Printable(reason, 1000)}, nil
		}
	}
	return Status{}, fmt.Errorf("unreadable status %q", Printable(line, 100))
}

// PrintableText returns text from a container with every control character but
// line feed and tab replaced, line by line as it was.
func PrintableText(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < 0x20 || steersTerminal(r)) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// Printable returns at most limit bytes of text from a container with every
// control character replaced, so that it cannot steer a terminal.
func Printable(text string, limit int) string {
	clean := strings.Map(func(r rune) rune {
		if r < 0x20 || steersTerminal(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(clean) > limit {
		clean = strings.ToValidUTF8(clean[:limit], "") + "…"
	}
	return clean
}
