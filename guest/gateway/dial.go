package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-container/agent-container/spec"
)

// Times of one connection's beginning.
const (
	resolveTime = 10 * time.Second
	dialTime    = 15 * time.Second
)

// outward makes the gateway's own connections, marked, so that its rules let them
// out.
type outward struct {
	dialer   net.Dialer
	resolver net.Resolver
}

func newOutward() *outward {
	o := &outward{dialer: net.Dialer{Timeout: dialTime, Control: setMark}}
	// The engine's resolver, as /etc/resolv.conf says; marked, as all else would
	// come back to our own.
	o.resolver = net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		return o.dialer.DialContext(ctx, network, address)
	}}
	return o
}

func setMark(_, _ string, c syscall.RawConn) error {
	var err error
	return errors.Join(c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, ownMark) }), err)
}

// stageError is an error with the stage of the decision that it is.
type stageError struct {
	stage string
	error
}

// connect resolves the name of a rule and dials the first of its addresses that
// answers and may be dialled. What was checked is what is dialled: nobody looks
// the name up again in between.
func (o *outward) connect(ctx context.Context, name string, rule spec.Rule) (*net.TCPConn, error) {
	candidates := []netip.Addr{rule.Address}
	if !rule.Address.IsValid() {
		var err error
		if candidates, err = o.lookup(ctx, name, rule.Private); err != nil {
			return nil, stageError{stageResolve, err}
		}
	}
	var last error
	for _, addr := range candidates {
		conn, err := o.dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(addr, uint16(rule.Port)).String())
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
		last = err
	}
	return nil, stageError{stageDial, last}
}

// maxAddresses is how many of a name's addresses are tried.
const maxAddresses = 4

// lookup returns the IPv4 addresses of name that may be dialled.
func (o *outward) lookup(ctx context.Context, name string, private bool) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	// With the dot at its end no search domain is tried.
	all, err := o.resolver.LookupNetIP(ctx, "ip4", name+".")
	if err != nil {
		return nil, err
	}
	var usable []netip.Addr
	for _, addr := range all {
		if addr = addr.Unmap(); private && dialable(addr) || spec.Public(addr) {
			usable = append(usable, addr)
		}
	}
	if len(usable) == 0 {
		return nil, fmt.Errorf("%s leads to %s, which is not public", name, all[0].Unmap())
	}
	return usable[:min(len(usable), maxAddresses)], nil
}

// dialable reports whether a declared private address may be dialled: not the
// gateway itself, nor what a machine keeps for its guests alone.
func dialable(addr netip.Addr) bool {
	return addr.IsValid() && !addr.IsLoopback() && !addr.IsUnspecified() && !addr.IsMulticast() && !addr.IsLinkLocalUnicast() && !spec.GatewayPool.Contains(addr)
}
