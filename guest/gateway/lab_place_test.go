package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/miekg/dns"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/agent-container/agent-container/spec"
)

var quiet = log.New(io.Discard, "", 0)

// namespace is one end of a wire to the world: an agent's place, behind a gateway
// or, for the control run, without one.
type namespace struct {
	lab      *lab
	wire     string // the world's end of it
	address  netip.Addr
	hold     *member // whose namespaces they are; becomes the gateway
	engine   *member
	journal  *decisions
	mu       sync.Mutex
	agents   map[string]*agent
	settings placement
	failed   error
	leaked   bool
	counts   chan string
	since    int // from which event on the gateway was there
}

// placement is what a place is made from.
type placement struct {
	Shared  shared
	Dir     string
	Policy  *spec.Policy // nil: no gateway
	Inbound []uint16
	NoFile  uint64
	Outside bool // the engine's resolver asks from outside of the namespace, as Docker's does when the machine's own resolver is on its loopback
}

// place returns the place with a name, which is made at its first use.
func (l *lab) place(t testing.TB, name string, p placement) *namespace {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.places[name]
	if n == nil {
		n = l.newPlace(name, p)
		l.places[name] = n
	}
	if n.failed != nil {
		t.Fatalf("place %s: %v", name, n.failed)
	}
	return n
}

func (l *lab) newPlace(name string, p placement) *namespace {
	l.count++
	p.Shared, p.Dir = l.shared, filepath.Join(l.dir, name)
	n := &namespace{
		lab: l, wire: fmt.Sprintf("w%d", l.count), address: netip.AddrFrom4([4]byte{203, 0, 113, byte(4*l.count + 2)}),
		journal: &decisions{}, agents: map[string]*agent{}, settings: p, counts: make(chan string),
	}
	n.failed = n.make(l.count)
	return n
}

// make makes the namespaces, the wire, the engine's resolver and, with a policy,
// the gateway.
func (n *namespace) make(number int) error {
	if err := n.files(); err != nil {
		return err
	}
	mounted, serving, engine := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var err error
	n.hold, err = n.lab.start("place", n.settings.Dir, func(line []byte) {
		var e event
		if !strings.HasPrefix(string(line), `{"Kind":`) || json.Unmarshal(line, &e) != nil {
			n.journal.add(line)
			return
		}
		switch e.Kind {
		case "mounted":
			close(mounted)
		case "serving":
			close(serving)
		case "counts":
			n.counts <- e.Text
		}
	})
	if err != nil {
		return err
	}
	if err := happens(mounted, "the place has no files"); err != nil {
		return err
	}
	if err := n.connect(number); err != nil {
		return err
	}
	n.engine, err = n.lab.start("engine", n.settings.Outside, func(line []byte) {
		if e := n.lab.seen.add(line); e.Kind == "ready" {
			close(engine)
		}
	}, "nsenter", "--target", n.hold.pid(), "--net", "--mount")
	if err != nil {
		return err
	}
	if err := happens(engine, "the engine's resolver is not ready"); err != nil || n.settings.Policy == nil {
		return err
	}
	if err := n.hold.tell("go"); err != nil {
		return err
	}
	if err := happens(serving, "the gateway does not serve"); err != nil {
		return err
	}
	return n.begin()
}

// begin is where the packets that leave through a gateway begin to count: before
// its rules, the kernel itself sends some.
func (n *namespace) begin() error {
	before := n.lab.seen.count("forgot")
	if err := n.lab.world.tell("forget"); err != nil {
		return err
	}
	for deadline := time.Now().Add(5 * time.Second); n.lab.seen.count("forgot") == before; {
		if time.Now().After(deadline) {
			return errors.New("the world's log does not begin anew")
		}
		n.lab.settle(n)
	}
	n.since = len(n.lab.seen.all(func(event) bool { return true }))
	return nil
}

// happens waits for what is to be there in a moment.
func happens(what <-chan struct{}, not string) error {
	select {
	case <-what:
		return nil
	case <-time.After(20 * time.Second):
		return errors.New(not)
	}
}

// files writes what the place has in /etc, and its settings.
func (n *namespace) files() error {
	if err := os.Mkdir(n.settings.Dir, 0o755); err != nil {
		return err
	}
	resolver := "198.51.100.53"
	if n.settings.Outside {
		resolver = "host(198.51.100.53)"
	}
	settings, err := json.Marshal(n.settings)
	if err != nil {
		return err
	}
	for name, text := range map[string]string{"resolv.conf": "nameserver 127.0.0.11\noptions ndots:0 timeout:2 attempts:1\n# ExtServers: [" + resolver + "]\n", "hosts": "127.0.0.1 localhost\n", "settings": string(settings)} {
		if err := os.WriteFile(filepath.Join(n.settings.Dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// connect lays the wire: both its ends come into being inside the lab. The place
// knows the world's end without asking: what holds IPv6 back must not be that
// nobody finds the neighbour.
func (n *namespace) connect(number int) error {
	world := n.address.Prev()
	six := fmt.Sprintf("2001:db8:ff:%d::", number)
	err := ipIn(n.lab.world.pid(), "link add "+n.wire+" type veth peer name eth0 netns "+n.hold.pid(),
		"addr add "+world.String()+"/30 dev "+n.wire, "addr add "+six+"1/64 dev "+n.wire+" nodad", "link set "+n.wire+" address "+wireMAC, "link set "+n.wire+" up")
	if err != nil {
		return err
	}
	return ipIn(n.hold.pid(), "link set lo up", "addr add "+n.address.String()+"/30 dev eth0", "addr add "+six+"2/64 dev eth0 nodad", "link set eth0 up",
		"route add default via "+world.String(), "route add default via "+six+"1", "neigh replace "+six+"1 lladdr "+wireMAC+" dev eth0 nud permanent")
}

// wireMAC is the address of the world's end of every wire.
const wireMAC = "02:00:00:00:00:01"

// ipIn runs commands of ip in the namespaces of a process.
func ipIn(pid string, commands ...string) error {
	return runIP(exec.Command("nsenter", "--target", pid, "--net", "ip", "-batch", "-"), commands)
}

func ip(commands ...string) error { return runIP(exec.Command("ip", "-batch", "-"), commands) }

func runIP(cmd *exec.Cmd, commands []string) error {
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %q: %w: %s", commands, err, out)
	}
	return nil
}

func (n *namespace) close() {
	if n.hold == nil {
		return
	}
	for _, a := range n.agents {
		a.end()
	}
	if n.engine != nil {
		n.engine.end()
	}
	n.hold.end()
	n.leaked = n.hold.cmd.ProcessState.ExitCode() == exitLeak
}

// runPlace makes the files of a place, and waits to be told to become its gateway.
func runPlace() {
	one := func() (line []byte) { // no byte more: the gateway has the same input
		for b := make([]byte, 1); ; line = append(line, b[0]) {
			if n, err := os.Stdin.Read(b); n == 0 || err != nil {
				os.Exit(0)
			}
			if b[0] == '\n' {
				return line
			}
		}
	}
	var dir string
	must(json.Unmarshal(one(), &dir))
	p := readSettings(dir)
	for _, name := range []string{"resolv.conf", "hosts"} {
		must(unix.Mount(filepath.Join(dir, name), "/etc/"+name, "", unix.MS_BIND, ""))
	}
	// As every container engine has it.
	must(os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0))
	must(os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0))
	if p.Policy != nil {
		must(unix.Mount("/proc/sys", "/proc/sys", "", unix.MS_BIND|unix.MS_REC, ""))
		must(unix.Mount("", "/proc/sys", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	}
	report.event(event{Kind: "mounted"})
	one()
	if p.NoFile != 0 {
		must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: p.NoFile, Max: p.NoFile}))
	}
	setpriv, err := exec.LookPath("setpriv")
	must(err)
	// What the gateway's container has.
	argv := []string{"setpriv", "--bounding-set", "-all,+net_admin", "--inh-caps", "-all", "/proc/self/exe"}
	argv[len(argv)-1], err = os.Readlink("/proc/self/exe")
	must(err)
	must(os.Setenv(roleVariable, "gateway"))
	must(os.Setenv("GATEWAY_LAB_DIR", dir))
	must(syscall.Exec(setpriv, argv, os.Environ()))
}

func readSettings(dir string) placement {
	var p placement
	b, err := os.ReadFile(filepath.Join(dir, "settings"))
	must(err)
	must(json.Unmarshal(b, &p))
	return p
}

// runGateway is the gateway's process.
func runGateway() {
	p := readSettings(os.Getenv("GATEWAY_LAB_DIR"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, err := closed(Config{Policy: p.Policy, Key: p.Shared.GatewayKey, Inbound: p.Inbound, Journal: os.Stdout})
	must(err)
	go func() { // when its input ends, so does it, in order
		eachLine(os.Stdin, func(line []byte) {
			if string(line) == `"free"` {
				debug.FreeOSMemory()
			}
			g.addresses.mu.Lock()
			names := len(g.addresses.byName)
			g.addresses.mu.Unlock()
			report.event(event{Kind: "counts", Text: fmt.Sprint(runtime.NumGoroutine(), " ", names)})
		})
		cancel()
	}()
	go func() {
		for Prove(ctx, p.Shared.GatewayKey) != nil && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		report.event(event{Kind: "serving"})
	}()
	must(g.serve(ctx))
	// What is being resolved ends by itself, within resolveTime.
	if err := leaks(goleak.IgnoreAnyFunction("github.com/agent-container/agent-container/guest/gateway.(*upstream).kept.func1")); err != nil {
		fmt.Fprintln(os.Stderr, "lab: the gateway is over:", err)
		os.Exit(exitLeak)
	}
}

// exitLeak is a gateway's status that has left something behind.
const exitLeak = 3

// enginePort is where the engine's resolver really listens, as Docker's does at a
// port of its own choice.
const enginePort = 41053

// runEngine is the container engine's resolver: 127.0.0.11, which answers for any
// name by asking the world. Docker's asks from inside the container's network
// (measured with 26.1), so that its questions meet the gateway's rules; or from
// outside, for which a mark must do here.
func runEngine() {
	var outside bool
	readConfig(&outside, nil)
	must(engineRules())
	client := &dns.Client{Timeout: 5 * time.Second, UDPSize: 4096, Dialer: &net.Dialer{}}
	if outside {
		client.Dialer.Control = setMark
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		if len(q.Question) == 1 {
			report.event(event{Kind: "engine", Text: strings.ToLower(q.Question[0].Name)})
		}
		if addresses := worldNames[strings.TrimSuffix(q.Question[0].Name, ".")]; !strings.Contains(strings.TrimSuffix(q.Question[0].Name, "."), ".") && addresses != nil {
			m := new(dns.Msg).SetReply(q) // a container's name, which the engine knows itself
			m.Answer = records(q.Question[0].Name, q.Question[0].Qtype, addresses...)
			_ = w.WriteMsg(m)
			return
		}
		c := *client
		c.Net = w.LocalAddr().Network()
		if m, _, err := c.Exchange(q, "198.51.100.53:53"); err == nil {
			_ = w.WriteMsg(m)
		}
	})
	for _, network := range []string{"udp", "tcp"} {
		started := make(chan struct{})
		s := &dns.Server{Addr: fmt.Sprintf("127.0.0.11:%d", enginePort), Net: network, Handler: handler, NotifyStartedFunc: func() { close(started) }}
		go func() { must(s.ListenAndServe()) }()
		<-started
	}
	report.event(event{Kind: "ready"})
	select {}
}

// engineRules are Docker's: port 53 of 127.0.0.11 leads to its resolver.
func engineRules() error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := c.AddTable(&nftables.Table{Name: "nat", Family: nftables.TableFamilyIPv4})
	output := c.AddChain(&nftables.Chain{Name: "OUTPUT", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
	for _, p := range []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP} {
		c.AddRule(&nftables.Rule{Table: table, Chain: output, Exprs: rule(to(netip.MustParsePrefix("127.0.0.11/32")), protocol(p), toPort(53), []expr.Any{
			&expr.Immediate{Register: 1, Data: []byte{127, 0, 0, 11}},
			&expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(enginePort)},
			&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1, RegProtoMin: 2, Specified: true},
		})})
	}
	return c.Flush()
}
