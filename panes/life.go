package panes

import (
	"time"

	"github.com/agent-container/agent-container/spec"
)

// Behind is how long an agent's row lasts while another program is in front of it.
const Behind = 30 * time.Second

// life is what is known of one pane from look to look.
type life struct {
	Found   // the row: no agent, no row
	State   spec.ScreenState
	inFront bool      // the agent's program is in front
	behind  time.Time // since when it is not
	key     key
	nested  bool
	named   bool // the row is from the name that the user has given
	unseen  int  // looks at which nothing was in front
}

// next is the life after a look at the pane.
//
//	in front           the row             the runtime's mark      the state
//	an agent           is that agent's     its, "" on the host     its screen's
//	the shell          ends                none                    none
//	another program    ends after Behind   none                    none
//
// A row that is from a name of the user's ends with that name, for while it is there
// no program is another one.
//
// A container whose script goes on after its agent (claude; bash) still has the
// runtime in front, and stays.
func (l life) next(f Front, now time.Time) life {
	switch {
	case f.Agent != "":
		n := life{Found: f.Found, State: l.State, inFront: true, key: f.key, nested: f.nested, named: f.named}
		if l.Agent != f.Agent || l.key != f.key {
			n.State = "" // another one: its screen has not been read
		}
		return n
	case f.Shell || l.Agent == "" || l.named:
		return life{}
	}
	if l.inFront {
		l.inFront, l.behind = false, now
	}
	l.Runtime, l.State, l.unseen = "", "", 0
	if now.Sub(l.behind) >= Behind {
		return life{}
	}
	return l
}

// calling reports whether somebody is to be told that a pane went from one state to
// the next. An agent that has only just come up has finished nothing.
func calling(from, to spec.ScreenState, inView bool) bool {
	return !inView && from != to && (to == spec.ScreenWaiting || to == spec.ScreenIdle && from != "")
}
