// Package gateway enforces what may leave a network namespace. Every name that
// was declared has an address of its own here; every TCP connection is redirected
// to one listener, which maps the address back to the name, checks port and first
// bytes, and dials that name itself. What a client believes about addresses
// counts for nothing.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// Config is what a gateway needs. It does not change while it runs: another
// policy is another gateway.
type Config struct {
	Policy    *spec.Policy // nil is refused: no policy is no gateway
	Key       []byte       // with which it proves itself; 32 bytes
	Local     []string     // names of what is in the namespace itself, canonical
	Inbound   []uint16     // ports that may be reached from outside
	Resolvers string       // the resolv.conf with whom it asks; /etc/resolv.conf when empty
	Journal   io.Writer    // takes a line of JSON for every decision
}

type gateway struct {
	policy    *spec.Policy
	local     []string
	key       []byte
	addresses *addresses
	journal   *journal
	outward   *outward
	slots     chan struct{}
	web       chan struct{}
	splices   splices
	proofs    proofs
}

// How the collector works, unless somebody has said otherwise. A gateway makes little
// garbage and there is one for every deployment: it collects sooner than Go would.
// memoryAim is where it works harder still, well below what a gateway's container may
// have: the rest is the kernel's, for sockets.
const (
	collectAt = 50
	memoryAim = 192 << 20
)

// Run closes the namespace, then serves it until ctx is over. It returns an error
// when the rules cannot be installed exactly, or a server ends. The rules stay:
// without a gateway nothing leaves.
func Run(ctx context.Context, c Config) error {
	g, err := closed(c)
	if err != nil {
		return err
	}
	return g.serve(ctx)
}

// closed closes the namespace and returns the gateway that may serve it.
func closed(c Config) (*gateway, error) {
	if c.Policy == nil || len(c.Key) < 32 {
		return nil, errors.New("a gateway needs a policy and a key")
	}
	if err := c.Policy.Validate(); err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	if err := install(c.Inbound); err != nil {
		return nil, err
	}
	out, err := newOutward(cmp.Or(c.Resolvers, "/etc/resolv.conf"))
	if err != nil {
		return nil, err
	}
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(collectAt)
		debug.SetMemoryLimit(memoryAim)
	}
	connections, pipes, proving := limits()
	return &gateway{
		policy: c.Policy, local: c.Local, key: c.Key, addresses: newAddresses(c.Policy), journal: newJournal(c.Journal, time.Now),
		outward: out, slots: make(chan struct{}, connections), web: make(chan struct{}, maxWeb), splices: make(splices, pipes),
		proofs: proofs{limit: proving},
	}, nil
}

// serve runs the servers; when one ends, all do.
func (g *gateway) serve(ctx context.Context) error {
	defer g.journal.flush()
	local := net.IPv4(127, 0, 0, 1)
	tcp, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: local, Port: tcpPort})
	if err != nil {
		return err
	}
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: local, Port: dnsPort})
	if err != nil {
		return errors.Join(err, tcp.Close())
	}
	questions, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: local, Port: dnsPort})
	if err != nil {
		return errors.Join(err, tcp.Close(), udp.Close())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, server := range []func() error{
		func() error { return g.serveTCP(ctx, tcp) },
		func() error { return g.serveDNS(ctx, udp, questions) },
	} {
		wg.Go(func() {
			err := server()
			if err == nil && ctx.Err() == nil {
				err = errors.New("a server of the gateway has ended")
			}
			cancel(err)
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Verify compares the kernel's rules with those of a gateway with these inbound
// ports: for its health check, which asks whether it enforces and not whether it
// lives.
func Verify(inbound []uint16) error { return verify(inbound) }
