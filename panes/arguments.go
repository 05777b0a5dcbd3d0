package panes

import (
	"path"
	"slices"
	"strings"

	"github.com/agent-container/agent-container/recognise"
)

// shells are the programs behind whose prompt no agent is.
var shells = []string{"sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "tcsh", "csh", "nu", "xonsh", "elvish", "pwsh"}

// saidBy is what exact arguments say: the agent, in a container or on the host.
func saidBy(argv []string) said {
	s := said{script: givenScript(argv)}
	var ok bool
	if s.Agent, s.Runtime, ok = recognise.Recognise(argv); !ok {
		s.Agent, _ = recognise.Host(argv)
	}
	return s
}

// givenScript reports whether argv is a shell with a script, in a file or after -c. The
// file of --rcfile counts as one, too.
func givenScript(argv []string) bool {
	if len(argv) == 0 || !slices.Contains(shells, strings.TrimPrefix(path.Base(argv[0]), "-")) {
		return false
	}
	return slices.ContainsFunc(argv[1:], func(word string) bool {
		flag := strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+")
		return !flag || !strings.HasPrefix(word, "--") && strings.ContainsRune(word, 'c')
	})
}
