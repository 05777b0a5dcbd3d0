package cli

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/crypto/ssh"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// sshEndpoint is how ssh reaches a deployment's sshd.
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
		"ControlPath=none", // a connection that is kept may be another container's
		"ServerAliveInterval=15",
		"ConnectTimeout=5", // well below aliveAfter
	}
	if p.Identity != "" {
		list = append(list, "IdentityFile=\""+p.Identity+"\"", "IdentitiesOnly=yes")
	}
	return list
}

// argv is the ssh command that runs a line of shell, with a terminal or without.
func (p sshEndpoint) argv(terminal bool, line string) []string {
	argv := []string{"ssh"}
	if terminal {
		argv = append(argv, "-t")
	} else {
		argv = append(argv, "-T")
	}
	for _, o := range p.options() {
		argv = append(argv, "-o", o)
	}
	return append(argv, "-p", strconv.Itoa(p.Port), p.User+"@"+p.Host, line)
}

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
