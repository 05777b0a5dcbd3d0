package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// completionFlag asks for completions: the shims call the program with it, the
// word that is being typed, and the words before that one. It stands first, so
// that it is never taken for a word of a child's.
const completionFlag = "--complete"

// What a shim completes by itself is asked for by one of these words. No flag,
// command or deployment begins with a colon.
const (
	completeFiles       = ":files"
	completeDirectories = ":directories"
)

// completionTime bounds the question to the engine: nobody waits for Tab.
const completionTime = time.Second

// complete prints the words that may stand where word is typed. Whatever goes
// wrong, there are none: the terminal is in the middle of a line.
func (a *app) complete(ctx context.Context, list []command, word string, before []string) {
	for _, w := range a.candidates(ctx, placeOf(list, before), word) {
		fmt.Fprintln(a.out, w)
	}
}

// place is where on a line something is typed.
type place struct {
	command   command
	flag      string // whose value it is, or ""
	arguments int    // before it
	noFlags   bool   // only arguments may follow
}

// placeOf is the place after the words before.
func placeOf(list []command, before []string) place {
	p := place{command: command{sub: list}}
	last := ""
	missing := walk(list, append([]string{"agent-container"}, before...), func(word string, kind wordKind) {
		switch kind {
		case wordCommand:
			p.command, _ = findCommand(p.command.sub, word)
		case wordFlag:
			last = strings.TrimLeft(word, "-")
		case wordArgument:
			p.arguments++
		case wordEnd:
			p.noFlags = true
		}
	})
	if missing {
		p.flag = last
	}
	p.noFlags = p.noFlags || p.command.child && p.arguments > 0
	return p
}

func (a *app) candidates(ctx context.Context, p place, word string) []string {
	switch {
	case p.flag != "":
		return flagValues(p.command.flags, p.flag)
	case strings.HasPrefix(word, "-") && !p.noFlags:
		return flagNames(p.command.flags)
	}
	words := a.argumentWords(ctx, p)
	if p.arguments == 0 {
		words = append(words, commandNames(p.command.sub)...)
	}
	if len(words) == 0 && !p.noFlags {
		return flagNames(p.command.flags)
	}
	return words
}

// flagWords are the words that complete a flag's value, by the flag's name.
var flagWords = map[string]func() []string{
	"agent":            spec.AgentNames,
	"mode":             func() []string { return spec.Texts(spec.Modes) },
	"workspace":        func() []string { return spec.Texts(spec.Workspaces) },
	"headless-restart": func() []string { return []string{"no", "on-failure"} },
	"egress":           func() []string { return egressModes },
	"egress-allow":     egressEntryWords,
	"via":              func() []string { return []string{"ssh", "exec"} },
	"outcome":          outcomeWords,
	"mount":            func() []string { return []string{completeDirectories} },
	"task":             func() []string { return []string{completeFiles} }, // for @FILE
}

// placeholders are what completes a value or an argument that the help calls so.
var placeholders = map[string]string{"FILE": completeFiles, "DIR": completeDirectories, "CMD": completeFiles}

// flagValues completes the value of one of flags: by its words, else by what its
// help calls it.
func flagValues(flags []ucli.Flag, name string) []string {
	if words, ok := flagWords[name]; ok {
		return words()
	}
	for _, f := range flags {
		doc, ok := f.(ucli.DocGenerationFlag)
		if !ok || !slices.Contains(f.Names(), name) {
			continue
		}
		if _, rest, ok := strings.Cut(doc.GetUsage(), "`"); ok {
			called, _, _ := strings.Cut(rest, "`")
			if kind := placeholders[called]; kind != "" {
				return []string{kind}
			}
		}
	}
	return nil
}

// flagNames are the flags, and those of every command, as they are typed.
func flagNames(flags []ucli.Flag) []string {
	var names []string
	for _, f := range append(slices.Clone(flags), globalFlags()...) {
		for _, n := range f.Names() {
			if len(n) > 1 {
				names = append(names, "--"+n)
			}
		}
	}
	return append(names, "--help")
}

// argumentWords completes an argument by what the help of the command calls it:
// "NAME FILE", "[NAME]", "NAME CMD...", "bash|zsh".
func (a *app) argumentWords(ctx context.Context, p place) []string {
	var called []string
	for _, word := range strings.Fields(p.command.args) {
		if word = strings.Trim(word, "[]."); word != "" && word != "--" && word != "|" {
			called = append(called, word)
		}
	}
	at := p.arguments
	if p.command.max < 0 {
		at = min(at, len(called)-1) // the last one repeats
	}
	switch {
	case at < 0 || at >= len(called):
		return nil
	case called[at] == "NAME":
		return a.deploymentNames(ctx)
	case strings.Contains(called[at], "|"):
		return strings.Split(called[at], "|")
	case placeholders[called[at]] != "":
		return []string{placeholders[called[at]]}
	}
	return nil
}

// deploymentNames are what the engine has, none when it does not say so soon.
func (a *app) deploymentNames(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	all, err := engine.New(a.runner).Deployments(ctx)
	if err != nil {
		return nil
	}
	// A label may say anything; what is offered is typed into a shell.
	return slices.DeleteFunc(all, func(n string) bool { return spec.ValidateName(n) != nil })
}
