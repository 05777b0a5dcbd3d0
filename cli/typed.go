package cli

import (
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/process"
)

// typedAs is the command line verb NAME with those of the flags that were typed
// which verb has, for a shell. The values of variables and the text of a task are left out: hints are
// kept in logs.
func typedAs(c *ucli.Context, verb string) string {
	argv := []string{"agent-container", verb, c.Args().First()}
	ends := ""
	target, _ := findCommand(commands(), verb)
	for _, f := range target.flags {
		name := f.Names()[0]
		if !c.IsSet(name) {
			continue // not typed, or none of the command's
		}
		switch v := c.Value(name).(type) {
		case bool:
			argv = append(argv, boolFlag(name, v))
		case ucli.StringSlice:
			for _, value := range v.Value() {
				if name == "env" {
					value, _, _ = strings.Cut(value, "=")
				}
				argv = append(argv, valueFlag(name, value)...)
			}
		case int:
			argv = append(argv, valueFlag(name, strconv.Itoa(v))...)
		case string:
			if name == "task" && v != "-" && !strings.HasPrefix(v, "@") {
				ends = " --task ..." // not quoted: it is no word to be typed
				continue
			}
			argv = append(argv, valueFlag(name, v)...)
		}
	}
	return process.Quote(argv) + ends
}

// valueFlag are the words of a flag with a value, one where the value could be
// taken for a flag.
func valueFlag(name, value string) []string {
	if strings.HasPrefix(value, "-") && value != "-" {
		return []string{"--" + name + "=" + value}
	}
	return []string{"--" + name, value}
}

func boolFlag(name string, on bool) string {
	if on {
		return "--" + name
	}
	return "--" + name + "=" + strconv.FormatBool(on)
}
