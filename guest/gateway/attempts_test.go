package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// attempt is one try of an agent to reach something, carrying a token that
// nothing else has. What its methods return says how the client saw it: nil is
// success.
type attempt struct {
	ctx    context.Context
	token  string
	shared shared
	arg    string
	says   string
}

func newToken() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b)
	return "tk" + hex.EncodeToString(b)
}

// request is an HTTP request with what may be said differently in different
// places.
type request struct {
	url    string // the token is added to it
	to     string // the address that is connected to, in place of the host's
	sni    string // "-": none
	host   string
	method string
	header http.Header
	h2     bool
	proxy  string
	follow bool // redirects
}

func (a *attempt) https(host string) error { return a.fetch(request{url: "https://" + host + "/"}) }
func (a *attempt) http(host string) error  { return a.fetch(request{url: "http://" + host + "/"}) }

// fetch makes a request; a status that is not 200 is an error, and so is a
// certificate that is not the server's own.
func (a *attempt) fetch(r request) error {
	method := r.method
	if method == "" {
		method = http.MethodGet
	}
	address := r.url
	if !strings.Contains(address, "?") {
		address += a.token
	}
	req, err := http.NewRequestWithContext(a.ctx, method, address, nil)
	if err != nil {
		return err
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	if r.host != "" {
		req.Host = r.host
	}
	transport := a.transport(r)
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	if !r.follow {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	a.says = string(body)
	return nil
}

func (a *attempt) transport(r request) *http.Transport {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if r.to != "" {
			address = r.to
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	t := &http.Transport{DialContext: dial, Protocols: new(http.Protocols)}
	t.Protocols.SetHTTP1(!r.h2)
	t.Protocols.SetUnencryptedHTTP2(r.h2)
	if r.proxy != "" {
		proxy, err := url.Parse(r.proxy)
		t.Proxy = func(*http.Request) (*url.URL, error) { return proxy, err }
	}
	t.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(address)
		secure := tls.Client(conn, a.tlsConfig(host, r))
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		return secure, nil
	}
	if r.h2 && strings.HasPrefix(r.url, "https:") {
		t.Protocols.SetUnencryptedHTTP2(false)
		t.Protocols.SetHTTP2(true)
	}
	return t
}

// tlsConfig puts the token into the hello too, as a protocol that is offered, so
// that it is seen even where no request follows.
func (a *attempt) tlsConfig(host string, r request) *tls.Config {
	c := &tls.Config{ServerName: strings.TrimSuffix(host, "."), InsecureSkipVerify: true, NextProtos: []string{a.token, "http/1.1"}}
	if r.h2 {
		c.NextProtos = []string{a.token, "h2"}
	}
	if r.sni != "" {
		c.ServerName = strings.TrimPrefix(r.sni, "-")
	}
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if !bytes.Equal(s.PeerCertificates[0].Raw, a.shared.Certificate) {
			return errors.New("it is not the server's own certificate")
		}
		return nil
	}
	return c
}

var errNoEcho = errors.New("nothing came back")

// raw connects, sends prefix and token, and waits for them to come back.
func (a *attempt) raw(address, prefix string) error {
	conn, err := new(net.Dialer).DialContext(a.ctx, "tcp", address)
	if err != nil {
		return err
	}
	return a.echo(conn, prefix)
}

func (a *attempt) echo(conn net.Conn, prefix string) error {
	defer conn.Close()
	if deadline, ok := a.ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write([]byte(prefix + a.token + "\r\n\r\n")); err != nil {
		return err
	}
	b, err := readUntil(conn, a.token)
	if err != nil {
		return fmt.Errorf("%w after %q", err, b)
	}
	return nil
}

func readUntil(from io.Reader, text string) ([]byte, error) {
	var all []byte
	for b := make([]byte, 4096); ; {
		n, err := from.Read(b)
		all = append(all, b[:n]...)
		if bytes.Contains(all, []byte(text)) {
			return all, nil
		}
		if err == io.EOF {
			err = errNoEcho
		}
		if err != nil || len(all) > 1<<20 {
			return all, err
		}
	}
}

// raw80 sends text as a request to port 80 of a host, and reads the answer, or the
// one after others. TOKEN in the text is the token.
func (a *attempt) raw80(address, text string, others ...string) error {
	conn, err := new(net.Dialer).DialContext(a.ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := a.ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if _, err := io.WriteString(conn, strings.ReplaceAll(text, "TOKEN", a.token)); err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	for range others {
		if err := a.response(r); err != nil {
			return err
		}
	}
	return a.response(r)
}

func (a *attempt) response(from *bufio.Reader) error {
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	a.says = string(body)
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	return err
}

// udp sends the token; an answer is not waited for long, as most servers of the
// world give none.
func (a *attempt) udp(address string) error {
	conn, err := new(net.Dialer).DialContext(a.ctx, "udp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(a.token)); err != nil {
		return err
	}
	_ = conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 512)); err != nil && !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		return err
	}
	return nil
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// ask asks a server; a code that is not success is an error with its name.
func (a *attempt) ask(network, server, name string, qtype uint16) (*dns.Msg, error) {
	c := &dns.Client{Net: network, Timeout: 2 * time.Second, UDPSize: 4096}
	m, _, err := c.ExchangeContext(a.ctx, new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype), server)
	if err != nil {
		return nil, err
	}
	if m.Rcode != dns.RcodeSuccess {
		return m, errors.New(dns.RcodeToString[m.Rcode])
	}
	return m, nil
}

// question asks the resolver of the place for a name with the token in it.
func (a *attempt) question(suffix string, qtype uint16) error {
	_, err := a.ask("udp", "127.0.0.11:53", a.token+suffix, qtype)
	return err
}
