package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/spec"
)

// command is one row of the list of commands.
type command struct {
	name    string
	aliases []string
	group   string
	args    string // as help shows them: "NAME", "NAME CMD..."
	usage   string
	detail  string
	flags   []ucli.Flag
	sub     []command

	min, max int  // how many arguments; max < 0 means any number
	child    bool // after the first argument nothing is ours

	// run does the work. What it returns is printed as text, if it knows how,
	// or as the data of the JSON envelope.
	run func(a *app, ctx context.Context, c *ucli.Context) (any, error)
}

// The groups of commands, in the order of the help.
const (
	groupLife   = "1. life cycle"
	groupWork   = "2. work"
	groupLook   = "3. look"
	groupKeys   = "4. keys"
	groupEgress = "5. egress"
	groupShell  = "6. shell"
)

// commands is the list of commands: a new one is a file and a line here.
func commands() []command {
	return []command{
		upCommand(),
		redeployCommand(),
		planCommand(),
		startCommand(),
		stopCommand(),
		downCommand(),
		wipeCommand(),
		buildCommand(),
		attachCommand(),
		execCommand(),
		logsCommand(),
		runsCommand(),
		listCommand(),
		contextCommand(),
		detectCommand(),
		panesCommand(),
		trustCommand(),
		accessCommand(),
		sshKeyCommand(),
		egressCommand(),
		completionsCommand(),
		versionCommand(),
	}
}

// globalFlags may stand anywhere; splitGlobals takes them out before urfave
// sees the words. They are listed for the help.
func globalFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.BoolFlag{Name: "json", Usage: "print one JSON envelope on stdout"},
		&ucli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print every command that is run"},
		&ucli.BoolFlag{Name: "no-input", Usage: "never ask, even on a terminal"},
	}
}

// urfave turns a row into urfave's form.
func (a *app) urfave(parent string, c command) *ucli.Command {
	path := strings.TrimSpace(parent + " " + c.name)
	u := &ucli.Command{
		Name: c.name, Aliases: c.aliases, Usage: c.usage, Description: c.detail, Category: c.group,
		ArgsUsage: c.args, Flags: c.flags, OnUsageError: usageError, HideHelpCommand: true,
		CustomHelpTemplate: commandHelp(path, c),
	}
	for _, s := range c.sub {
		u.Subcommands = append(u.Subcommands, a.urfave(path, s))
	}
	u.Action = func(uc *ucli.Context) error {
		if c.run == nil {
			if uc.Args().Present() {
				return unknownCommand(c.sub, uc.Args().First())
			}
			return refuse("run: agent-container "+c.name+" --help", "%s needs one of %s", c.name, strings.Join(commandNames(c.sub), ", "))
		}
		if err := c.checkArgs(path, uc); err != nil {
			return err
		}
		data, err := c.run(a, uc.Context, uc)
		if err != nil {
			return err
		}
		return a.answer(data)
	}
	return u
}

func (c command) checkArgs(path string, uc *ucli.Context) error {
	n := uc.Args().Len()
	hint := fmt.Sprintf("run: agent-container %s %s", path, c.args)
	switch {
	case n < c.min:
		return refuse(strings.TrimSpace(hint), "%s: missing argument", path)
	case c.max >= 0 && n > c.max:
		return refuse(strings.TrimSpace(hint), "%s: unexpected argument %q", path, uc.Args().Get(c.max))
	}
	return nil
}

// deploymentName is the checked NAME of a command.
func deploymentName(c *ucli.Context) (string, error) {
	name := c.Args().First()
	return name, spec.ValidateName(name)
}

func commandNames(list []command) []string {
	var names []string
	for _, c := range list {
		names = append(names, c.name)
	}
	return names
}

func unknownCommand(list []command, typed string) error {
	hint := "run: agent-container --help"
	if near := spec.Nearest(typed, commandNames(list)); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return refuse(hint, "unknown command %q", typed)
}

func findCommand(list []command, word string) (command, bool) {
	i := slices.IndexFunc(list, func(c command) bool { return c.name == word || slices.Contains(c.aliases, word) })
	if i < 0 {
		return command{}, false
	}
	return list[i], true
}
