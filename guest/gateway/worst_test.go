package gateway

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// worsts are what costs a gateway the most memory: so many connections, each with
// as much as one may make it hold.
var worsts = []struct {
	name, address string
	count         int
	send          func() []byte
}{
	{"hellos", "allowed.test:443", maxConnections, func() []byte {
		return hello{names: []string{"allowed.test"}, padding: 60_000}.bytes("")[:maxHello-1]
	}},
	{"heads", "allowed.test:80", maxConnections, func() []byte {
		head := []byte("GET / HTTP/1.1\r\nHost: allowed.test\r\n")
		for i := 0; len(head) < maxHeader; i++ {
			head = fmt.Appendf(head, "%s:\r\n", strconv.FormatInt(int64(36*36+i), 36))
		}
		return head[:maxHeader-1]
	}},
	{"stuck", "git.test:22", maxConnections / 2, func() []byte { return bytes.Repeat([]byte("stuck"), 200_000) }},
}

// worst makes the connections of one of these, sends until nothing more is taken,
// and keeps them for a while.
func (a *attempt) worst() error {
	for _, w := range worsts {
		if w.name != a.arg {
			continue
		}
		text := w.send()
		var wg sync.WaitGroup
		gate := make(chan struct{}, 64)
		conns := make([]net.Conn, w.count)
		for i := range conns {
			wg.Go(func() {
				gate <- struct{}{}
				defer func() { <-gate }()
				conn, err := a.connectTo(w.address)
				if err != nil {
					return
				}
				_, _ = conn.SetReadBuffer(4096), conn.SetWriteBuffer(4096)
				_ = conn.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
				_, _ = conn.Write(text)
				conns[i] = conn
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
		return nil
	}
	return fmt.Errorf("no such case: %q", a.arg)
}

// A gateway must hold little for what agents do, and for whatever they may do no
// more than fits into its container with the kernel's share.
func TestMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes several times the memory")
	}
	l := theLab(t)
	n := l.place(t, "memory", placements("outside"))
	held := map[string]float64{"idle": megabytes(t, n, "VmRSS:"), "200 connections": memoryAt(t, n, 200), "2000 connections": memoryAt(t, n, 2000)}
	for _, w := range worsts[:2] { // the third is the kernel's memory, much of it
		n := l.place(t, "worst "+w.name, placements("outside"))
		held[w.name], _ = n.peak(t, func() { n.as("uid 1000").work(t, "worst", w.name) })
	}
	for about, most := range map[string]float64{"idle": 16, "200 connections": 20, "2000 connections": 64, "hellos": 128, "heads": 160} {
		t.Logf("%s: %.1f MiB", about, held[about])
		if held[about] > most || held[about] == 0 {
			t.Errorf("%s: the gateway holds %.1f MiB, want at most %.0f", about, held[about], most)
		}
	}
}

// BenchmarkWorst is the most that a gateway's process holds under each of these,
// and the most that the kernel holds for all sockets of the machine meanwhile.
func BenchmarkWorst(b *testing.B) {
	l := theLab(b)
	for _, w := range worsts {
		b.Run(w.name, func(b *testing.B) {
			for b.Loop() {
				n := l.place(b, fmt.Sprintf("worst%d", l.count), placements("outside"))
				held, sockets := n.peak(b, func() { n.as("uid 1000").work(b, "worst", w.name) })
				b.ReportMetric(held, "MiB")
				b.ReportMetric(sockets, "sockets-MiB")
			}
		})
	}
}

// peak is what a gateway holds at most while something is done.
func (n *namespace) peak(t testing.TB, do func()) (held, sockets float64) {
	t.Helper()
	done := make(chan struct{})
	go func() { do(); close(done) }()
	for {
		select {
		case <-done:
			return held, sockets
		case <-time.After(20 * time.Millisecond):
			held, sockets = max(held, megabytes(t, n, "VmRSS:")), max(sockets, socketMemory(t))
		}
	}
}

// socketMemory is what the kernel holds for TCP, in MiB; it counts in pages.
func socketMemory(t testing.TB) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "TCP:" {
			return number(t, f[len(f)-1]) * float64(os.Getpagesize()) / (1 << 20)
		}
	}
	t.Fatalf("no TCP in %q", text)
	return 0
}
