package engine

import (
	"errors"
	"regexp"
	"strings"

	"github.com/agent-container/agent-container/process"
)

// The engine's command line has one exit status for all that goes wrong, so
// what happened is read from its words. They are matched narrowly and in one
// place: to take a lost engine for "there is no such container" would report a
// removal that never was.

// lostWords are how a client says that it cannot reach the engine: docker up to
// 28, and 29.
var lostWords = regexp.MustCompile(`(?i)cannot connect to the docker daemon|error during connect|failed to connect to the docker api|permission denied while trying to connect`)

// missingWords are how the engine says that a named thing is not there. The last
// is its word for a network that another command removes at the same moment.
var missingWords = regexp.MustCompile(`(?i)no such (container|image|volume|network|object)\b|network \S+ not found|unknown network \S+ id \S+`)

// networkGoneWords are how Compose and the engine say that a container's network
// is not there, by its name or by the id that it had.
var networkGoneWords = regexp.MustCompile(`network \S+ not found|declared as external, but could not be found`)

// portTakenWords are how the engine says that it cannot publish a port: another
// container has it, or another program.
var portTakenWords = regexp.MustCompile(`port is already allocated|address already in use`)

// PortTaken reports whether err says that a port to be published is taken.
func PortTaken(err error) bool { return portTakenWords.MatchString(stderrOf(err)) }

// removingWords are how the engine refuses to remove what it is removing already.
var removingWords = regexp.MustCompile(`removal of container \S+ is already in progress`)

// beingRemoved reports whether err says of each thing that failed that it is gone
// or about to be.
func beingRemoved(err error) bool { return onlySays(err, missingWords, removingWords) }

// nameTakenWords are how the engine says that a container's name is another's, and
// whose.
var nameTakenWords = regexp.MustCompile(`container name "\S+" is already in use by container "?([0-9a-f]+)`)

// NameTaken returns the id of the container that has the name which one was to be
// created with, if err says so.
func NameTaken(err error) (id string, taken bool) {
	m := nameTakenWords.FindStringSubmatch(stderrOf(err))
	if m == nil {
		return "", false
	}
	return m[1], true
}

// missingPathWords are how cp says that a path in a container is not there.
var missingPathWords = regexp.MustCompile(`(?i)could not find the file `)

// plugins names, for each word with which a client without the plugin refuses
// our command, what is not installed. A client that does not know "compose"
// stumbles over its first flag.
var plugins = []struct{ words, plugin string }{
	{"'compose' is not a docker command", "compose"},
	{"unknown flag: --project-name", "compose"},
	{"'buildx' is not a docker command", "buildx"},
	{"buildx component is missing", "buildx"},
	{"unknown flag: --load", "buildx"},
}

// stderrOf returns what the failed command said, or "".
func stderrOf(err error) string {
	var exit *process.ExitError
	if !errors.As(err, &exit) {
		return ""
	}
	return exit.Stderr
}

// lost turns the loss of the engine, or of a plugin, into an *UnreachableError
// and leaves every other error as it is.
func lost(err error) error {
	said := stderrOf(err)
	if errors.Is(err, process.ErrNotFound) || lostWords.MatchString(said) {
		return unreachable(err)
	}
	for _, p := range plugins {
		if strings.Contains(said, p.words) {
			return missingPlugin(p.plugin)
		}
	}
	return err
}

func missingPlugin(name string) *UnreachableError {
	return &UnreachableError{Tried: "docker " + name, Problem: "the plugin is not installed", Hint: "install the docker " + name + " plugin"}
}

// missing reports whether err says that every named thing that failed is not
// there.
func missing(err error) bool { return onlySays(err, missingWords) }

// missingPath reports whether err says that a container or a path in it is not
// there.
func missingPath(err error) bool { return onlySays(err, missingWords, missingPathWords) }

// onlySays reports whether each line of the engine's answer is one of words:
// of several things, one may be gone and another have failed.
func onlySays(err error, words ...*regexp.Regexp) bool {
	found := false
	for _, line := range strings.Split(stderrOf(err), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "exit status ") || strings.HasPrefix(line, "Error: failed to start containers"):
			continue // what docker adds below
		case lostWords.MatchString(line) || !matchesAny(line, words):
			return false
		}
		found = true
	}
	return found
}

func matchesAny(line string, words []*regexp.Regexp) bool {
	for _, w := range words {
		if w.MatchString(line) {
			return true
		}
	}
	return false
}
