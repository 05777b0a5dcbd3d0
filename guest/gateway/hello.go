package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// maxHello bounds a TLS ClientHello with the heads of its records. Those with keys
// for after quantum computers have two or three thousand bytes.
const maxHello = 16 << 10

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
// returns the bytes that were read and the server that it names, "" for none. It
// is parsed once it is whole: as long as it is not, a connection holds what came
// and no more.
func readHello(conn io.Reader) (read []byte, server string, err error) {
	read, err = readRecords(conn)
	if err != nil {
		return read, "", err
	}
	found := false
	err = tls.Server(listening{bytes.NewReader(read)}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			server, found = h.ServerName, true
			return nil, errHelloRead // that is all that was wanted
		},
	}).Handshake()
	if found {
		err = nil
	}
	return read, server, err
}

// The heads of a TLS record and of a message in records, and what they say of a
// hello (RFC 8446, sections 5.1 and 4).
const (
	recordHead     = 5
	messageHead    = 4
	recordMessages = 22
	messageHello   = 1
)

// readRecords reads until a first message may be whole, or cannot be a hello.
func readRecords(conn io.Reader) (read []byte, err error) {
	read = make([]byte, 0, 1<<10)
	for want := new(wanted); want.more(read); {
		if len(read) == maxHello {
			return read, errors.New("it is too long")
		}
		if len(read) == cap(read) {
			read = append(make([]byte, 0, min(2*cap(read), maxHello)), read...)
		}
		n, err := conn.Read(read[len(read):cap(read)])
		read = read[:len(read)+n]
		if err != nil && (n == 0 || want.more(read)) {
			return read, err
		}
	}
	return read, nil
}

// wanted is how far the records of a message have been looked at.
type wanted struct {
	next int    // where the record begins that is not whole yet
	head []byte // of the message
	have int    // bytes of the message
}

// more reports whether a hello needs more than what has been read. For what is
// none it does not: the parser says why.
func (w *wanted) more(read []byte) bool {
	for {
		rest := read[w.next:]
		if len(rest) > 0 && rest[0] != recordMessages {
			return false
		}
		if len(rest) < recordHead {
			return true
		}
		length := int(binary.BigEndian.Uint16(rest[recordHead-2:]))
		if len(rest) < recordHead+length {
			return true
		}
		w.head = append(w.head, rest[recordHead:][:min(length, messageHead-len(w.head))]...)
		w.next, w.have = w.next+recordHead+length, w.have+length
		switch {
		case length == 0, w.head[0] != messageHello:
			return false
		case len(w.head) == messageHead && w.have >= messageHead+int(binary.BigEndian.Uint32(w.head)&0xffffff):
			return false
		}
	}
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
