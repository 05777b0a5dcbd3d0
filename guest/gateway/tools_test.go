package gateway

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tools are what agents do that is no row's try: for the lab itself, for load and
// for benchmarks.
var tools = map[string]func(*attempt) error{
	"settle":     settleAttempt,
	"download":   (*attempt).download,
	"connect":    (*attempt).connectMany,
	"hold":       (*attempt).hold,
	"resolve":    (*attempt).resolve,
	"slow":       (*attempt).slow,
	"upload":     (*attempt).upload,
	"late":       (*attempt).late,
	"quiet":      (*attempt).quiet,
	"events":     (*attempt).events,
	"names":      (*attempt).names,
	"flood":      (*attempt).flood,
	"verify":     func(*attempt) error { return Verify([]uint16{2222}) },
	"open up":    func(*attempt) error { return openUp() },
	"marked":     func(a *attempt) error { return a.fromPort(ownMark) },
	"unmarked":   func(a *attempt) error { return a.fromPort(0) },
	"listen":     (*attempt).listen,
	"dial":       func(a *attempt) error { return a.raw(a.arg, "") },
	"https":      func(a *attempt) error { return a.https(a.arg) },
	"half":       (*attempt).half,
	"clog":       (*attempt).clog,
	"clogged":    (*attempt).untilClogged,
	"prove":      (*attempt).proveFor,
	"worst":      (*attempt).worst,
	"soak":       (*attempt).soak,
	"relay":      (*attempt).relay,
	"lead":       (*attempt).lead,
	"hold tls":   (*attempt).holdTLS,
	"handshakes": (*attempt).handshakes,
}

// resolve says the address that a name has here.
func (a *attempt) resolve() error {
	list, err := net.DefaultResolver.LookupNetIP(a.ctx, "ip4", a.arg)
	if err == nil {
		a.says = list[0].Unmap().String()
	}
	return err
}

// download gets so many bytes from a server, and says how many a second.
func (a *attempt) download() error {
	address, size, _ := strings.Cut(a.arg, " ")
	n, _ := strconv.ParseInt(size, 10, 64)
	begin := time.Now()
	var got int64
	var err error
	if strings.HasPrefix(address, "http") {
		got, err = a.downloadHTTP(address, n)
	} else {
		got, err = a.downloadRaw(address, n)
	}
	if err == nil && got != n {
		err = fmt.Errorf("%d bytes of %d", got, n)
	}
	a.says = fmt.Sprintf("%.0f", float64(got)/time.Since(begin).Seconds())
	return err
}

func (a *attempt) downloadRaw(address string, n int64) (int64, error) {
	conn, err := new(net.Dialer).DialContext(a.ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	deadline, _ := a.ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	fmt.Fprintf(conn, "BIG %d\n", n)
	return io.CopyBuffer(onlyWriter{io.Discard}, conn, make([]byte, 256<<10))
}

func (a *attempt) downloadHTTP(address string, n int64) (int64, error) {
	transport := a.transport(request{url: address})
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("%s/big?n=%d", address, n))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return io.CopyBuffer(onlyWriter{io.Discard}, resp.Body, make([]byte, 256<<10))
}

// onlyWriter hides what else a writer can do, so that the buffer is used.
type onlyWriter struct{ io.Writer }

// connectMany makes connections one after another, each until its first byte is
// back, and says the median and the 99th of 100 in nanoseconds.
func (a *attempt) connectMany() error {
	address, count, _ := strings.Cut(a.arg, " ")
	n, _ := strconv.Atoi(count)
	times := make([]time.Duration, 0, n)
	for range n {
		begin := time.Now()
		conn, err := new(net.Dialer).DialContext(a.ctx, "tcp", address)
		if err != nil {
			return err
		}
		if _, err = io.WriteString(conn, "ping"); err == nil {
			_, err = io.ReadFull(conn, make([]byte, 4))
		}
		conn.Close()
		if err != nil {
			return err
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	a.says = fmt.Sprintf("%d %d", times[n/2], times[n*99/100])
	return nil
}

// hold opens so many connections at once and keeps them until its time is over;
// it says how many got an answer.
func (a *attempt) hold() error {
	address, rest, _ := strings.Cut(a.arg, " ")
	count, pause, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(count)
	d, _ := time.ParseDuration(pause)
	var mu sync.Mutex
	var open []net.Conn
	var wg sync.WaitGroup
	gate := make(chan struct{}, 64)
	const patience = 10 * time.Second // with so many at once; who is refused knows it at once
	for range n {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			conn, err := (&net.Dialer{Timeout: patience}).DialContext(a.ctx, "tcp", address)
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(patience))
			_, err = io.WriteString(conn, "ping")
			if err == nil {
				_, err = io.ReadFull(conn, make([]byte, 4))
			}
			if err != nil {
				conn.Close()
				return
			}
			mu.Lock()
			open = append(open, conn)
			mu.Unlock()
		})
	}
	wg.Wait()
	a.says = strconv.Itoa(len(open))
	time.Sleep(d)
	for _, c := range open {
		c.Close()
	}
	return nil
}
