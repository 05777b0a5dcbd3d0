package panes

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/agent-container/agent-container/spec"
)

type screenRule struct {
	spec.ScreenRule
	pattern *regexp.Regexp
}

// screenRules are the rules of the agent table, ready to be used.
var screenRules = func() map[string][]screenRule {
	all := map[string][]screenRule{}
	for _, a := range spec.Agents {
		for _, r := range a.Screen {
			all[a.Name] = append(all[a.Name], screenRule{r, regexp.MustCompile("(?m)" + r.Pattern)})
		}
	}
	return all
}()

// stateOf is what an agent's screen says of it: the first of its rules that matches,
// and else what was known before. A screen that no rule knows may be half drawn. ""
// is for an agent without rules.
func stateOf(agent, screen string, before spec.ScreenState) spec.ScreenState {
	var lines []string
	for line := range strings.Lines(screen) {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line != "" {
			lines = append(lines, line)
		}
	}
	for _, r := range screenRules[agent] {
		if r.pattern.MatchString(strings.Join(lines[max(0, len(lines)-r.Lines):], "\n")) {
			return r.State
		}
	}
	return before
}
