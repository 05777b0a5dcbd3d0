package gateway

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// scripted is a client that says what it has to say and then ends its side.
type scripted struct {
	net.Conn
	mu   sync.Mutex
	says *bytes.Reader
}

func (s *scripted) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.says.Read(b)
}
func (*scripted) Write(b []byte) (int, error)      { return len(b), nil }
func (*scripted) Close() error                     { return nil }
func (*scripted) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*scripted) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*scripted) SetDeadline(time.Time) error      { return nil }
func (*scripted) SetReadDeadline(time.Time) error  { return nil }
func (*scripted) SetWriteDeadline(time.Time) error { return nil }

// origin is allowed.test's server: it reads requests with net/http and keeps every
// byte that came.
type origin struct {
	mu   sync.Mutex
	wg   sync.WaitGroup
	came []*bytes.Buffer
}

func (o *origin) connect(context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	var kept bytes.Buffer
	o.mu.Lock()
	o.came = append(o.came, &kept)
	o.mu.Unlock()
	o.wg.Go(func() {
		defer ours.Close()
		in := bufio.NewReader(io.TeeReader(ours, &kept))
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			if _, err := io.WriteString(ours, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
				return
			}
		}
	})
	return theirs, nil
}

// forAllowed reads requests one after another with net/http, as long as they are
// for allowed.test, and says how many there are.
func forAllowed(sent []byte) (count int) {
	for in := bufio.NewReader(bytes.NewReader(sent)); ; count++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return count
		}
		host, err := spec.CanonicalName(strings.TrimSuffix(r.Host, ":80"))
		if err != nil || host != "allowed.test" || r.Method == http.MethodConnect || r.URL.Scheme != "" && r.URL.Scheme != "http" {
			return count
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return count + 1 // its head may be passed on
		}
		if r.Method == http.MethodPost { // behind which net/http's server takes empty lines
			more, _ := in.Peek(4)
			_, _ = in.Discard(len(more) - len(bytes.TrimLeft(more, "\r\n")))
		}
	}
}

// Whatever is said to port 80 of a name, that name's server must see requests for
// it alone, in a form that is read one way, and no more of them than net/http reads
// from the same bytes before one that is for another host.
func FuzzHTTP(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: ALLOWED.test.:80\r\n\r\nGET /2 HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\nGET /2 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"GET http://evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.test\r\nHost: evil.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /2 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nHost: evil.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.test\r\nConnection: Upgrade, Host\r\nUpgrade: websocket\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.test\r\nX: a\r\n Host: evil.test\r\n\r\n",
		"POST / HTTP/1.1\nHost: allowed.test\n\n\nGET / HTTP/1.1\nHost: allowed.test\n\n",
		"GET / HTTP/1.1\nHost: allowed.test\n\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: allowed.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: allowed.test\x00.evil.test\r\n\r\n", "GET /\x1b[31m HTTP/1.1\r\nHost: \x1b\u202e\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		var out bytes.Buffer
		g, o := fuzzed(&out), &origin{}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		g.http(ctx, &scripted{says: bytes.NewReader(sent)}, "allowed.test", spec.Rule{Name: "allowed.test", Port: 80, From: "the lab"}, o.connect)
		if ctx.Err() != nil {
			t.Error("it does not come to an end")
		}
		cancel()
		o.wg.Wait()
		passed := 0
		for _, came := range o.came {
			passed += checkPassed(t, came.Bytes())
		}
		if most := forAllowed(sent); passed > most {
			t.Errorf("%d requests were passed on, net/http reads %d", passed, most)
		}
		printableLines(t, out.Bytes())
	})
}

// checkPassed reads what came at the server and counts its requests. Each must be
// for allowed.test; only its end may be missing.
func checkPassed(t *testing.T, came []byte) (count int) {
	t.Helper()
	for in := bufio.NewReader(bytes.NewReader(came)); ; count++ {
		r, err := http.ReadRequest(in)
		if err == io.EOF {
			return count
		}
		if err != nil || r.Host != "allowed.test" || r.URL.Host != "" {
			t.Errorf("request %d is %v, %v: %q", count+1, r, err, came)
			return count
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return count + 1
		}
	}
}
