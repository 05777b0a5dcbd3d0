package cli

import (
	"fmt"
	"strings"

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
