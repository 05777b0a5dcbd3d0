// Package recognise says which agent a container runtime's command line runs.
// It reads arguments and nothing else. They may hold credentials: what comes out
// of it is the two names.
package recognise

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-container/agent-container/spec"
)

// Recognise returns the agent of spec.Agents that a container started or entered
// by argv runs in the foreground, and the runtime: docker, podman, nerdctl,
// container or sbx. Only the program that the container runs counts: the word
// after the image or container, --entrypoint, the agent of sbx run, or a command
// of a script that a shell is given; by base name, exactly. What cannot be read
// for certain, such as an unknown flag, is no agent. It never panics, and takes
// time linear in the length of argv.
func Recognise(argv []string) (agent, runtime string, ok bool) {
	return reader{}.recognise(argv)
}

// RecogniseLine is Recognise for a line in which ps has joined arguments with
// blanks. A flag's value with a blank in it shifts the words and hides the agent;
// everything behind a shell's options is taken for its script.
func RecogniseLine(line string) (agent, runtime string, ok bool) {
	return reader{joined: true}.recognise(strings.Fields(line))
}

// reader is how far one command line has been read.
type reader struct {
	joined bool // by ps: where an argument ends is not known
	depth  int  // shells within shells
}

func (r reader) recognise(argv []string) (agent, runtime string, ok bool) {
	if len(argv) == 0 {
		return "", "", false
	}
	name := argv[0][strings.LastIndexAny(argv[0], `/\`)+1:]
	rt, known := runtimes[strings.TrimSuffix(name, ".exe")]
	if !known {
		return "", "", false
	}
	if agent = r.command(rt.root, argv[1:]); agent == "" {
		return "", "", false
	}
	return agent, rt.name, true
}

// command is one word of a runtime's grammar: its flags, then either the commands
// below it or how the agent is found among what follows.
type command struct {
	flags flagSet
	read  func(flagSet, []string) (given, []string, bool) // flagSet.pflag unless set
	below map[string]command
	agent func(reader, given, []string) string
}

// nothing are the flags by which nothing is in front.
var nothing = []string{"--detach", "--help", "--version", "--dry-run"}

// command follows words down the grammar to the agent, "" for none. What is
// detached is in front of nobody, and --help, --version and --dry-run run nothing.
func (r reader) command(c command, words []string) string {
	for {
		read := c.read
		if read == nil {
			read = flagSet.pflag
		}
		flags, rest, ok := read(c.flags, words)
		if !ok || slices.ContainsFunc(nothing, flags.on) {
			return ""
		}
		if c.agent != nil {
			return c.agent(r, flags, rest)
		}
		if len(rest) == 0 || flags.on("--") {
			return ""
		}
		if c, ok = c.below[rest[0]]; !ok {
			return ""
		}
		words = rest[1:]
	}
}

// inImage reads IMAGE [PROGRAM…] of a run. An empty --entrypoint resets the
// image's own, which is unknown either way.
func inImage(r reader, flags given, words []string) string {
	if len(words) == 0 || words[0] == "" {
		return ""
	}
	entrypoint := flags["--entrypoint"]
	if entrypoint == "" {
		return r.program(words[1:])
	}
	start := []string{entrypoint}
	if entrypoint[0] == '[' && json.Unmarshal([]byte(entrypoint), &start) != nil { // podman's list
		return ""
	}
	return r.program(append(start, words[1:]...))
}

// inService reads SERVICE [PROGRAM…] of compose run, whose --entrypoint is split
// as a shell would.
func inService(r reader, flags given, words []string) string {
	entrypoint := flags["--entrypoint"]
	if len(words) == 0 || words[0] == "" || strings.ContainsAny(entrypoint, "'\"\\`$;&|<>()") {
		return ""
	}
	return r.program(append(strings.Fields(entrypoint), words[1:]...))
}

// inContainer reads CONTAINER PROGRAM… of an exec. Podman's --latest and
// --cidfile stand for the container's name.
func inContainer(r reader, flags given, words []string) string {
	if flags.on("--latest") || flags["--cidfile"] != "" {
		return r.program(words)
	}
	if len(words) == 0 || words[0] == "" {
		return ""
	}
	return r.program(words[1:])
}

// inNerdctl is inContainer for nerdctl's exec, which drops a -- behind the container.
func inNerdctl(r reader, flags given, words []string) string {
	if len(words) > 1 && words[1] == "--" {
		words = append(words[:1:1], words[2:]...)
	}
	return inContainer(r, flags, words)
}

// inSandbox reads AGENT or SANDBOX of sbx run. A word that is no agent of sbx is
// the name of a sandbox that exists, whatever runs in it.
func inSandbox(_ reader, _ given, words []string) string {
	if len(words) == 0 || !sandboxAgents[words[0]] {
		return ""
	}
	for _, a := range spec.Agents {
		if a.Name == words[0] {
			return a.Name
		}
	}
	return ""
}
