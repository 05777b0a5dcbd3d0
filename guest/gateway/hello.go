package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// maxHello bounds a TLS ClientHello. Those with keys for after quantum computers
// have two or three thousand bytes.
const maxHello = 32 << 10

var errHelloRead = errors.New("read")

// tls lets a connection to port 443 through when it begins with a ClientHello
// for the name that was asked for. Nothing of it is changed: the client talks to
// the server, and sees its certificate.
func (g *gateway) tls(ctx context.Context, conn *net.TCPConn, name string, rule spec.Rule) {
	_ = conn.SetReadDeadline(time.Now().Add(helloTime))
	hello, server, err := readHello(conn)
	_ = conn.SetReadDeadline(time.Time{})
	reason := ""
	switch canonical, nameErr := spec.CanonicalName(server); {
	case err != nil:
		reason = "no TLS hello: " + spec.Printable(err.Error(), 200)
	case server == "":
		reason = "the TLS hello names no server"
	case nameErr != nil || canonical != name:
		reason = "the TLS hello names another server: " + spec.Printable(server, 200)
	}
	if reason != "" {
		g.journal.write(Decision{Verdict: verdict(g.policy), Stage: spec.StageTLS, Name: name, Port: rule.Port, Reason: reason})
		if g.policy.Enforcement != spec.Advisory {
			return
		}
	}
	g.open(ctx, conn, hello, name, rule)
}

// readHello reads a ClientHello, with the parser that Go's own servers have, and
// returns the bytes that were read and the server that it names, "" for none.
func readHello(conn io.Reader) (read []byte, server string, err error) {
	var kept bytes.Buffer
	found := false
	err = tls.Server(listening{io.TeeReader(io.LimitReader(conn, maxHello), &kept)}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			server, found = h.ServerName, true
			return nil, errHelloRead // that is all that was wanted
		},
	}).Handshake()
	if found {
		err = nil
	}
	return kept.Bytes(), server, err
}

// listening is a connection that is read and never written to: a server that
// only listens.
type listening struct{ io.Reader }

func (listening) Write(p []byte) (int, error)      { return len(p), nil }
func (listening) Close() error                     { return nil }
func (listening) LocalAddr() net.Addr              { return nil }
func (listening) RemoteAddr() net.Addr             { return nil }
func (listening) SetDeadline(time.Time) error      { return nil }
func (listening) SetReadDeadline(time.Time) error  { return nil }
func (listening) SetWriteDeadline(time.Time) error { return nil }
