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

// The largest head of a request, and of a response.
const (
	maxHeader         = 16 << 10
	maxResponseHeader = 32 << 10
)

// halfClosedTime is how long a client that has closed its side still gets a
// response.
const halfClosedTime = time.Minute

// http serves a connection to port 80: every request on it must be for the name
// that was asked for, and goes to that name's server. Go's own server reads the
// requests and its proxy writes them anew, so that no two programs read one
// request differently.
func (g *gateway) http(ctx context.Context, conn net.Conn, name string, rule spec.Rule, connect func(context.Context) (net.Conn, error)) {
	transport := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return connect(ctx) },
		DisableCompression: true, Proxy: nil, MaxIdleConns: 4, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxResponseHeader,
	}
	defer transport.CloseIdleConnections()
	quiet := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: quiet, BufferPool: buffers,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", name
			if g.policy.Enforcement != spec.Advisory {
				r.Out.Host = name
			}
			r.Out.URL.Path, r.Out.URL.RawPath, r.Out.URL.RawQuery = r.In.URL.Path, r.In.URL.RawPath, r.In.URL.RawQuery
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "agent-container: "+name+" cannot be reached: "+spec.Printable(err.Error(), 300), http.StatusBadGateway)
		},
	}
	l := &single{conn: conn, done: make(chan struct{})}
	server := &http.Server{
		Handler:           g.sameHost(name, rule, l.untilHandled(ctx, proxy)),
		ReadHeaderTimeout: helloTime, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: quiet, DisableGeneralOptionsHandler: true,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState:   l.state,
	}
	_ = server.Serve(l) // until the connection is over
}

// sameHost refuses a request for another host than name.
func (g *gateway) sameHost(name string, rule spec.Rule, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := strings.TrimSuffix(r.Host, ":80")
		canonical, err := spec.CanonicalName(host)
		plain := r.Method != http.MethodConnect && (r.URL.Scheme == "" || r.URL.Scheme == "http") && r.URL.Opaque == ""
		if err == nil && canonical == name && plain {
			next.ServeHTTP(w, r)
			return
		}
		d := Decision{Verdict: spec.Denied, Stage: spec.StageHTTP, Name: name, Port: rule.Port, Reason: "a request for another host: " + spec.Printable(withoutUser(r.Host), 200)}
		if !plain { // of which the journal gets no path: secrets are in paths
			d.Reason = "a request for a proxy: " + spec.Printable(r.Method+" "+r.URL.Scheme+" "+withoutUser(r.Host), 200)
		} else {
			d.Verdict = verdict(g.policy)
		}
		g.journal.write(d)
		if d.Verdict != spec.Denied {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Connection", "close")
		http.Error(w, "agent-container: this request is for another host than the connection", http.StatusForbidden)
	})
}

// withoutUser is a host without what may stand before it, which may be a password.
func withoutUser(host string) string { return host[strings.LastIndexByte(host, '@')+1:] }

// single is a listener of one connection. It ends when that does, so that the
// server does too.
type single struct {
	conn     net.Conn
	once     sync.Once
	done     chan struct{}
	hijacked bool // by the handler, in whose goroutine the server says so
}

func (s *single) over() { s.once.Do(func() { close(s.done) }) }

func (s *single) state(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateClosed:
		s.over()
	case http.StateHijacked:
		s.hijacked = true
	}
}

// untilHandled ends the listener when the handler is done with a connection that
// it took over, as it does for WebSocket. Go's server takes a client that has said
// all that it has to say for one that is gone: it gets its answer for a while yet.
func (s *single) untilHandled(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if s.hijacked {
				s.over()
			}
		}()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(r.Context(), func() { time.AfterFunc(halfClosedTime, cancel) })()
		next.ServeHTTP(w, r.WithContext(withValues{ctx, r.Context()}))
	})
}

// withValues is a context that ends as the one does and holds what the other does.
type withValues struct {
	context.Context
	values context.Context
}

func (w withValues) Value(key any) any { return w.values.Value(key) }

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
