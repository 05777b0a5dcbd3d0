package cli

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	ucli "github.com/urfave/cli/v2"
	"golang.org/x/crypto/ssh"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/settings"
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

// endpoint is how ssh reaches a deployment's sshd.
type sshEndpoint struct {
	Name       string `json:"name"`
	Host       string `json:"host"`
	Port       int    `json:"port"`
	User       string `json:"user"`
	KnownHosts string `json:"known_hosts"`
	Identity   string `json:"identity,omitempty"`
}

// attachAnswer is what attach prints when it connects to nothing.
type attachAnswer struct {
	sshEndpoint
	Command []string `json:"command"`

	config bool
}

func (t attachAnswer) text(w io.Writer) {
	if !t.config {
		fmt.Fprintln(w, process.Quote(t.Command))
		return
	}
	fmt.Fprintf(w, "Host %s\n", compose.ProjectName(t.Name))
	for _, o := range t.options() {
		key, value, _ := strings.Cut(o, "=")
		fmt.Fprintf(w, "    %s %s\n", key, value)
	}
	fmt.Fprintf(w, "    HostName %s\n    Port %d\n    User %s\n", t.Host, t.Port, t.User)
}

// options are ssh's, as KEY=VALUE. Nothing of the user's own configuration may
// loosen them: the first value of an option counts.
func (p sshEndpoint) options() []string {
	list := []string{
		"UserKnownHostsFile=\"" + p.KnownHosts + "\"",
		"GlobalKnownHostsFile=/dev/null",
		"HostKeyAlias=" + compose.ProjectName(p.Name), // the port may change, the key does not
		"StrictHostKeyChecking=yes",
		"UpdateHostKeys=no",
		"ForwardAgent=no",
		"ClearAllForwardings=yes",
		"ServerAliveInterval=15",
		"ConnectTimeout=10",
	}
	if p.Identity != "" {
		list = append(list, "IdentityFile=\""+p.Identity+"\"", "IdentitiesOnly=yes")
	}
	return list
}

// argv is the ssh command that runs remote, with a terminal or without.
func (p sshEndpoint) argv(terminal bool, options []string, remote ...string) []string {
	argv := []string{"ssh"}
	if terminal {
		argv = append(argv, "-t")
	} else {
		argv = append(argv, "-T")
	}
	for _, o := range append(options, p.options()...) {
		argv = append(argv, "-o", o)
	}
	return append(append(argv, "-p", strconv.Itoa(p.Port), p.User+"@"+p.Host), remote...)
}

var windowPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func (a *app) attach(ctx context.Context, c *ucli.Context) (any, error) {
	window, via := c.String("window"), c.String("via")
	switch {
	case window != "" && !windowPattern.MatchString(window):
		return nil, refuse("use a window's name or number, see: tmux list-windows", "--window: %q is not one", window)
	case via != "ssh" && via != "exec":
		return nil, refuse("use ssh or exec", "--via: %q is neither", via)
	case via == "exec" && (c.Bool("print") || c.Bool("ssh-config")):
		return nil, refuse("drop one of them", "--via exec uses no ssh")
	}
	e, found, s, err := a.named(ctx, c)
	if err != nil {
		return nil, err
	}
	if found, err = a.revive(ctx, e, found, s); err != nil {
		return nil, err
	}
	if found.State.Status != "running" {
		return nil, fail(exitNotFound, "run: agent-container start "+s.Name, "%s is %s", s.Name, found.State.Status)
	}
	remote := tmuxAttach(window)
	command := c.Args().Tail()
	if len(command) > 0 {
		remote = command
	}
	if via == "exec" {
		return a.attachByExec(ctx, e, s, remote, len(command) == 0)
	}
	p, err := a.sshEndpoint(ctx, e, found, s)
	if err != nil {
		return nil, err
	}
	argv := p.argv(a.terminal || len(command) == 0, nil, quoted(remote)...)
	if c.Bool("print") || c.Bool("ssh-config") {
		return attachAnswer{p, argv, c.Bool("ssh-config")}, nil
	}
	if len(command) == 0 {
		return a.attachBySSH(ctx, s, p, argv)
	}
	return a.sshCommand(ctx, s, argv, command)
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

// quoted is argv as one word for the shell that sshd starts.
func quoted(argv []string) []string { return []string{process.Quote(argv)} }

// sshEndpoint finds port and host key through the engine, never over the
// network, and pins the key.
func (a *app) sshEndpoint(ctx context.Context, e *engine.Engine, c *engine.Container, s spec.Spec) (sshEndpoint, error) {
	address, port, ok := c.SSH()
	if !ok {
		return sshEndpoint{}, fail(exitNotFound, "run: agent-container attach "+s.Name+" --via exec; or: agent-container redeploy "+s.Name+" --ssh", "the sshd of %s is not published", s.Name)
	}
	if ip := net.ParseIP(address); address == "" || ip != nil && ip.IsUnspecified() {
		address = "127.0.0.1"
	}
	key, err := a.hostKey(ctx, e, c)
	if err != nil {
		return sshEndpoint{}, err
	}
	p := sshEndpoint{Name: s.Name, Host: address, Port: port, User: spec.ContainerUser, KnownHosts: filepath.Join(a.dirs.Deployment(engine.LocalHost, s.Name), "known_hosts")}
	if _, err := settings.ReadRegular(a.dirs.AuthorizedKeys(), maxAccessFile); absent(err) {
		p.Identity = a.attachKeyPath()
	}
	return p, a.pin(p, key)
}

// hostKey reads the public half of the container's host key.
func (a *app) hostKey(ctx context.Context, e *engine.Engine, c *engine.Container) (ssh.PublicKey, error) {
	var key ssh.PublicKey
	path := spec.ContainerHome + "/.ssh/" + spec.HostKeyDir + "/" + spec.HostKeyFile + ".pub"
	found, err := e.CopyOut(ctx, c.ID, path, 64<<10, func(t *tar.Reader) error {
		if _, err := t.Next(); err != nil {
			return err
		}
		line, err := io.ReadAll(io.LimitReader(t, 4096))
		if err != nil {
			return err
		}
		key, _, _, _, err = ssh.ParseAuthorizedKey(line)
		return err
	})
	if err == nil && !found {
		err = errors.New("it is not there; look: agent-container logs " + c.Deployment())
	}
	if err != nil {
		return nil, fmt.Errorf("host key of %s: %w", c.Deployment(), err)
	}
	return key, nil
}

// pin writes the host key where ssh will look, once. A key that differs from the
// pinned one is refused: the container was made anew with another volume, or is
// not the one it was.
func (a *app) pin(p sshEndpoint, key ssh.PublicKey) error {
	line := compose.ProjectName(p.Name) + " " + string(ssh.MarshalAuthorizedKey(key))
	old, err := settings.ReadRegular(p.KnownHosts, maxAccessFile)
	switch {
	case err == nil && string(old) == line:
		return nil
	case err == nil:
		return refuse("if its volume was replaced on purpose, forget the old key: rm "+process.Quote([]string{p.KnownHosts}),
			"the host key of %s is not the one that was pinned in %s", p.Name, p.KnownHosts)
	case !absent(err):
		return err
	}
	if err := settings.MakePrivate(filepath.Dir(p.KnownHosts)); err != nil {
		return err
	}
	return renameio.WriteFile(p.KnownHosts, []byte(line), 0o600)
}

// Reattaching after a connection was lost.
const (
	maxReattach = 10
	aliveAfter  = 10 * time.Second // a connection that lasted so long had been up
	sshFailed   = 255              // ssh's own trouble, also a lost connection
)

// attachBySSH attaches to the session, and again when the connection is lost.
func (a *app) attachBySSH(ctx context.Context, s spec.Spec, p sshEndpoint, argv []string) (any, error) {
	if !a.terminal {
		return nil, refuse("run a command: agent-container attach "+s.Name+" -- CMD...; or: --print", "attach needs a terminal")
	}
	if err := a.probeSession(ctx, s, p); err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		began := time.Now()
		err := a.runner.Run(ctx, process.Command{Argv: argv, Stdin: a.in, Stdout: a.out, Stderr: a.err, Foreground: true})
		var exit *process.ExitError
		if !errors.As(err, &exit) || exit.Code != sshFailed {
			if exit != nil {
				return nil, childExit(exit.Code, "attach", p)
			}
			return nil, err
		}
		if time.Since(began) >= aliveAfter {
			attempt = 0
		} else if attempt == 0 {
			return nil, fail(exitFailed, "look: agent-container logs "+s.Name, "ssh could not attach to %s", s.Name)
		}
		if attempt == maxReattach {
			return nil, fail(exitFailed, "run it again", "the connection to %s was lost, and %d times not to be had again", s.Name, maxReattach)
		}
		wait := min(time.Second<<attempt, 30*time.Second)
		a.say("the connection to %s was lost; attaching again in %s", s.Name, wait)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// probeSession asks over ssh whether the session is there: attaching to none
// would end with tmux's own words, or with an empty shell.
func (a *app) probeSession(ctx context.Context, s spec.Spec, p sshEndpoint) error {
	ctx, cancel := context.WithTimeout(ctx, probeSSHTime)
	defer cancel()
	argv := p.argv(false, []string{"BatchMode=yes"}, quoted([]string{"tmux", "has-session", "-t", "=main"})...)
	err := a.runner.Run(ctx, process.Command{Argv: argv})
	var exit *process.ExitError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, process.ErrNotFound):
		return fail(exitFailed, "install OpenSSH's client, or: agent-container attach "+s.Name+" --via exec", "no ssh on PATH")
	case errors.As(err, &exit) && exit.Code == sshFailed:
		return fail(exitFailed, "is your key among those of: agent-container access list "+s.Name+"; otherwise: agent-container attach "+s.Name+" --via exec",
			"ssh to %s: %w", s.Name, err)
	case exit != nil:
		return noSession(s.Name)
	}
	return fmt.Errorf("ssh to %s: %w", s.Name, err)
}

// probeSSHTime bounds the question whether the session is there.
const probeSSHTime = 20 * time.Second

func noSession(name string) *failure {
	return fail(exitNotFound, "begin it anew: agent-container redeploy "+name, "nothing is running in %s: its session main is gone", name)
}

// sshCommand runs a command over ssh; its exit code is ours.
func (a *app) sshCommand(ctx context.Context, s spec.Spec, argv, command []string) (any, error) {
	streams := a.streams()
	err := a.runner.Run(ctx, process.Command{Argv: argv, Stdin: streams.In, Stdout: streams.Out, Stderr: streams.Err, Foreground: streams.Foreground})
	var exit *process.ExitError
	if errors.As(err, &exit) {
		if exit.Code == sshFailed {
			return nil, fail(exitOurs, "look: agent-container logs "+s.Name, "ssh to %s failed, or %s exited with 255", s.Name, command[0])
		}
		return nil, childExit(exit.Code, command[0], execAnswer{s.Name, command, exit.Code})
	}
	return execAnswer{Name: s.Name, Command: command}, afterStart(err)
}

// attachByExec attaches through the engine, which needs no published port.
func (a *app) attachByExec(ctx context.Context, e *engine.Engine, s spec.Spec, remote []string, session bool) (any, error) {
	container := compose.ProjectName(s.Name)
	if session {
		if !a.terminal {
			return nil, refuse("run a command: agent-container attach "+s.Name+" --via exec -- CMD...", "attach needs a terminal")
		}
		if _, err := e.Probe(ctx, container, spec.ContainerGuest, "env", "tmux", "has-session", "-t", "=main"); err != nil {
			var exit *process.ExitError
			if errors.As(err, &exit) {
				return nil, noSession(s.Name)
			}
			return nil, err
		}
	}
	err := e.Exec(ctx, container, append([]string{spec.ContainerGuest, "env"}, remote...), a.streams())
	var exit *process.ExitError
	if errors.As(err, &exit) {
		return nil, childExit(exit.Code, remote[0], execAnswer{s.Name, remote, exit.Code})
	}
	return execAnswer{Name: s.Name, Command: remote}, afterStart(err)
}
