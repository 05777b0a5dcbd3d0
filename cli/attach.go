package cli

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

func attachCommand() command {
	return command{
		name: "attach", group: groupWork, args: "NAME [-- CMD...]", usage: "attach to a session over ssh, or run a command there",
		detail: "Attaches to the tmux session \"main\". Detach with Ctrl-b d; the agent goes on. When the connection is lost, it\n" +
			"attaches again, and never runs anything twice.",
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "window", Aliases: []string{"w"}, Usage: "the tmux window, by its `NAME` or number"},
			&ucli.StringFlag{Name: "via", Value: "ssh", Usage: "ssh, or exec, which goes through the engine"},
			&ucli.BoolFlag{Name: "print", Usage: "print the ssh command and stop"},
			&ucli.BoolFlag{Name: "ssh-config", Usage: "print an entry for ~/.ssh/config and stop"},
		},
		min: 1, max: -1, run: (*app).attach,
	}
}

var windowPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// attach attaches, and again, from the beginning, where another command has made the
// container anew meanwhile: port, mode and key may be others.
func (a *app) attach(ctx context.Context, c *ucli.Context) (any, error) {
	name := c.Args().First()
	for times := 0; ; times++ {
		began := time.Now()
		answer, err := a.attachOnce(ctx, c, times > 0)
		if time.Since(began) > time.Minute {
			times = 0 // it does not come and go
		}
		switch {
		case !errors.Is(err, errAnew):
			return answer, err
		case times == maxReattach:
			return nil, fail(exitFailed, "see why: agent-container logs "+name, "%s was made or started anew %d times meanwhile", name, times)
		}
		a.say("another command has made %s anew, or started it; attaching again", name)
	}
}

// attachOnce attaches to what is there now, again after it was made anew.
func (a *app) attachOnce(ctx context.Context, c *ucli.Context, again bool) (any, error) {
	window, via, command := c.String("window"), c.String("via"), c.Args().Tail()
	prints := c.Bool("print") || c.Bool("ssh-config")
	switch {
	case window != "" && !windowPattern.MatchString(window):
		return nil, refuse("use a window's name or number, see: tmux list-windows", "--window: %q is not one", window)
	case window != "" && len(command) > 0:
		return nil, refuse("drop one of them", "--window is for the session, and a command runs beside it")
	case via != "ssh" && via != "exec":
		return nil, refuse("use ssh or exec", "--via: %q is neither", via)
	case via == "exec" && prints:
		return nil, refuse("drop one of them", "--via exec uses no ssh")
	}
	e, found, s, err := a.named(ctx, c)
	if err != nil {
		return nil, err
	}
	session := len(command) == 0
	if session && !prints {
		if err := a.sessionTerminal(s.Name); err != nil {
			return nil, err
		}
	}
	if found, err = a.revive(ctx, e, found, s); err != nil {
		return nil, err
	}
	if !found.State.Alive() {
		return nil, notAlive(s, found)
	}
	if again {
		_, _ = a.await(ctx, e, s) // it has only just been started; what is wrong is told below
	}
	remote := command
	if session {
		remote = tmuxAttach(window)
	}
	if session && !prints {
		defer a.showInPane(ctx, e, s)()
	}
	if via == "exec" {
		return a.attachByExec(ctx, e, found, s, remote, session)
	}
	p, err := a.sshEndpoint(ctx, e, found, s)
	if err != nil {
		return nil, err
	}
	if session && !prints {
		return a.attachBySSH(ctx, e, found, s, p, window)
	}
	argv := p.argv(session || a.terminal && !a.json, process.Quote(remote))
	if prints {
		return attachAnswer{p, argv, c.Bool("ssh-config")}, nil
	}
	return a.sshCommand(ctx, s, argv, command)
}

// sessionTerminal refuses a session where there is no screen to show it on.
func (a *app) sessionTerminal(name string) error {
	command := "run a command: agent-container attach " + name + " -- CMD..."
	switch {
	case a.json:
		return refuse("drop --json; or: --print; or "+command, "a session is for a terminal: it has no JSON to print")
	case !a.terminal:
		return refuse(command+"; or: --print", "attach needs a terminal")
	case a.env("TERM") == "dumb":
		return refuse("say what it is, such as TERM=xterm-256color; or "+command, "attach needs a terminal with a screen, and TERM is dumb")
	}
	return nil
}

// notAlive says how a deployment that does not run goes on.
func notAlive(s spec.Spec, c *engine.Container) *failure {
	next := "run: agent-container start " + s.Name
	switch {
	case s.Mode == spec.Headless:
		next = "look into it: agent-container redeploy " + s.Name + " --mode idle"
	case c.State.Status == "created":
		next = "run again: agent-container up " + s.Name + " with its flags"
	}
	return fail(exitNotFound, next, "%s is %s", s.Name, c.State.Status)
}

// tmuxAttach is the command that attaches to the session, in a window.
func tmuxAttach(window string) []string {
	target := "=main:" // "=" means exactly: -t main also matches maintenance
	if window != "" {
		target += "=" + window
		if _, err := strconv.Atoi(window); err == nil {
			target = "=main:" + window
		}
	}
	return []string{"tmux", "-u", "attach-session", "-t", target}
}

// sshCommand runs a command over ssh; its exit code is ours.
func (a *app) sshCommand(ctx context.Context, s spec.Spec, argv, command []string) (any, error) {
	streams := a.streams()
	if a.terminal {
		a.nameTerminal()
	}
	err := a.runner.Run(ctx, process.Command{Argv: argv, Stdin: streams.In, Stdout: streams.Out, Stderr: streams.Err, Foreground: streams.Foreground})
	var exit *process.ExitError
	if errors.As(err, &exit) {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if exit.Code == sshFailed {
			return nil, fail(exitOurs, "try: agent-container attach "+s.Name+" --via exec -- "+process.Quote(command)+"; look: agent-container logs "+s.Name, "ssh to %s failed, or %s exited with 255", s.Name, command[0])
		}
		return nil, childExit(exit.Code, command[0], execAnswer{s.Name, command, exit.Code})
	}
	return execAnswer{Name: s.Name, Command: command}, afterStart(withoutSSH(s.Name, err))
}

// attachByExec attaches through the engine, which needs no published port.
func (a *app) attachByExec(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec, remote []string, session bool) (any, error) {
	container := compose.ProjectName(s.Name)
	for waited := false; session; {
		problem := probeByExec(ctx, e, s)
		if problem == nil {
			break
		}
		if err := a.awaitSession(ctx, e, s, problem, true, &waited); err != nil {
			return nil, err
		}
	}
	err := e.Exec(ctx, container, append([]string{spec.ContainerGuest, "env"}, remote...), a.streams())
	var exit *process.ExitError
	if errors.As(err, &exit) {
		if session {
			if _, err := a.afterLoss(ctx, e, c, s, 0); err != nil {
				return nil, err
			}
		}
		return nil, childExit(exit.Code, remote[0], execAnswer{s.Name, remote, exit.Code})
	}
	return execAnswer{Name: s.Name, Command: remote}, afterStart(err)
}
