package cli

import (
	"context"
	"net"
	"strconv"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// sshPort is the host's port for the sshd of a deployment: the one it has, else
// a free one of the range. Until release nobody else chooses. refused are ports
// that the engine could not publish.
func (a *app) sshPort(ctx context.Context, e *engine.Engine, s spec.Spec, old *engine.Container, refused ...int) (port int, release func(), err error) {
	if !s.HasSSH() {
		return 0, func() {}, nil
	}
	if old != nil && len(refused) == 0 {
		if _, had, ok := old.SSH(); ok {
			return had, func() {}, nil
		}
	}
	ports, err := compose.ParsePortRange(a.settings.Get("ssh_ports").Text)
	if err != nil {
		return 0, nil, err
	}
	if release, err = a.waitLock(ctx, "ports"); err != nil {
		return 0, nil, err
	}
	all, err := e.Containers(ctx, "") // also stopped ones: they will want theirs back
	if err != nil {
		release()
		return 0, nil, err
	}
	taken := map[int]bool{}
	for _, p := range refused {
		taken[p] = true
	}
	for _, c := range all {
		if _, p, ok := c.SSH(); ok {
			taken[p] = true
		}
	}
	port, err = ports.Free(func(p int) bool { return taken[p] || !canListen(s.SSHBind, p) })
	if err != nil {
		release()
		return 0, nil, fail(exitFailed, "widen ssh_ports in settings.yaml", "%w", err)
	}
	return port, release, nil
}

// canListen reports whether nobody on this host listens on a port already.
func canListen(address string, port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
