package panes

import (
	"testing"
	"time"
)

// Behind another program an agent must keep its row for about half a minute and then lose it; back in front before that it must keep it.
func TestHalfAMinute(t *testing.T) {
	s := newServer(t)
	s.watch(nil)
	left, back := s.pane(), s.pane()
	var begun time.Time
	for _, pane := range []string{back, left} {
		s.types(pane, "docker run img claude; editor; claude")
		s.within(patient, pane, "claude|docker|")
		s.types(pane, "end")
		begun = time.Now() // the half minute of the second begins after it
		s.within(patient, pane, "claude||")
	}
	s.types(back, "end") // claude of the host, in time
	s.within(Behind+patient, left, "||")
	if took := time.Since(begun); took < Behind-patient {
		t.Errorf("the row was gone after %v", took)
	}
	if got := s.marks(back); got != "claude||" {
		t.Errorf("in front again, the marks are %q", got)
	}
}
