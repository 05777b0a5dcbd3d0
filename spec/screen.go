package spec

// ScreenState is what an agent's screen says of it.
type ScreenState string

// The states of an agent in a terminal.
const (
	ScreenWorking ScreenState = "working"
	ScreenWaiting ScreenState = "waiting" // for an answer to a question of its own
	ScreenIdle    ScreenState = "idle"    // at its prompt
)

// ScreenRule says which state a screen shows on which Pattern, a regular expression,
// matches one of the last Lines lines that are not blank.
type ScreenRule struct {
	State   ScreenState
	Lines   int
	Pattern string
}
