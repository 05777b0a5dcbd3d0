package e2e

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// With a terminal on stdin and a pipe on stdout, exec must run to its end: a
// child in a group of its own would be stopped when it reads the terminal.
func TestExecFromATerminalIntoAPipe(t *testing.T) {
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skip("skipped: script (bsdutils) is not installed")
	}
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--mode", "idle")
	for about, c := range map[string]struct{ line, want string }{
		"pipe":       {`"$PROGRAM" exec ` + u.name + ` echo here | cat`, "here"},
		"json":       {`"$PROGRAM" exec --json ` + u.name + ` echo here`, `"ok":true`},
		"no input":   {`"$PROGRAM" --no-input exec ` + u.name + ` echo here`, "here"},
		"a terminal": {`"$PROGRAM" exec ` + u.name + ` sh -c 'test -t 0 && test -t 1 && echo here'`, "here"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		cmd := exec.CommandContext(ctx, script, "--quiet", "--return", "--command", c.line, "/dev/null")
		cmd.Dir, cmd.Env = u.path("project"), append(append(outerEnvironment(), u.env...), "PROGRAM="+program, "SHELL=/bin/sh")
		// Nobody types, and nobody has hung up either.
		typed, hold, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = typed
		r := finish(t, cmd)
		if ctx.Err() != nil || r.code != 0 || !contains(r.stdout, c.want) {
			t.Errorf("%s: want exit 0 and %q: %v %s", about, c.want, ctx.Err(), r)
		}
		hold.Close()
		typed.Close()
		cancel()
	}
}
