package spec

// ScreenState is what an agent's screen says of it.
type ScreenState string

// The states of an agent in a terminal.
const (
	ScreenWorking ScreenState = "working"
	ScreenWaiting ScreenState = "waiting" // for an answer to a question of its own
	ScreenIdle    ScreenState = "idle"    // at its prompt
)

// ScreenRule says which state a screen shows on which Pattern matches the last Lines
// lines that are not blank, each without the blanks at its end; ^ and $ are at the ends
// of lines.
type ScreenRule struct {
	State   ScreenState
	Lines   int
	Pattern string
}

// Parts of patterns. What stands in a conversation looks like anything: a pattern that
// reads more than the last line or two therefore runs from its mark to the screen's end,
// over the box or the line of the prompt, which are where text of a conversation never
// is: at the left edge.
const (
	belowBox    = `(?:\n[^─\n].*)*\z` // no border follows
	inBox       = `(?:[^─\n].*\n)*`
	claudeBox   = `^─{3}(?:.*\n[❯!]| ↑ \d+ more ─+\n  )` // of its prompt, not of a dialog
	codexPrompt = `^›.*(?:\n .*)*\z`
)
