package spec

import (
	"encoding/json"
	"fmt"
)

// Look is what the guest of a running container says when it is asked how its
// session and its repository are: one JSON document.
type Look struct {
	Status     string   `json:"status,omitempty"` // as Status.String writes it
	Session    Session  `json:"session"`
	Repository WorkTree `json:"repository"`
}

// SessionState says how the tmux session "main" is.
type SessionState string

// The states of a session.
const (
	SessionAlive      SessionState = "alive"
	SessionEnded      SessionState = "ended"      // it was begun, and is gone
	SessionNone       SessionState = "none"       // there is none to be, or none yet
	SessionUnreadable SessionState = "unreadable" // tmux does not answer
)

// Session is the tmux session "main".
type Session struct {
	State   SessionState `json:"state"`
	Clients int          `json:"clients,omitempty"` // how many terminals are attached
	Windows []Window     `json:"windows,omitempty"`
}

// Window is one window of a session.
type Window struct {
	Index   int    `json:"index"`
	Name    string `json:"name"`
	Command string `json:"command"` // what runs in it now
	Active  bool   `json:"active,omitempty"`
}

// WorkTree is how the repository in /workspace is.
type WorkTree struct {
	State       string `json:"state"` // as in Repository
	Branch      string `json:"branch,omitempty"`
	Head        string `json:"head,omitempty"`
	Remote      string `json:"remote,omitempty"`      // where it is pushed to, without what logs in there
	Uncommitted *int   `json:"uncommitted,omitempty"` // paths changed or new; nil when it is not known
	Unpushed    *int   `json:"unpushed,omitempty"`    // commits on no remote branch; nil when it is not known, or there is no remote
}

// Bounds of a Look.
const (
	MaxWindows   = 50
	maxLookWord  = 100
	maxLookPlace = 500
)

// ParseLook reads a Look that comes from a container and is not trusted: what
// it returns is bounded and steers no terminal. Fields that a later guest adds
// are passed over.
func ParseLook(document []byte) (Look, error) {
	var l Look
	if err := json.Unmarshal(document, &l); err != nil {
		return Look{}, fmt.Errorf("unreadable answer of the guest: %s", Printable(err.Error(), maxLookPlace))
	}
	if l.Session.State == "" || l.Repository.State == "" {
		return Look{}, fmt.Errorf("the answer of the guest is not whole")
	}
	l.Session.bound()
	l.Repository.bound()
	return l, nil
}

func (s *Session) bound() {
	s.State = SessionState(Printable(string(s.State), maxLookWord))
	s.Clients = max(s.Clients, 0)
	s.Windows = s.Windows[:min(len(s.Windows), MaxWindows)]
	for i := range s.Windows {
		w := &s.Windows[i]
		w.Name, w.Command = Printable(w.Name, maxLookWord), Printable(w.Command, maxLookWord)
	}
}

func (t *WorkTree) bound() {
	t.State, t.Branch = Printable(t.State, maxLookWord), Printable(t.Branch, maxLookPlace)
	t.Remote = Printable(t.Remote, maxLookPlace)
	if !commitPattern.MatchString(t.Head) {
		t.Head = ""
	}
	for _, n := range []*int{t.Uncommitted, t.Unpushed} {
		if n != nil {
			*n = max(*n, 0)
		}
	}
}
