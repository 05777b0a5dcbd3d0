package main

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
)

// fallbackTerminal is what nearly every terminal of today understands.
const fallbackTerminal = "xterm-256color"

// knownTerminal replaces a TERM of which the image has no description: every
// program with a screen would refuse it. A terminal that says it has no screen
// keeps its name.
func knownTerminal(env []string) []string {
	if !slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "TERM=") }) {
		return env // no terminal is here
	}
	term := lookup(env, "TERM")
	tput := exec.Command("tput", "-T", term, "clear")
	tput.Env = env
	var unknown *exec.ExitError
	if term == "dumb" || term != "" && !errors.As(tput.Run(), &unknown) {
		return env
	}
	say("the terminal %q is not known here: using %s", term, fallbackTerminal)
	return lastWins(append(env, "TERM="+fallbackTerminal))
}
