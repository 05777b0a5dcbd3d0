package cli

import (
	"context"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/completions"
)

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
