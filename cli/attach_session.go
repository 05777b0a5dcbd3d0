package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
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
	noMain      = 66               // the far end's word that there is no session; tmux says 0 or 1
	noWindow    = 67               // likewise, that the session has no such window
	killed      = 128              // more is a signal's number above it
)

// hasSession asks for exactly "main"; "-t main" would match "maintenance".
var hasSession = []string{"tmux", "has-session", "-t", "=main"}

// attachBySSH attaches to the session, and again when the connection is lost. One
// connection asks for the session and attaches to it: a key's passphrase is asked
// for once.
func (a *app) attachBySSH(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec, p sshEndpoint, window string) (any, error) {
	attach := tmuxAttach(window)
	target := attach[len(attach)-1]
	argv := p.argv(true, fmt.Sprintf("%s 2>/dev/null || exit %d; %s >/dev/null 2>&1 || exit %d; exec %s", process.Quote(hasSession), noMain,
		process.Quote([]string{"tmux", "list-panes", "-t", target}), noWindow, process.Quote(attach)))
	a.nameTerminal()
	mend := a.keepTerminal()
	waited := false
	for attempt := 0; ; attempt++ {
		began := time.Now()
		err := a.runner.Run(ctx, process.Command{Argv: argv, Stdin: a.in, Stdout: a.out, Stderr: a.err, KeepStderr: true, Foreground: true})
		wasUp := time.Since(began) >= aliveAfter
		var exit *process.ExitError
		if context.Cause(ctx) != nil {
			mend()
			f := *asFailure(context.Cause(ctx))
			f.message, f.hint = f.message+"; the session of "+s.Name+" goes on", "attach again: agent-container attach "+s.Name
			return nil, &f
		}
		if !errors.As(err, &exit) {
			return nil, withoutSSH(s.Name, err)
		}
		if exit.Code == noWindow {
			return nil, fail(exitNotFound, "see its windows: agent-container list "+s.Name, "the session of %s has no window %s", s.Name, spec.Printable(window, 60))
		}
		if exit.Code > killed {
			mend() // the session could not put it back
		}
		switch {
		case exit.Code == noMain, exit.Code == sshFailed && attempt == 0 && !wasUp:
			if exit.Code == sshFailed { // perhaps another command is ending it
				if _, err := a.afterLoss(ctx, e, c, s, 0); err != nil {
					return nil, err
				}
			}
			if err := a.awaitSession(ctx, e, s, sshProblem(s, exit), exit.Code == noMain || noSSHD.MatchString(exit.Stderr), &waited); err != nil {
				return nil, err
			}
			attempt = -1
			continue
		case exit.Code != sshFailed:
			return nil, a.sessionEnd(ctx, e, c, s, p, exit.Code)
		case wasUp:
			attempt = 0
		}
		if attempt == maxReattach {
			return nil, fail(exitFailed, "run it again", "the connection to %s was lost, and %d times not to be had again", s.Name, maxReattach)
		}
		if err := a.pauseBefore(ctx, e, c, s, attempt); err != nil {
			return nil, err
		}
	}
}

// pauseBefore waits before another attempt, the longer the more there were, and
// gives up when the deployment was stopped meanwhile. A redeploy, in which it is
// away for a moment, is waited for.
func (a *app) pauseBefore(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec, attempt int) error {
	wait := min(time.Second<<attempt, 30*time.Second)
	a.say("the connection to %s was lost; attaching again in %s", s.Name, wait)
	if err := pause(ctx, wait); err != nil || attempt < 2 {
		return err
	}
	_, err := a.afterLoss(ctx, e, c, s, 0)
	return err
}

// sessionEnd is the end of ssh with a status that is not its own.
func (a *app) sessionEnd(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec, p sshEndpoint, code int) error {
	if code > killed {
		return fail(exitFailed, "attach again: agent-container attach "+s.Name, "ssh to %s was ended by signal %d; the session goes on", s.Name, code-killed)
	}
	// tmux has said why; what it cannot know is what became of the container.
	gone, err := a.afterLoss(ctx, e, c, s, time.Second) // a container ends a moment after its session
	switch {
	case err != nil:
		return err
	case gone:
		return noSession(s)
	}
	return childExit(code, "attach", p)
}

// noSSHD is how ssh says that it reached no sshd, as while a container starts, rather
// than that it lost one.
var noSSHD = regexp.MustCompile(`Connection (refused|reset|closed by \S+ port)|kex_exchange_identification`)

// awaitSession says why there is no session, which the container's status may
// know better than problem does: a set-up that failed, or waits for something.
// One that goes on is waited for, once, and nil says to try again; so it does where the
// question may have come too early for a container that is ready by now.
func (a *app) awaitSession(ctx context.Context, e *engine.Engine, s spec.Spec, problem error, early bool, waited *bool) error {
	c, err := a.find(ctx, e, s.Name)
	if err == nil && c != nil && !c.State.Alive() {
		return notAlive(s, c)
	}
	recent := err == nil && c != nil && time.Since(c.State.StartedAt) < time.Minute
	status, err := lastStatus(ctx, e, compose.ProjectName(s.Name))
	switch {
	case err != nil || *waited:
	case status.State == spec.Ready && early && recent:
		*waited = true
		return nil
	case status.State == spec.Starting:
		*waited = true
		a.say("%s is still starting: %s", s.Name, status.Phase)
		if status, err = a.await(ctx, e, s); err == nil && status.State == spec.Ready {
			return nil
		}
	}
	switch {
	case err != nil || status.State == spec.Ready || status.State == spec.Starting:
		return problem
	case status.State == spec.Failed:
		f := setupFailure(s.Name, status, nil)
		f.hint += "; look inside: agent-container exec " + s.Name + " bash"
		return f
	}
	return fail(exitPending, "register it: agent-container ssh-key show "+s.Name+"; then: agent-container redeploy "+s.Name,
		"there is no session in %s yet: it waits for its SSH key to be registered", s.Name)
}

// sshProblem is why ssh did not come to a session.
func sshProblem(s spec.Spec, exit *process.ExitError) *failure {
	hint := "attach without ssh: agent-container attach " + s.Name + " --via exec; have sshd started again: agent-container redeploy " + s.Name
	switch {
	case exit.Code == noMain:
		return noSession(s)
	case strings.Contains(exit.Stderr, "Permission denied") || strings.Contains(exit.Stderr, "Too many authentication failures"):
		hint = "is your key among those of: agent-container access list " + s.Name + "; otherwise: agent-container attach " + s.Name + " --via exec"
	}
	return fail(exitFailed, hint, "ssh to %s: %w", s.Name, exit)
}

// withoutSSH is the error of an ssh that was not started.
func withoutSSH(name string, err error) error {
	if errors.Is(err, process.ErrNotFound) {
		return fail(exitFailed, "install OpenSSH's client, or: agent-container attach "+name+" --via exec", "no ssh on PATH")
	}
	return err
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
