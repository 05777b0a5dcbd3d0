package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

// Reattaching after a connection was lost.
const (
	maxReattach = 10
	aliveAfter  = 10 * time.Second // a connection that lasted so long had been up
	sshFailed   = 255              // ssh's own trouble, also a lost connection
	killed      = 128              // more is a signal's number above it
)

// attachBySSH attaches to the session, and again when the connection is lost.
func (a *app) attachBySSH(ctx context.Context, e *engine.Engine, s spec.Spec, p sshEndpoint, argv []string) (any, error) {
	probe := func(ctx context.Context) error { return a.probeBySSH(ctx, s, p) }
	if err := a.findSession(ctx, e, s, probe); err != nil {
		return nil, err
	}
	a.nameTerminal()
	mend := a.keepTerminal()
	for attempt := 0; ; attempt++ {
		began := time.Now()
		err := a.runner.Run(ctx, process.Command{Argv: argv, Stdin: a.in, Stdout: a.out, Stderr: a.err, Foreground: true})
		var exit *process.ExitError
		if !errors.As(err, &exit) {
			return nil, err
		}
		if exit.Code > killed {
			mend() // the session could not put it back
		}
		if exit.Code != sshFailed {
			return nil, a.sessionEnd(ctx, s, p, exit.Code, probe)
		}
		if time.Since(began) >= aliveAfter {
			attempt = 0
		} else if attempt == 0 {
			return nil, fail(exitFailed, "run it again; look: agent-container logs "+s.Name, "the connection to %s was lost at once", s.Name)
		}
		if attempt == maxReattach {
			return nil, fail(exitFailed, "run it again", "the connection to %s was lost, and %d times not to be had again", s.Name, maxReattach)
		}
		if err := a.pauseBefore(ctx, e, s, attempt); err != nil {
			return nil, err
		}
	}
}

// pauseBefore waits before another attempt, the longer the more there were, and
// gives up when the deployment was stopped meanwhile. A redeploy, in which it is
// away for a moment, is waited for.
func (a *app) pauseBefore(ctx context.Context, e *engine.Engine, s spec.Spec, attempt int) error {
	wait := min(time.Second<<attempt, 30*time.Second)
	a.say("the connection to %s was lost; attaching again in %s", s.Name, wait)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
	}
	if attempt < 2 {
		return nil
	}
	if c, err := a.find(ctx, e, s.Name); err == nil && c != nil && !c.State.Alive() {
		return notAlive(s, c)
	}
	return nil
}

// sessionEnd is the end of ssh with a status that is not its own.
func (a *app) sessionEnd(ctx context.Context, s spec.Spec, p sshEndpoint, code int, probe func(context.Context) error) error {
	if code > killed {
		return fail(exitFailed, "attach again: agent-container attach "+s.Name, "ssh to %s was ended by signal %d; the session goes on", s.Name, code-killed)
	}
	var none *failure
	if err := probe(ctx); errors.As(err, &none) && none.code == exitNotFound {
		return none
	}
	return childExit(code, "attach", p)
}

// findSession makes sure that the session is there: attaching to none would end
// with tmux's own words, or with an empty shell. A set-up that goes on is waited
// for; what became of one that failed is said.
func (a *app) findSession(ctx context.Context, e *engine.Engine, s spec.Spec, probe func(context.Context) error) error {
	problem := probe(ctx)
	if problem == nil {
		return nil
	}
	status, err := lastStatus(ctx, e, compose.ProjectName(s.Name))
	if err == nil && status.State == spec.Starting {
		a.say("%s is still starting: %s", s.Name, status.Phase)
		if status, err = a.await(ctx, e, s); err == nil && status.State == spec.Ready {
			return probe(ctx)
		}
	}
	switch {
	case err != nil || status.State == spec.Ready:
		return problem
	case status.State == spec.Failed:
		f := setupFailure(s.Name, status, nil)
		f.hint += "; look inside: agent-container exec " + s.Name + " bash"
		return f
	}
	return fail(exitPending, "when that is done: agent-container redeploy "+s.Name, "there is no session in %s yet: %s", s.Name, status)
}

// hasSession asks for exactly "main"; "-t main" would match "maintenance".
var hasSession = []string{"tmux", "has-session", "-t", "=main"}

// probeTime bounds the question whether the session is there.
const probeTime = 20 * time.Second

// probeBySSH asks over ssh whether the session is there.
func (a *app) probeBySSH(ctx context.Context, s spec.Spec, p sshEndpoint) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	err := a.runner.Run(ctx, process.Command{Argv: p.argv(false, []string{"BatchMode=yes"}, quoted(hasSession)...)})
	var exit *process.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, process.ErrNotFound):
		return fail(exitFailed, "install OpenSSH's client, or: agent-container attach "+s.Name+" --via exec", "no ssh on PATH")
	case errors.As(err, &exit) && exit.Code == sshFailed && keyRefused(exit.Stderr):
		return fail(exitFailed, "is your key among those of: agent-container access list "+s.Name+"; otherwise: agent-container attach "+s.Name+" --via exec",
			"ssh to %s: %w", s.Name, err)
	case exit == nil, exit.Code == sshFailed:
		return fail(exitFailed, "attach without ssh: agent-container attach "+s.Name+" --via exec; have sshd started again: agent-container redeploy "+s.Name,
			"ssh to %s: %w", s.Name, err)
	}
	return noSession(s)
}

// keyRefused reports whether ssh got as far as the keys.
func keyRefused(said string) bool {
	return strings.Contains(said, "Permission denied") || strings.Contains(said, "Too many authentication failures")
}

// probeByExec asks through the engine whether the session is there.
func probeByExec(ctx context.Context, e *engine.Engine, s spec.Spec) error {
	_, err := e.Probe(ctx, compose.ProjectName(s.Name), append([]string{spec.ContainerGuest, "env"}, hasSession...)...)
	var exit *process.ExitError
	if errors.As(err, &exit) {
		return noSession(s)
	}
	return err
}

func noSession(s spec.Spec) *failure {
	if s.Mode != spec.Interactive {
		return fail(exitNotFound, "run a command: agent-container attach "+s.Name+" -- CMD...; or: agent-container redeploy "+s.Name+" --mode interactive",
			"%s has no session: it is %s", s.Name, s.Mode)
	}
	return fail(exitNotFound, "begin it anew: agent-container redeploy "+s.Name, "nothing is running in %s: its session main is gone", s.Name)
}

// nameTerminal gives ssh a TERM where there is none: the far end would take it
// for a terminal without a screen.
func (a *app) nameTerminal() {
	if a.env("TERM") == "" {
		a.say("TERM is not set: using %s", usualTerminal)
		a.runner.Env = append(a.runner.Env, "TERM="+usualTerminal)
	}
}

// usualTerminal is what nearly every terminal of today understands.
const usualTerminal = "xterm-256color"

// plainTerminal takes back what a session has asked of the terminal: the other
// screen (and the cursor where it was), a hidden cursor, the keypad's and the
// arrow keys' mode, mouse, focus, paste and key reports, colours.
const plainTerminal = "\x1b7\x1b[?1049l\x1b[?25h\x1b[?1l\x1b>\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[>4m\x1b(B\x1b[m"

// keepTerminal returns what puts the terminal back into the state that it is in
// now, for when a session ends without doing so.
func (a *app) keepTerminal() (mend func()) {
	in, ok := a.in.(*os.File)
	if !ok {
		return func() {}
	}
	state, err := term.GetState(int(in.Fd()))
	return func() {
		if err == nil {
			_ = term.Restore(int(in.Fd()), state) // it may be gone
		}
		fmt.Fprint(a.out, plainTerminal)
	}
}
