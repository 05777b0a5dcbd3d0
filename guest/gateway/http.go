package gateway

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// maxHeader bounds the head of a request.
const maxHeader = 64 << 10

// http serves a connection to port 80: every request on it must be for the name
// that was asked for, and goes to that name's server. Go's own server reads the
// requests and its proxy writes them anew, so that no two programs read one
// request differently.
func (g *gateway) http(ctx context.Context, conn *net.TCPConn, name string, rule spec.Rule) {
	transport := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return g.connect(ctx, name, rule) },
		DisableCompression: true, Proxy: nil, MaxIdleConns: 4, IdleConnTimeout: time.Minute,
	}
	defer transport.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", name
			r.Out.Host = name
			r.Out.URL.Path, r.Out.URL.RawPath, r.Out.URL.RawQuery = r.In.URL.Path, r.In.URL.RawPath, r.In.URL.RawQuery
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { panic(http.ErrAbortHandler) },
	}
	l := &single{conn: conn, done: make(chan struct{})}
	server := &http.Server{
		Handler:           g.sameHost(name, rule, proxy),
		ReadHeaderTimeout: helloTime, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed || s == http.StateHijacked {
				l.over()
			}
		},
	}
	_ = server.Serve(l) // until the connection is over
}

// sameHost refuses a request for another host than name.
func (g *gateway) sameHost(name string, rule spec.Rule, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := strings.TrimSuffix(r.Host, ":80")
		canonical, err := spec.CanonicalName(host)
		if err == nil && canonical == name && r.Method != http.MethodConnect && (r.URL.Scheme == "" || r.URL.Scheme == "http") {
			next.ServeHTTP(w, r)
			return
		}
		g.journal.write(Decision{Verdict: "denied", Stage: stageHTTP, Name: name, Port: rule.Port, Reason: "a request for another host: " + spec.Printable(r.Host, 200)})
		w.Header().Set("Connection", "close")
		http.Error(w, "agent-container: this request is for another host than the connection", http.StatusForbidden)
	})
}

// single is a listener of one connection. It ends when that does, so that the
// server does too.
type single struct {
	conn net.Conn
	once sync.Once
	done chan struct{}
}

func (s *single) over() { s.once.Do(func() { close(s.done) }) }

func (s *single) Accept() (net.Conn, error) {
	if c := s.conn; c != nil {
		s.conn = nil
		return c, nil
	}
	<-s.done
	return nil, errors.New("its one connection is over")
}

func (s *single) Close() error   { s.over(); return nil }
func (s *single) Addr() net.Addr { return &net.TCPAddr{} }
