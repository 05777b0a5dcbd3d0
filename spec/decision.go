package spec

import "time"

// Verdict is what the gateway did with a question or a connection.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "allowed"
	Denied  Verdict = "denied"
	Advised Verdict = "advised" // let through where strict would have denied
)

// Stage is where the gateway made a decision.
type Stage string

// The stages.
const (
	StageDNS     Stage = "dns"     // a name was asked for
	StageAddress Stage = "address" // a connection to an address that stands for no name
	StagePort    Stage = "port"    // to a name, at a port that is not permitted
	StageTLS     Stage = "tls"     // its first bytes are no hello for that name
	StageHTTP    Stage = "http"    // a request is not for that name
	StageResolve Stage = "resolve" // the name leads nowhere, or to a private address
	StageDial    Stage = "dial"    // the host does not answer
	StageOpen    Stage = "open"    // it is let through
	StageLimit   Stage = "limit"   // there are too many
	StageJournal Stage = "journal" // lines that were left out
)

// Decision is one line of the gateway's journal. What comes from the wire is
// canonical or made printable.
type Decision struct {
	Time    time.Time `json:"time"`
	Verdict Verdict   `json:"verdict"`
	Stage   Stage     `json:"stage"`
	Name    string    `json:"name,omitempty"`
	Address string    `json:"address,omitempty"`
	Port    int       `json:"port,omitempty"`
	Rule    string    `json:"rule,omitempty"`     // that permits it
	Reason  string    `json:"reason,omitempty"`   // why not
	Left    int       `json:"left_out,omitempty"` // lines that are not there, with StageJournal
}
