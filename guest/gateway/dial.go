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
	dialTime    = 15 * time.Second // for all addresses of a name together
)

// outward makes the gateway's own connections, marked, so that its rules let them
// out.
type outward struct {
	dialer   net.Dialer
	upstream *upstream
}

func newOutward(resolvConf string) (*outward, error) {
	o := &outward{dialer: net.Dialer{Control: setMark}}
	var err error
	o.upstream, err = newUpstream(resolvConf, o.dialer)
	return o, err
}

func setMark(_, _ string, c syscall.RawConn) error {
	var markErr error
	err := c.Control(func(fd uintptr) { markErr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, ownMark) })
	return errors.Join(err, markErr)
}

// stageError is an error with the stage of the decision that it is.
type stageError struct {
	stage spec.Stage
	error
}

// connect resolves the name of a rule and dials the first of its addresses that
// answers and may be dialled. What was checked is what is dialled: nobody looks
// the name up again in between.
func (o *outward) connect(ctx context.Context, name string, rule spec.Rule) (*net.TCPConn, error) {
	candidates, err := o.candidates(ctx, name, rule)
	if err != nil {
		return nil, stageError{spec.StageResolve, err}
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	for i, addr := range candidates {
		var conn net.Conn
		if conn, err = o.dial(ctx, netip.AddrPortFrom(addr, uint16(rule.Port)), len(candidates)-i); err == nil {
			return conn.(*net.TCPConn), nil
		}
	}
	return nil, stageError{spec.StageDial, err}
}

// dial gives one of the addresses that are left its share of the time that is.
func (o *outward) dial(ctx context.Context, to netip.AddrPort, left int) (net.Conn, error) {
	end, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
	defer cancel()
	return o.dialer.DialContext(ctx, "tcp4", to.String())
}

// maxAddresses is how many of a name's addresses are tried.
const maxAddresses = 4

// candidates returns the addresses that a rule leads to and that may be dialled.
func (o *outward) candidates(ctx context.Context, name string, rule spec.Rule) ([]netip.Addr, error) {
	all := []netip.Addr{rule.Address}
	if !rule.Address.IsValid() {
		var err error
		if all, err = o.upstream.lookup(ctx, name); err != nil {
			return nil, err
		}
	}
	var usable []netip.Addr
	for _, addr := range all {
		if rule.Private && spec.Dialable(addr) || spec.Public(addr) {
			usable = append(usable, addr)
		}
	}
	switch {
	case len(usable) > 0:
		return usable[:min(len(usable), maxAddresses)], nil
	case rule.Private:
		return nil, fmt.Errorf("%s is an address that no rule can open", all[0])
	}
	return nil, fmt.Errorf("%s leads to %s, which is not public", name, all[0])
}
