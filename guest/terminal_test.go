package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func TestKnownTerminal(t *testing.T) {
	// A TERM that nothing describes must become one that works, said once; what is described, or is nobody's, must stay.
	if _, err := exec.LookPath("tput"); err != nil {
		t.Skip("tput is not installed")
	}
	b := newBox(t, "claude", spec.Idle)
	for about, c := range map[string]struct {
		env  []string
		want string
		said int
	}{
		"described": {[]string{"TERM=xterm"}, "xterm", 0},
		"no screen": {[]string{"TERM=dumb"}, "dumb", 0},
		"nobody's":  {[]string{"TERM=no-such-terminal"}, fallbackTerminal, 1},
		"an option": {[]string{"TERM=-x"}, fallbackTerminal, 1},
		"a path":    {[]string{"TERM=../../etc/passwd"}, fallbackTerminal, 1},
		"empty":     {[]string{"TERM="}, fallbackTerminal, 1},
		"none":      {nil, "unset", 0},
	} {
		b.env = c.env
		code, out, said := b.guest("env", "sh", "-c", `echo "${TERM-unset}"`)
		if code != 0 || strings.TrimSpace(out) != c.want || strings.Count(said, fallbackTerminal) != c.said {
			t.Errorf("%s: exit %d, TERM is %q, want %q; it said %q", about, code, out, c.want, said)
		}
	}
}
