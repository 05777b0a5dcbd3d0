package gateway

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/agent-container/agent-container/spec"
)

// answerTTL is how long a program may keep an answer. The address stands for the
// name as long as the gateway lives.
const answerTTL = 60

// The DNS server answers so many questions at a time; what is more is refused.
const maxQuestions = 256

// resolver answers the namespace's questions. Nothing that is asked leaves it:
// permitted names have an address here, all others are refused.
type resolver struct {
	policy    *spec.Policy
	local     []string
	addresses *addresses
	journal   *journal
	slots     chan struct{}
}

func (g *gateway) newResolver() *resolver {
	return &resolver{policy: g.policy, local: g.local, addresses: g.addresses, journal: g.journal, slots: make(chan struct{}, maxQuestions)}
}

// ServeDNS answers one question.
func (r *resolver) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	default:
		_ = w.WriteMsg(refusal(q))
		return
	}
	_ = w.WriteMsg(r.answer(q)) // who asked may be gone
}

// answer makes the answer: A for a permitted name, nothing of another type for
// it, and REFUSED for every other name and kind of question.
func (r *resolver) answer(q *dns.Msg) *dns.Msg {
	if q.Response || q.Opcode != dns.OpcodeQuery || len(q.Question) != 1 || q.Question[0].Qclass != dns.ClassINET {
		return refusal(q)
	}
	asked := q.Question[0]
	name, err := spec.CanonicalName(asked.Name)
	if name == spec.GatewayCanary { // whatever is declared, and whatever a service is called
		return refusal(q)
	}
	if err != nil {
		r.journal.write(Decision{Verdict: spec.Denied, Stage: spec.StageDNS, Name: spec.Printable(asked.Name, 300), Reason: "not a name that could be declared"})
		return refusal(q)
	}
	if !r.policy.Knows(name) {
		if slices.Contains(r.local, name) {
			return found(q, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
		}
		r.journal.write(Decision{Verdict: verdict(r.policy), Stage: spec.StageDNS, Name: name, Reason: "not declared"})
		if r.policy.Enforcement != spec.Advisory {
			return refusal(q)
		}
	}
	addr, ok := r.addresses.of(name)
	if !ok {
		r.journal.write(Decision{Verdict: spec.Denied, Stage: spec.StageLimit, Name: name, Reason: "too many names"})
		return refusal(q)
	}
	return found(q, addr)
}

// found is the answer for a name with an address: none of another type than A.
func found(q *dns.Msg, addr netip.Addr) *dns.Msg {
	asked := q.Question[0]
	m := new(dns.Msg).SetReply(q)
	m.RecursionAvailable, m.Compress = true, true // a long name stands in it once
	if asked.Qtype == dns.TypeA || asked.Qtype == dns.TypeANY {
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: asked.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: answerTTL}, A: net.IP(addr.AsSlice())}}
	}
	return m
}

// verdict is what becomes of what no rule permits.
func verdict(p *spec.Policy) spec.Verdict {
	if p.Enforcement == spec.Advisory {
		return spec.Advised
	}
	return spec.Denied
}

// refusal is REFUSED, and not that there is no such name: a program must not
// take the one for the other.
func refusal(q *dns.Msg) *dns.Msg {
	m := new(dns.Msg)
	m.SetRcode(q, dns.RcodeRefused)
	return m
}

// serveDNS answers on both transports until ctx is over.
func (g *gateway) serveDNS(ctx context.Context, udp net.PacketConn, tcp net.Listener) error {
	r, q := g.newResolver(), make(queue, maxQuestions)
	servers := []*dns.Server{
		{PacketConn: udp, Handler: r, UDPSize: dns.MinMsgSize, DecorateReader: q.reader, DecorateWriter: q.writer},
		{Listener: newFew(tcp, maxTCP), Handler: r, ReadTimeout: idleTCP, WriteTimeout: idleTCP, IdleTimeout: func() time.Duration { return idleTCP }, MaxTCPQueries: 100},
	}
	defer func() { _, _ = udp.Close(), tcp.Close() }() // of one that never started
	var wg sync.WaitGroup
	var err error
	errs := make(chan error, len(servers))
	for _, s := range servers {
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		wg.Go(func() { errs <- s.ActivateAndServe() })
		select { // a server that has not started cannot be shut down
		case <-started:
		case err = <-errs:
		}
	}
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-errs:
		}
	}
	for _, s := range servers {
		_ = s.Shutdown() // it may be down already
	}
	wg.Wait()
	return err
}

// queue are the datagrams that were read and that nobody works on yet. The server
// begins a goroutine for each that it reads: where they come faster than they are
// answered, those that find no place are lost, as datagrams may be, and cost no
// more than to be read. The canary waits for a place.
type queue chan struct{}

func (q queue) reader(r dns.Reader) dns.Reader { return shedding{r, q} }

func (q queue) writer(w dns.Writer) dns.Writer {
	<-q // its goroutine has begun
	return w
}

type shedding struct {
	dns.Reader
	queue queue
}

// canary is the canary's name as it stands in a question.
var canary = func() []byte {
	b := make([]byte, len(spec.GatewayCanary)+2)
	if _, err := dns.PackDomainName(spec.GatewayCanary+".", b, 0, nil, false); err != nil {
		panic(err)
	}
	return b
}()

func (s shedding) ReadUDP(conn *net.UDPConn, timeout time.Duration) ([]byte, *dns.SessionUDP, error) {
	for {
		b, session, err := s.Reader.ReadUDP(conn, timeout)
		switch {
		case err != nil || len(b) < headerSize: // for which no goroutine begins
			return b, session, err
		case take(s.queue):
			return b, session, nil
		case bytes.HasPrefix(b[headerSize:], canary):
			s.queue <- struct{}{}
			return b, session, nil
		}
	}
}

// headerSize is the length of a message's head, before its question.
const headerSize = 12

// Questions over TCP: so many connections at a time, each for so long without a
// question. What is more waits.
const (
	maxTCP  = 64
	idleTCP = 3 * time.Second
)

// few is a listener with a bounded number of open connections.
type few struct {
	net.Listener
	slots chan struct{}
}

func newFew(l net.Listener, limit int) *few { return &few{l, make(chan struct{}, limit)} }

func (f *few) Accept() (net.Conn, error) {
	f.slots <- struct{}{}
	conn, err := f.Listener.Accept()
	if err != nil {
		<-f.slots
		if !errors.Is(err, net.ErrClosed) {
			time.Sleep(acceptPause) // whoever asks again does so at once
		}
		return nil, err
	}
	return &oneOfFew{Conn: conn, free: sync.OnceFunc(func() { <-f.slots })}, nil
}

type oneOfFew struct {
	net.Conn
	free func()
}

func (c *oneOfFew) Close() error {
	defer c.free()
	return c.Conn.Close()
}
