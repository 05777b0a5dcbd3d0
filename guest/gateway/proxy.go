package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agent-container/agent-container/spec"
)

// What is open at one time, at most. Each of these bounds keeps the gateway's
// memory in bounds too, whoever fills it.
const (
	maxConnections = 2048
	maxWeb         = 256 // of them, to port 80: a head that is read takes many times its length
	maxSplices     = 64  // directions in which the kernel moves bytes through a pipe
	maxProofs      = 256 // who ask for the proof
)

// limits are the bounds for the descriptors that there are: a connection takes two,
// a pipe two; the rest is for questions and for what is inside.
func limits() (connections, splices, proofs int) {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		limit.Cur = 1024
	}
	files := int(min(limit.Cur, 1<<20))
	return max(min(files/5, maxConnections), 1), min(files/16, maxSplices), max(min(files/8, maxProofs), 1)
}

// helloTime is how long the first bytes of a connection may take.
const helloTime = 10 * time.Second

// serveTCP takes every connection of the namespace that was redirected here.
func (g *gateway) serveTCP(ctx context.Context, l *net.TCPListener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		conn, err := l.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			time.Sleep(acceptPause) // out of descriptors, most likely; what is open goes on
			continue
		}
		to, err := originalDestination(conn)
		switch {
		case err != nil:
			g.journal.write(Decision{Verdict: spec.Denied, Stage: spec.StageAddress, Reason: spec.Printable(err.Error(), 200)})
			abort(conn)
		case to == spec.GatewayProof:
			g.proofs.begin(conn)
			wg.Go(func() { g.prove(conn) })
			runtime.Gosched() // before a next one may take its place
		case !take(g.slots):
			g.journal.write(Decision{Verdict: spec.Denied, Stage: spec.StageLimit, Reason: "too many connections"})
			abort(conn)
		default:
			wg.Go(func() {
				defer func() { <-g.slots }()
				g.handle(ctx, conn, to)
			})
		}
	}
}

// take takes one of a bounded number of places, if one is free.
func take(places chan struct{}) bool {
	select {
	case places <- struct{}{}:
		return true
	default:
		return false
	}
}

// acceptPause is how long a listener waits after an error.
const acceptPause = 50 * time.Millisecond

// abort ends a connection at once, with a reset: whoever made it must not take it
// for an answer. What was written and is not sent yet is lost.
func abort(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// handle decides on one connection by where it was going.
func (g *gateway) handle(ctx context.Context, conn *net.TCPConn, to netip.AddrPort) {
	defer abort(conn) // once it was closed in order, this does nothing
	stop := context.AfterFunc(ctx, func() { abort(conn) })
	defer stop()
	name, rule, ok := g.decide(to)
	if !ok {
		return
	}
	switch {
	case name != "" && rule.Port == 443:
		g.tls(ctx, conn, name, rule)
	case name != "" && rule.Port == 80:
		if !take(g.web) {
			g.journal.write(Decision{Verdict: spec.Denied, Stage: spec.StageLimit, Name: name, Port: rule.Port, Reason: "too many connections to port 80"})
			return
		}
		defer func() { <-g.web }()
		g.http(ctx, conn, name, rule, func(ctx context.Context) (net.Conn, error) { return g.connect(ctx, name, rule) })
	default:
		g.open(ctx, conn, nil, name, rule)
	}
}

// advised is what a rule is from that an advisory gateway makes for what no rule
// permits.
const advised = "advisory"

// decide finds the name that an address stands for and the rule that permits it.
func (g *gateway) decide(to netip.AddrPort) (name string, rule spec.Rule, ok bool) {
	port := int(to.Port())
	name, known := g.addresses.name(to.Addr())
	d := Decision{Verdict: verdict(g.policy), Stage: spec.StagePort, Name: name, Port: port, Reason: "not declared"}
	if !known {
		if rule, ok = g.policy.MatchAddress(to.Addr(), port); ok {
			return "", rule, true
		}
		d.Stage, d.Address = spec.StageAddress, to.Addr().String()
		rule = spec.Rule{Address: to.Addr(), Port: port, Private: true, From: advised}
		if ok = g.policy.Enforcement == spec.Advisory && spec.Dialable(to.Addr()); !ok {
			d.Verdict = spec.Denied
		}
		g.journal.write(d)
		return "", rule, ok
	}
	if rule, ok = g.policy.Match(name, port); ok {
		return name, rule, true
	}
	g.journal.write(d)
	return name, spec.Rule{Name: name, Port: port, From: advised}, g.policy.Enforcement == spec.Advisory
}

// open connects to where the rule says and passes bytes both ways, untouched.
// first is what was read from the client to decide.
func (g *gateway) open(ctx context.Context, conn *net.TCPConn, first []byte, name string, rule spec.Rule) {
	out, err := g.connect(ctx, name, rule)
	if err != nil {
		return
	}
	defer abort(out)
	stop := context.AfterFunc(ctx, func() { abort(out) })
	defer stop()
	if _, err := out.Write(first); err == nil {
		g.splices.relay(conn, out)
	}
}

// connect dials and says how that went.
func (g *gateway) connect(ctx context.Context, name string, rule spec.Rule) (*net.TCPConn, error) {
	d := Decision{Verdict: spec.Allowed, Stage: spec.StageOpen, Name: name, Port: rule.Port, Rule: rule.String()}
	if rule.From == advised {
		d.Verdict, d.Rule = verdict(g.policy), ""
	}
	if name == "" {
		d.Address = rule.Address.String()
	}
	out, err := g.outward.connect(ctx, name, rule)
	if err != nil {
		var at stageError
		errors.As(err, &at)
		d.Verdict, d.Stage, d.Reason = spec.Denied, at.stage, spec.Printable(err.Error(), 300)
	}
	g.journal.write(d)
	return out, err
}
