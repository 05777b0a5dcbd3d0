package gateway

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// worldPorts are where the world listens, at every address of its networks.
var (
	worldPorts    = []int{21, 22, 25, 53, 80, 443, 853, 1080, 2222, 2375, 3128, 3129, 3306, 5353, 5432, 6379, 8080, 8443, 9050, 49001, 49053}
	worldUDPPorts = []int{123, 443, 4433, 9999, 49053}
	worldNetworks = []string{"198.51.100.0/24", "192.0.2.0/24", "10.20.0.0/24", "100.64.0.0/24", "169.254.0.0/16", "198.18.0.0/15", "2001:db8:1::/48", "2001:db8::/64", "fd00:ec2::/64"}
)

// runWorld is the world's process.
func runWorld() {
	var s shared
	readConfig(&s, func([]byte) { forget.Store(true) })
	must(ip("link set lo up", "addr add 2001:db8:1::66/128 dev lo nodad")) // which a server must have to listen on it alone
	for _, network := range worldNetworks {
		must(ip("route add local " + network + " dev lo"))
	}
	w := &world{}
	pair, err := s.keyPair()
	must(err)
	w.tls = &tls.Config{
		Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"},
		EncryptedClientHelloKeys: []tls.EncryptedClientHelloKey{{Config: echConfig(s.ECHConfig, "allowed.test"), PrivateKey: s.ECHKey}, {Config: echConfig(s.ECHConfig, "evil-front.test"), PrivateKey: s.ECHKey}},
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			report.event(event{Kind: "tls", Server: serverOf(h.Conn), Text: h.ServerName + " " + strings.Join(h.SupportedProtos, " ")})
			c := w.tls.Clone()
			c.GetConfigForClient = nil
			if !slices.Contains(h.SupportedProtos, "h2") && !slices.Contains(h.SupportedProtos, "http/1.1") {
				c.NextProtos = nil
			}
			return c, nil
		},
	}
	w.http = &http.Server{Handler: http.HandlerFunc(serveWorldHTTP), Protocols: new(http.Protocols), MaxHeaderBytes: 1 << 20, DisableGeneralOptionsHandler: true, ErrorLog: quiet}
	w.http.Protocols.SetHTTP1(true)
	w.http.Protocols.SetHTTP2(true)
	w.http.Protocols.SetUnencryptedHTTP2(true)
	w.conns = make(chan net.Conn)
	go func() { _ = w.http.Serve(w) }()
	for _, port := range worldPorts {
		if port == 53 || port == 5353 || port == 853 {
			serveWorldDNS(port)
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
		must(err)
		go w.accept(l)
	}
	for _, port := range worldUDPPorts {
		c, err := net.ListenUDP("udp", &net.UDPAddr{Port: port})
		must(err)
		go serveWorldUDP(c)
	}
	must(capture())
	report.event(event{Kind: "ready"})
	select {}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// world takes connections of any kind at any port.
type world struct {
	tls   *tls.Config
	http  *http.Server
	conns chan net.Conn // for the HTTP server, whose listener it is
}

func (w *world) Accept() (net.Conn, error) { return <-w.conns, nil }
func (w *world) Close() error              { return nil }
func (w *world) Addr() net.Addr            { return &net.TCPAddr{} }

func (w *world) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			continue
		}
		go w.take(conn)
	}
}

func serverOf(c net.Conn) string { return addrOf(c.LocalAddr().(*net.TCPAddr).AddrPort()) }

// take finds out what a connection is by its first bytes.
func (w *world) take(conn net.Conn) {
	first := &peeked{Conn: conn, Reader: bufio.NewReader(conn)}
	start, err := first.Peek(1)
	switch {
	case err != nil:
		conn.Close()
	case start[0] == 0x16:
		secure := tls.Server(first, w.tls)
		if secure.Handshake() != nil {
			conn.Close()
			return
		}
		w.conns <- secure
	case isHTTP(first):
		w.conns <- first
	default:
		serveWorldRaw(first)
	}
}

// isHTTP reports whether the first line looks like a request.
func isHTTP(r *peeked) bool {
	start, _ := r.Peek(4)
	return slices.Contains([]string{"GET ", "POST", "HEAD", "PUT ", "OPTI", "TRAC", "CONN", "PRI ", "DELE"}, string(start))
}

type peeked struct {
	net.Conn
	*bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.Reader.Read(b) }
func (p *peeked) CloseWrite() error          { return p.Conn.(*net.TCPConn).CloseWrite() }

// serveWorldRaw answers with what it is sent. BIG n, SINK and LATE n are orders:
// send n bytes; count what comes until the end and say how many; wait for the end
// and then send n bytes.
func serveWorldRaw(c *peeked) {
	defer c.Close()
	first := make([]byte, 64<<10)
	n, _ := c.Read(first)
	report.event(event{Kind: "raw", Server: serverOf(c), Text: printableBytes(first[:n])})
	order, rest, _ := strings.Cut(string(first[:n]), "\n")
	verb, number, _ := strings.Cut(order, " ")
	size, _ := strconv.ParseInt(number, 10, 64)
	switch verb {
	case "BIG":
		_, _ = io.CopyN(c, zeros{}, size)
	case "SINK":
		count, _ := io.Copy(io.Discard, c)
		fmt.Fprintf(c, "%d\n", count+int64(len(rest)))
	case "LATE":
		_, _ = io.Copy(io.Discard, c)
		_, _ = io.CopyN(c, zeros{}, size)
	default:
		_, _ = c.Write(first[:n])
		_, _ = io.Copy(c, c)
	}
	_ = c.CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.Copy(io.Discard, c)
}

func printableBytes(b []byte) string { return strings.ToValidUTF8(string(b), ".") }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func serveWorldUDP(c *net.UDPConn) {
	b := make([]byte, 2048)
	for {
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			continue
		}
		report.event(event{Kind: "udp", Server: fmt.Sprint(c.LocalAddr()), Text: printableBytes(b[:n])})
		_, _ = c.WriteToUDPAddrPort(b[:n], from)
	}
}

// serveWorldHTTP logs the request and does what its path says.
func serveWorldHTTP(w http.ResponseWriter, r *http.Request) {
	server := addrOf(r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr).AddrPort())
	report.event(event{Kind: "http", Server: server, Text: fmt.Sprintf("%s %s %q %s %v", r.Method, r.Host, r.RequestURI, r.Proto, r.Header)})
	q := r.URL.Query()
	switch r.URL.Path {
	case "/redirect": // the token is put together here
		http.Redirect(w, r, "http://"+q.Get("host")+"/tk"+q.Get("rest"), http.StatusFound)
	case "/big":
		n, _ := strconv.ParseInt(q.Get("n"), 10, 64)
		w.Header().Set("Content-Length", q.Get("n"))
		_, _ = io.CopyN(w, zeros{}, n)
	case "/sink":
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, n)
	case "/events":
		serveEvents(w, q.Get("times"), q.Get("pause"))
	default:
		if r.Header.Get("Upgrade") == "websocket" {
			serveUpgrade(w)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "this is %s, for %s\n", r.RequestURI, r.Host)
	}
}

func serveEvents(w http.ResponseWriter, times, pause string) {
	n, _ := strconv.Atoi(times)
	d, _ := time.ParseDuration(pause)
	for i := range n {
		fmt.Fprintf(w, "data: %d\n\n", i)
		_ = http.NewResponseController(w).Flush()
		time.Sleep(d)
	}
}

// serveUpgrade becomes an echo.
func serveUpgrade(w http.ResponseWriter) {
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_, _ = io.Copy(conn, buf)
}

// echConfig is a list of one configuration for encrypted hellos whose outer name
// is public, without the list's own length (RFC 9849, section 4).
func echConfig(key []byte, public string) []byte {
	u16 := func(b []byte, n int) []byte { return append(b, byte(n>>8), byte(n)) }
	body := []byte{1}                          // its number
	body = u16(body, 0x0020)                   // X25519, HKDF-SHA256
	body = append(u16(body, len(key)), key...) //
	body = u16(body, 4)                        // one suite: HKDF-SHA256, AES-128-GCM
	body = u16(u16(body, 1), 1)
	body = append(body, 64, byte(len(public)))
	body = u16(append(body, public...), 0)
	return append(u16(u16(nil, 0xfe0d), len(body)), body...)
}
