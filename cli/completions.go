package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/completions"
	"github.com/agent-container/agent-container/spec"
)

// completionFlag is what the shell shims add to ask for completions.
const completionFlag = "--generate-bash-completion"

func completionsCommand() command {
	return command{
		name: "completions", group: groupShell, args: strings.Join(completions.Shells(), "|"), usage: "print a shell's completion script",
		min: 1, max: 1,
		run: func(_ *app, _ context.Context, c *ucli.Context) (any, error) {
			script, ok := completions.Script(c.Args().First())
			if !ok {
				return nil, refuse("use one of "+strings.Join(completions.Shells(), ", "), "completions: no script for %q", c.Args().First())
			}
			return scriptAnswer{c.Args().First(), script}, nil
		},
	}
}

type scriptAnswer struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

func (s scriptAnswer) text(w io.Writer) { io.WriteString(w, s.Script) }

// flagValues are the words that complete a flag's value.
func flagValues(flag string) []string {
	switch flag {
	case "agent":
		return spec.AgentNames()
	case "mode":
		return texts(spec.Modes)
	case "workspace":
		return texts(spec.Workspaces)
	}
	return nil
}

// complete completes the words of a command: the value of the flag before,
// or its flags and subcommands.
func (a *app) complete(c *ucli.Context) {
	before := wordBefore(a.argv)
	if name := strings.TrimLeft(before, "-"); name != before {
		if values := flagValues(name); values != nil {
			printWords(c.App.Writer, values)
			return
		}
	}
	for _, sub := range c.Command.Subcommands {
		fmt.Fprintln(c.App.Writer, sub.Name)
	}
	for _, f := range c.Command.Flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				fmt.Fprintln(c.App.Writer, "--"+n)
			}
		}
	}
}

// wordBefore is the last complete word on the line: the shims add the flag
// after it.
func wordBefore(argv []string) string {
	if i := slices.Index(argv, completionFlag); i > 0 {
		return argv[i-1]
	}
	return ""
}

func printWords(w io.Writer, words []string) {
	for _, word := range words {
		fmt.Fprintln(w, word)
	}
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}
