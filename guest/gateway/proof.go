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
	"time"

	"github.com/miekg/dns"

	"github.com/agent-container/agent-container/spec"
)

const nonceBytes = 32

// proofTime bounds one exchange.
const proofTime = 2 * time.Second

// prove answers whoever connects to an address that nobody has: only a gateway
// with the deployment's key can.
func (g *gateway) prove(conn *net.TCPConn) {
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

func proveKey(ctx context.Context, key []byte) error {
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
	client := dns.Client{Timeout: proofTime}
	for _, server := range servers {
		answer, _, err := client.ExchangeContext(ctx, new(dns.Msg).SetQuestion(spec.GatewayCanary+".", dns.TypeA), server)
		switch {
		case err != nil:
			return fmt.Errorf("the gateway does not answer questions to %s: %w", server, err)
		case answer.Rcode != dns.RcodeRefused:
			return fmt.Errorf("a name that nobody may ask for is not refused by %s but %s", server, dns.RcodeToString[answer.Rcode])
		}
	}
	return nil
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
