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
	"time"

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

// proveDNS asks for the canary. REFUSED is a server's failure to Go, and no
// "not found".
func proveDNS(ctx context.Context) error {
	var r net.Resolver
	r.PreferGo = true
	_, err := r.LookupNetIP(ctx, "ip4", spec.GatewayCanary+".")
	var failed *net.DNSError
	if errors.As(err, &failed) && !failed.IsNotFound && !failed.IsTimeout {
		return nil
	}
	return fmt.Errorf("a name that nobody may ask for is not refused: %v", err)
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
