package gateway

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// beside are other programs that look at a hello's name and pass the rest on
// untouched, with what an agent sends to port 443 led to them.
var beside = []struct {
	name, program string
	argv          func(dir string, s shared) ([]string, error)
}{
	{"squid", "squid", squid},
	{"mitmproxy", "mitmdump", func(dir string, _ shared) ([]string, error) {
		return []string{"mitmdump", "-q", "--mode", "transparent", "--listen-port", besidePort, "--ignore-hosts", ".", "--set", "confdir=" + dir, "--set", "block_global=false"}, nil
	}},
}

const besidePort = "3129"

// squid peeks at the hello and splices: nothing is decrypted, cached or logged.
func squid(dir string, s shared) ([]string, error) {
	certificate := slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: s.Key}))
	config := fmt.Sprintf(`http_port 127.0.0.1:3128
https_port %s intercept ssl-bump tls-cert=%s/pem generate-host-certificates=off
acl hello at_step SslBump1
acl declared ssl::server_name good-cdn.test
ssl_bump peek hello
ssl_bump splice declared
ssl_bump terminate all
http_access allow all
cache deny all
cache_mem 8 MB
access_log none
cache_log /dev/null
cache_store_log none
visible_hostname lab
pinger_enable off
pid_filename none
coredump_dir %s
max_filedescriptors 16384
`, besidePort, dir, dir)
	for name, text := range map[string]string{"pem": string(certificate), "conf": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return []string{"squid", "-N", "-f", filepath.Join(dir, "conf")}, nil
}

// BenchmarkBeside is what an agent gets through the gateway and through each of
// these, beside the same without one.
func BenchmarkBeside(b *testing.B) {
	l := theLab(b)
	b.Run("gateway", func(b *testing.B) {
		n := l.place(b, "beside-gateway", placements("outside"))
		compare(b, l, n, n.hold.pid())
	})
	for _, p := range beside {
		b.Run(p.name, func(b *testing.B) {
			if _, err := exec.LookPath(p.program); err != nil {
				b.Skipf("%s is not installed: %v", p.name, err)
			}
			n := l.place(b, "beside-"+p.name, placements("open"))
			argv, err := p.argv(n.settings.Dir, l.shared)
			if err != nil {
				b.Fatal(err)
			}
			cmd := exec.Command("nsenter", append([]string{"--target", n.hold.pid(), "--net", "--mount", "--"}, argv...)...)
			cmd.Stderr = os.Stderr
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			n.as("root").work(b, "lead", besidePort)
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
				r, err := n.as("uid 1000").try(order{Row: "https", Arg: "good-cdn.test", Token: newToken()})
				if err == nil && r.Err == "" {
					break
				}
				if time.Now().After(end) {
					b.Fatalf("nothing goes through %s: %v %s", p.name, err, r.Err)
				}
			}
			compare(b, l, n, strconv.Itoa(cmd.Process.Pid))
		})
	}
}

// compare measures a place, and the open one in turn with it. The figures are
// means over the rounds.
func compare(b *testing.B, l *lab, n *namespace, pid string) {
	direct, through := l.named(b, "open").as("uid 1000"), n.as("uid 1000")
	idle := rssMiB(b, pid)
	sums := map[string]float64{}
	for b.Loop() {
		for _, side := range []struct {
			name string
			a    *agent
		}{{"direct", direct}, {"through", through}} {
			sums[side.name+"-MiB/s"] += number(b, side.a.work(b, "download", fmt.Sprintf("https://good-cdn.test %d", 1<<30))) / (1 << 20)
			for i, text := range strings.Fields(side.a.work(b, "handshakes", "good-cdn.test:443 1000 1")) {
				sums[side.name+[]string{"-p50-µs", "-p99-µs", "-alone/s"}[i]] += number(b, text)
			}
			sums[side.name+"-conn/s"] += number(b, strings.Fields(side.a.work(b, "handshakes", "good-cdn.test:443 3000 16"))[2])
		}
	}
	b.ReportMetric(idle, "idle-MiB")
	for name, sum := range sums {
		b.ReportMetric(sum/float64(b.N), name)
	}
	for _, count := range []int{200, 2000} {
		done := make(chan string)
		go func() { done <- through.work(b, "hold tls", fmt.Sprintf("good-cdn.test:443 %d", count)) }()
		most, open := 0.0, ""
		for open == "" {
			select {
			case open = <-done:
			case <-time.After(50 * time.Millisecond):
				most = max(most, rssMiB(b, pid))
			}
		}
		b.ReportMetric(most, fmt.Sprintf("%d-MiB", count))
		if open != strconv.Itoa(count) {
			b.Logf("%s of %d connections were open", open, count)
		}
	}
}

func rssMiB(t testing.TB, pid string) float64 { return float64(rss(t, pid)) / (1 << 20) }

// handshakes makes so many TLS connections, so many at a time, and says how long the
// median and the 99th of 100 took in microseconds, and how many there were a second.
func (a *attempt) handshakes() error {
	f := strings.Fields(a.arg)
	count, _ := strconv.Atoi(f[1])
	at, _ := strconv.Atoi(f[2])
	var mu sync.Mutex
	var times []time.Duration
	var wg sync.WaitGroup
	var failed error
	began := time.Now()
	for range at {
		wg.Go(func() {
			for range count / at {
				begin := time.Now()
				conn, err := a.handshake(f[0])
				if err == nil {
					conn.Close()
				}
				mu.Lock()
				times = append(times, time.Since(begin))
				if err != nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(times)
	a.says = fmt.Sprintf("%d %d %.0f", times[len(times)/2].Microseconds(), times[len(times)*99/100].Microseconds(), float64(len(times))/time.Since(began).Seconds())
	return failed
}

func (a *attempt) handshake(address string) (net.Conn, error) {
	conn, err := a.connectTo(address)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(address)
	secure := tls.Client(conn, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	if err := secure.HandshakeContext(a.ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// holdTLS opens so many TLS connections, 16 at a time, keeps them for two seconds,
// and says how many there were.
func (a *attempt) holdTLS() error {
	address, text, _ := strings.Cut(a.arg, " ")
	count, _ := strconv.Atoi(text)
	conns := make(chan net.Conn, count)
	gate := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for range count {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			if conn, err := a.handshake(address); err == nil {
				conns <- conn
			}
		})
	}
	wg.Wait()
	a.says = strconv.Itoa(len(conns))
	time.Sleep(2 * time.Second)
	close(conns)
	for c := range conns {
		c.Close()
	}
	return nil
}

// lead leads what uid 1000 sends to port 443 to a port of the place's own.
func (a *attempt) lead() error {
	port, err := strconv.Atoi(a.arg)
	if err != nil {
		return err
	}
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Name: "beside", Family: nftables.TableFamilyIPv4})
	chain := c.AddChain(&nftables.Chain{Name: "lead", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule(meta(expr.MetaKeySKUID, binaryutil.NativeEndian.PutUint32(1000)), protocol(unix.IPPROTO_TCP), toPort(443), redirect(uint16(port)))})
	return c.Flush()
}
