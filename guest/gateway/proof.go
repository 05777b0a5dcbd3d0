package gateway

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"github.com/agent-container/agent-container/spec"
)

const nonceBytes = 32

// proofTime bounds one exchange.
const proofTime = 2 * time.Second

// proofs are the connections of those who ask for the proof. They have places of
// their own: an agent that opens ever more connections must not make its container
// take the gateway for gone. When they are too many, who has waited longest has had
// time to ask and is cut off.
type proofs struct {
	limit int
	mu    sync.Mutex
	open  []*net.TCPConn
}

func (p *proofs) begin(conn *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open) == p.limit {
		abort(p.open[0])
		p.open = slices.Delete(p.open, 0, 1)
	}
	p.open = append(p.open, conn)
}

func (p *proofs) end(conn *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(c *net.TCPConn) bool { return c == conn })
}

// prove answers whoever connects to an address that nobody has: only a gateway
// with the deployment's key can.
func (g *gateway) prove(conn *net.TCPConn) {
	defer abort(conn)
	defer g.proofs.end(conn)
	_ = conn.SetDeadline(time.Now().Add(proofTime))
	nonce := make([]byte, nonceBytes)
	if _, err := io.ReadFull(conn, nonce); err != nil {
		return
	}
	if _, err := conn.Write(proof(g.key, nonce)); err == nil {
		_ = conn.Close()
	}
}

func proof(key, nonce []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("agent-container gateway\x00"))
	h.Write(nonce)
	return h.Sum(nil)
}

// Prove returns nil when whoever calls it is behind the gateway with key: it is
// answered at an address that nobody has, a name that nobody may declare is
// refused, and so is IPv6. It does not believe that a rule is in force because
// somebody says so.
func Prove(ctx context.Context, key []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 3*proofTime)
	defer cancel()
	if err := proveKey(ctx, key); err != nil {
		return fmt.Errorf("the gateway does not answer: %w", err)
	}
	if err := proveDNS(ctx); err != nil {
		return err
	}
	return proveNoIPv6(ctx)
}

// proofTries is how often the proof is asked for: whoever is too slow, where many
// ask and say nothing, loses its place.
const proofTries = 10

func proveKey(ctx context.Context, key []byte) (err error) {
	for range proofTries {
		if err = askProof(ctx, key); !errors.Is(err, syscall.ECONNRESET) {
			return err
		}
	}
	return err
}

func askProof(ctx context.Context, key []byte) error {
	dialer := net.Dialer{Timeout: proofTime}
	conn, err := dialer.DialContext(ctx, "tcp4", spec.GatewayProof.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(proofTime))
	nonce := make([]byte, nonceBytes)
	if _, err := rand.Read(nonce); err != nil {
		return err
	}
	if _, err := conn.Write(nonce); err != nil {
		return err
	}
	answer := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if !hmac.Equal(answer, proof(key, nonce)) {
		return errors.New("it has another key")
	}
	return nil
}

// proveDNS asks for the canary: every resolver that programs here would ask, and
// one that nobody has. REFUSED is what only a gateway answers to it.
func proveDNS(ctx context.Context) error {
	servers := []string{netip.AddrPortFrom(spec.GatewayProof.Addr(), 53).String()}
	if text, err := os.ReadFile("/etc/resolv.conf"); err == nil {
		engine, _ := resolvers(string(text))
		servers = append(servers, engine...)
	}
	for _, server := range servers {
		answer, err := askCanary(ctx, server)
		switch {
		case err != nil:
			return fmt.Errorf("the gateway does not answer questions to %s: %w", server, err)
		case answer.Rcode != dns.RcodeRefused:
			return fmt.Errorf("a name that nobody may ask for is not refused by %s but %s", server, dns.RcodeToString[answer.Rcode])
		}
	}
	return nil
}

// canaryTries is how often the canary is asked for within the time of an exchange:
// where a program floods the gateway with questions, datagrams get lost.
const canaryTries = 10

func askCanary(ctx context.Context, server string) (answer *dns.Msg, err error) {
	client := dns.Client{Timeout: proofTime / canaryTries}
	for range canaryTries {
		answer, _, err = client.ExchangeContext(ctx, new(dns.Msg).SetQuestion(spec.GatewayCanary+".", dns.TypeA), server)
		var netErr net.Error
		if err == nil || !errors.As(err, &netErr) || !netErr.Timeout() || ctx.Err() != nil {
			return answer, err
		}
	}
	return nil, err
}

// proveNoIPv6 connects to a documentation address (RFC 3849): that must fail at
// once, and not for want of an answer.
func proveNoIPv6(ctx context.Context) error {
	dialer := net.Dialer{Timeout: proofTime}
	conn, err := dialer.DialContext(ctx, "tcp6", "[2001:db8::1]:1")
	if err == nil {
		conn.Close()
		return errors.New("IPv6 is open")
	}
	var late interface{ Timeout() bool }
	if errors.As(err, &late) && late.Timeout() {
		return errors.New("IPv6 is not refused: a packet went somewhere")
	}
	return nil
}
