package cli

import (
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/spec"
)

// appHelp is the page of --help: commands, then the tables that scripts and
// people look up.
func appHelp() string {
	var b strings.Builder
	b.WriteString(`{{.Name}} - {{.Usage}}

usage: {{.UsageText}}
{{range .VisibleCategories}}
{{slice .Name 3}}:{{range .VisibleCommands}}
  {{printf "%-12s" .Name}} {{.Usage}}{{end}}
{{end}}
flags of every command:
  --json       print one JSON envelope on stdout
  -v           print every command that is run
  --no-input   never ask, even on a terminal
  --help       help for a command

agents:
`)
	for _, a := range spec.Agents {
		fmt.Fprintf(&b, "  %-12s %s\n", a.Name, a.Title)
	}
	b.WriteString("\nexit codes (an agent may exit with any of them too; its run record decides):\n")
	for _, c := range ExitCodes {
		fmt.Fprintf(&b, "  %-12d %s\n", c.Code, c.Meaning)
	}
	return b.String()
}

// commandHelp is the page of --help for one command. path is its words after
// the program's name.
func commandHelp(path string, c command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "agent-container %s - %s\n\nusage: agent-container %s [flags]\n", path, c.usage, strings.TrimSpace(path+" "+c.args))
	if c.detail != "" {
		fmt.Fprintf(&b, "\n%s\n", c.detail)
	}
	if len(c.sub) > 0 {
		b.WriteString("\ncommands:\n")
		for _, s := range c.sub {
			fmt.Fprintf(&b, "  %-24s %s\n", strings.TrimSpace(s.name+" "+s.args), s.usage)
		}
	}
	b.WriteString("\nflags:\n")
	for _, f := range append(slices.Clone(c.flags), globalFlags()...) {
		name, usage := flagHelp(f)
		fmt.Fprintf(&b, "  %-24s %s\n", name, usage)
	}
	// urfave takes this for a template; nothing of it is one.
	return strings.NewReplacer("{{", "{ {").Replace(b.String())
}

// flagHelp renders a flag as "-f, --follow" or "--tail N", and its usage.
func flagHelp(f ucli.Flag) (name, usage string) {
	var words []string
	for _, n := range f.Names() {
		dashes := "--"
		if len(n) == 1 {
			dashes = "-"
		}
		words = append(words, dashes+n)
	}
	slices.SortFunc(words, func(a, b string) int { return len(a) - len(b) })
	name = strings.Join(words, ", ")
	d, ok := f.(ucli.DocGenerationFlag)
	if !ok {
		return name, ""
	}
	usage = d.GetUsage()
	if d.TakesValue() {
		value := "VALUE"
		if _, rest, found := strings.Cut(usage, "`"); found {
			value, _, _ = strings.Cut(rest, "`")
		}
		name += " " + value
	}
	return name, strings.ReplaceAll(usage, "`", "")
}
