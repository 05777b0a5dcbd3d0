package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/nftables"
	"github.com/miekg/dns"
)

func (a *attempt) connectTo(address string) (*net.TCPConn, error) {
	conn, err := new(net.Dialer).DialContext(a.ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	deadline, _ := a.ctx.Deadline()
	return conn.(*net.TCPConn), conn.SetDeadline(deadline)
}

// slow opens so many connections of two kinds that begin and never get on: a
// request whose head comes byte by byte, half a hello. It says how long the last
// of them was kept open.
func (a *attempt) slow() error {
	n, _ := strconv.Atoi(a.arg)
	begin := time.Now()
	var wg sync.WaitGroup
	errs := make(chan error, 2*n)
	for i := range 2 * n {
		wg.Go(func() { errs <- a.slowly(i%2 == 0) })
	}
	wg.Wait()
	a.says = fmt.Sprintf("%.0f", time.Since(begin).Seconds())
	for range 2 * n {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) slowly(plain bool) error {
	address, text := "allowed.test:443", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc"
	if plain {
		address, text = "allowed.test:80", "GET / HTTP/1.1\r\nHost: allowed.test\r\nX: "
	}
	conn, err := a.connectTo(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		return err
	}
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		close(over)
	}()
	for {
		select {
		case <-over:
			return a.ctx.Err()
		case <-a.ctx.Done():
			return errors.New("it is still open")
		case <-time.After(time.Second):
			_, _ = conn.Write([]byte("a"))
		}
	}
}

// upload sends so many bytes, closes its side, and reads how many came.
func (a *attempt) upload() error {
	address, size, _ := strings.Cut(a.arg, " ")
	n, _ := strconv.ParseInt(size, 10, 64)
	conn, err := a.connectTo(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.Copy(conn, io.MultiReader(strings.NewReader("SINK\n"), io.LimitReader(zeros{}, n))); err != nil {
		return err
	}
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && strings.TrimSpace(line) != size {
		err = fmt.Errorf("%q came of %s", line, size)
	}
	return err
}

// late closes its side at once, and reads slowly what comes then.
func (a *attempt) late() error {
	address, size, _ := strings.Cut(a.arg, " ")
	n, _ := strconv.ParseInt(size, 10, 64)
	conn, err := a.connectTo(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetReadBuffer(4096)
	fmt.Fprintf(conn, "LATE %d\n", n)
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	var got int64
	for b := make([]byte, 64<<10); ; {
		m, err := conn.Read(b)
		got += int64(m)
		if err == io.EOF && got == n {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%d bytes of %d: %w", got, n, err)
		}
		time.Sleep(time.Millisecond) // the reader is slow: that is the case
	}
}

// quiet says something, nothing for a while, and something again.
func (a *attempt) quiet() error {
	address, pause, _ := strings.Cut(a.arg, " ")
	d, _ := time.ParseDuration(pause)
	conn, err := a.connectTo(address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for range 2 {
		if _, err := io.WriteString(conn, "ping"); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
			return err
		}
		time.Sleep(d)
	}
	return nil
}

// events reads a stream of events, each of which must come when it is sent.
func (a *attempt) events() error {
	transport := a.transport(request{url: a.arg})
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(a.arg + "/events?times=5&pause=300ms")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	begin, lines := time.Now(), bufio.NewScanner(resp.Body)
	count := 0
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			count++
		}
		if count == 1 && time.Since(begin) > time.Second {
			return errors.New("the first event is late")
		}
	}
	if count != 5 {
		return fmt.Errorf("%d events", count)
	}
	return lines.Err()
}

// half asks over plain HTTP, closes its side, and reads the answer, which comes
// after that.
func (a *attempt) half() error {
	conn, err := a.connectTo("allowed.test:80")
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /events?times=3&pause=300ms HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
	if err := conn.CloseWrite(); err != nil {
		return err
	}
	b, err := io.ReadAll(conn)
	if err == nil && strings.Count(string(b), "data: ") != 3 {
		err = fmt.Errorf("%q", b)
	}
	return err
}

// names asks for so many different names below a wildcard.
func (a *attempt) names() error {
	n, _ := strconv.Atoi(a.arg)
	return a.questions(n, ".wild.test.")
}

// flood asks for so many different names that nobody declared.
func (a *attempt) flood() error {
	n, _ := strconv.Atoi(a.arg)
	return a.questions(n, ".evil.test.")
}

// questions asks with a few in flight at a time.
func (a *attempt) questions(n int, suffix string) error {
	conn, err := dns.Dial("udp", "127.0.0.11:53")
	if err != nil {
		return err
	}
	defer conn.Close()
	const window = 50
	for i := range n {
		q := new(dns.Msg).SetQuestion(fmt.Sprintf("n%d%s", i, suffix), dns.TypeA)
		if err := conn.WriteMsg(q); err != nil {
			return err
		}
		if i%window == window-1 || i == n-1 {
			for range i%window + 1 {
				_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
				if _, err := conn.ReadMsg(); err != nil {
					return fmt.Errorf("question %d: %w", i, err)
				}
			}
		}
	}
	return nil
}

// openUp flushes a chain of the gateway's.
func openUp() error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	c.FlushChain(&nftables.Chain{Name: "output", Table: &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}})
	return c.Flush()
}

// fromPort sends the token to evil.test's resolver from one certain port.
func (a *attempt) fromPort(mark int) error {
	port, _ := strconv.Atoi(a.arg)
	d := net.Dialer{LocalAddr: &net.UDPAddr{Port: port}}
	if mark != 0 {
		d.Control = setMark
	}
	conn, err := d.DialContext(a.ctx, "udp4", server(66, 53))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(a.token))
	return err
}

// listen waits for people at two ports, and says what they say.
func (a *attempt) listen() error {
	for _, port := range strings.Fields(a.arg) {
		l, err := net.Listen("tcp4", "0.0.0.0:"+port)
		if err != nil {
			return err
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.Copy(conn, conn)
				conn.Close()
			}
		}()
	}
	<-a.ctx.Done()
	return nil
}
