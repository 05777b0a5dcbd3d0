package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// upstream finds the addresses of names for the gateway itself. It reads its
// resolv.conf once, and /etc/hosts never: in /etc both files are those of the
// services too, and who is root there can write to them.
type upstream struct {
	engine []string // the resolvers of resolv.conf: the engine's own, which knows the containers' names
	beyond []string // those that the engine's asks, if it would ask them from in here
	dialer net.Dialer
	now    func() time.Time
	mu     sync.Mutex
	known  map[string]*known
}

// known is what is known about a name, or will be in a moment: whoever asks
// meanwhile waits for the same answer.
type known struct {
	ready     chan struct{}
	addresses []netip.Addr
	err       error
	until     time.Time
}

// questionTime is how long one resolver may take.
const questionTime = 2 * time.Second

// maxKept is how long an answer is kept at most, whatever it says itself.
const maxKept = time.Minute

func newUpstream(path string, dialer net.Dialer) (*upstream, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the resolvers: %w", err)
	}
	u := &upstream{dialer: dialer, now: time.Now, known: map[string]*known{}}
	u.engine, u.beyond = resolvers(string(text))
	return u, nil
}

// engineResolver is Docker's, which its rules in the namespace make unreachable for
// whoever would listen there.
var engineResolver = netip.AddrFrom4([4]byte{127, 0, 0, 11})

// resolvers reads what Docker writes. Its own resolver, 127.0.0.11, asks others
// out of the container's network namespace (measured with 26.1), where our rules
// lead its questions back to us. So those that it would ask are asked directly:
// it names them in a comment, and those that it asks from the machine's namespace
// as host(ADDRESS).
func resolvers(text string) (engine, beyond []string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 2 && fields[0] == "nameserver":
			// Any program here could be another resolver on the loopback.
			if addr, err := netip.ParseAddr(fields[1]); err == nil && (!addr.IsLoopback() || addr == engineResolver) {
				engine = append(engine, netip.AddrPortFrom(addr, 53).String())
			}
		case len(fields) > 2 && fields[0] == "#" && fields[1] == "ExtServers:":
			for _, f := range fields[2:] {
				if addr, err := netip.ParseAddr(strings.Trim(f, "[]")); err == nil {
					beyond = append(beyond, netip.AddrPortFrom(addr, 53).String())
				}
			}
		}
	}
	return engine, beyond
}

// lookup returns the IPv4 addresses of name, which is canonical.
func (u *upstream) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	k := u.kept(name)
	select {
	case <-k.ready:
		return k.addresses, k.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: %w", name, ctx.Err())
	}
}

// kept returns what is known about name, and begins to find it out if nothing is.
func (u *upstream) kept(name string) *known {
	u.mu.Lock()
	defer u.mu.Unlock()
	if k := u.known[name]; k != nil && (k.until.IsZero() || u.now().Before(k.until)) {
		return k
	}
	if len(u.known) >= maxNames { // what is waited for is not lost by this
		clear(u.known)
	}
	k := &known{ready: make(chan struct{})}
	u.known[name] = k
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
		defer cancel()
		answer, err := u.resolve(ctx, name)
		var ttl time.Duration
		if err == nil {
			k.addresses, ttl, err = addressesIn(answer)
		}
		k.err = err
		u.mu.Lock()
		k.until = u.now().Add(min(ttl, maxKept)) // of what went wrong, nothing is kept
		u.mu.Unlock()
		close(k.ready)
	}()
	return k
}

// resolve asks the resolvers one after another, and then once more.
func (u *upstream) resolve(ctx context.Context, name string) (*dns.Msg, error) {
	servers := u.beyond
	if len(servers) == 0 || !strings.Contains(name, ".") { // a container's name has no dot
		servers = u.engine
	}
	err := errors.New("there is no resolver")
	for range 2 {
		for _, server := range servers {
			var answer *dns.Msg
			if answer, err = u.ask(ctx, name, server); err == nil {
				return answer, nil
			}
			var final noSuchName
			if errors.As(err, &final) || ctx.Err() != nil {
				return nil, err
			}
		}
	}
	return nil, err
}

// noSuchName is an answer after which nobody else is asked.
type noSuchName string

func (n noSuchName) Error() string { return string(n) + ": no such name" }

// ask asks one server, over TCP what does not fit into a datagram.
func (u *upstream) ask(ctx context.Context, name, server string) (*dns.Msg, error) {
	question := new(dns.Msg).SetQuestion(name+".", dns.TypeA)
	client := dns.Client{Timeout: questionTime, Dialer: u.from(server, "udp")}
	answer, _, err := client.ExchangeContext(ctx, question, server)
	if err == nil && answer.Truncated {
		client.Net, client.Dialer = "tcp", u.from(server, "tcp")
		answer, _, err = client.ExchangeContext(ctx, question, server)
	}
	switch {
	case err != nil:
		return nil, err
	case !answer.Response || len(answer.Question) != 1 || !strings.EqualFold(answer.Question[0].Name, name+"."):
		return nil, fmt.Errorf("%s answers another question", server)
	case answer.Rcode == dns.RcodeNameError:
		return nil, noSuchName(name)
	case answer.Rcode != dns.RcodeSuccess:
		return nil, fmt.Errorf("%s answers %s", server, dns.RcodeToString[answer.Rcode])
	}
	return answer, nil
}

// ownLoopback is where questions to a resolver on the loopback come from. The
// kernel decides about a redirect once for each pair of addresses and ports, and
// keeps to it for a while: from 127.0.0.1, where programs' questions come from, one
// of ours would now and then be taken for theirs, or one of theirs for ours.
var ownLoopback = netip.AddrFrom4([4]byte{127, 73, 0, 1})

func (u *upstream) from(server, network string) *net.Dialer {
	d := u.dialer
	if to, err := netip.ParseAddrPort(server); err != nil || !to.Addr().Is4() || !to.Addr().IsLoopback() {
		return &d
	}
	d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(ownLoopback, 0))
	if network == "tcp" {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(ownLoopback, 0))
	}
	return &d
}

// maxAliases is how many names may stand between a name and its address.
const maxAliases = 16

// addressesIn follows the aliases of the name that was asked for, within the
// answer, and returns the addresses of where they end, and for how long they may
// be kept. What belongs to other names counts for nothing.
func addressesIn(answer *dns.Msg) (list []netip.Addr, ttl time.Duration, err error) {
	aliases, found := map[string]string{}, map[string][]netip.Addr{}
	ttl = maxKept
	for _, rr := range answer.Answer {
		owner := strings.ToLower(rr.Header().Name)
		ttl = min(ttl, time.Duration(rr.Header().Ttl)*time.Second)
		switch r := rr.(type) {
		case *dns.CNAME:
			aliases[owner] = strings.ToLower(r.Target)
		case *dns.A:
			if addr, ok := netip.AddrFromSlice(r.A); ok {
				found[owner] = append(found[owner], addr.Unmap())
			}
		}
	}
	asked := strings.ToLower(answer.Question[0].Name)
	for owner, n := asked, 0; n <= maxAliases; n++ {
		if list := found[owner]; len(list) > 0 {
			return list, ttl, nil
		}
		next, ok := aliases[owner]
		if !ok {
			return nil, 0, fmt.Errorf("%s has no IPv4 address", strings.TrimSuffix(asked, "."))
		}
		owner = next
	}
	return nil, 0, fmt.Errorf("%s leads from name to name without end", strings.TrimSuffix(asked, "."))
}
