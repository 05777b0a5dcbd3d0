package gateway

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The lab is a network of its own: a namespace that is the world, with servers on
// addresses that nobody has, and one namespace for each gateway, joined to the
// world alone. What happens is read at the world's servers and in its packet log,
// never from what a client says. The test binary is every program in it: with
// roleVariable set it plays that part.
//
// Nothing is made in the machine's own namespace. Needed: root, and ip, nsenter
// and setpriv (iproute2, util-linux).
type lab struct {
	dir    string // that every uid may read: the test binary, for the agents
	shared shared
	world  *member
	seen   *events
	mu     sync.Mutex
	places map[string]*namespace
	count  int
}

// shared is what the members of the lab know.
type shared struct {
	Certificate []byte // of every server of the world
	Key         []byte
	ECHKey      []byte
	ECHConfig   []byte
	GatewayKey  []byte
}

const roleVariable = "GATEWAY_LAB"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		playRole(role)
		return
	}
	code := m.Run()
	if started != nil && !started.close() {
		code = 1
	}
	if err := leaks(); err != nil {
		fmt.Fprintln(os.Stderr, "the tests are over:", err)
		code = 1
	}
	os.Exit(code)
}

// leaks says what is left when everything is over. What ends is given longer than
// goleak would, and less than end waits for a member.
func leaks(options ...goleak.Option) (err error) {
	for deadline := time.Now().Add(4 * time.Second); ; {
		if err = goleak.Find(options...); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

func playRole(role string) {
	switch role {
	case "world":
		runWorld()
	case "place":
		runPlace()
	case "gateway":
		runGateway()
	case "engine":
		runEngine()
	case "agent":
		runAgent()
	case "once":
		runOnce()
	default:
		fmt.Fprintln(os.Stderr, "lab: no such role:", role)
		os.Exit(2)
	}
}

var (
	started   *lab
	startOnce sync.Once
	startErr  error
)

// theLab returns the one lab of this run, which is made at its first use.
func theLab(t testing.TB) *lab {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the lab makes network namespaces, which takes root")
	}
	for _, tool := range []string{"ip", "nsenter", "setpriv"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the lab needs %s (iproute2, util-linux): %v", tool, err)
		}
	}
	startOnce.Do(func() { started, startErr = startLab() })
	if startErr != nil {
		t.Fatalf("the lab does not start: %v", startErr)
	}
	return started
}

func startLab() (*lab, error) {
	dir, err := os.MkdirTemp("", "gateway-lab-")
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, seen: newEvents(), places: map[string]*namespace{}}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(l.binary(), binary, 0o755); err != nil {
		return nil, err
	}
	if l.shared, err = makeShared(); err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	l.world, err = l.start("world", l.shared, func(line []byte) {
		if e := l.seen.add(line); e.Kind == "ready" {
			close(ready)
		}
	})
	if err != nil {
		return nil, err
	}
	return l, happens(ready, "the world is not ready")
}

func (l *lab) binary() string { return filepath.Join(l.dir, "lab") }

// close ends the lab; false if a gateway has left something behind.
func (l *lab) close() (clean bool) {
	clean = true
	for _, p := range l.places {
		p.close()
		clean = clean && !p.leaked
	}
	if l.world != nil {
		l.world.end()
	}
	_ = os.RemoveAll(l.dir)
	return clean
}

// makeShared makes a certificate for every name of the world and a key for
// encrypted hellos (RFC 9849).
func makeShared() (shared, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return shared{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the world"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		DNSNames: []string{"*.test", "*.wild.test"}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return shared{}, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return shared{}, err
	}
	ech, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return shared{}, err
	}
	s := shared{Certificate: der, Key: pkcs8, ECHKey: ech.Bytes(), ECHConfig: ech.PublicKey().Bytes(), GatewayKey: make([]byte, 32)}
	_, err = rand.Read(s.GatewayKey)
	return s, err
}

func (s shared) keyPair() (tls.Certificate, error) {
	key, err := x509.ParsePKCS8PrivateKey(s.Key)
	return tls.Certificate{Certificate: [][]byte{s.Certificate}, PrivateKey: key}, err
}

// member is a process of the lab.
type member struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	wg  sync.WaitGroup
}

// start starts a member and gives it its configuration as the first line of its
// input. A member ends when its input does. With a prefix, which is a command to
// start it through, it enters namespaces; without one it gets its own.
func (l *lab) start(role string, config any, line func([]byte), prefix ...string) (*member, error) {
	argv := append(prefix, l.binary())
	m := &member{cmd: exec.Command(argv[0], argv[1:]...)}
	m.cmd.Env = append(os.Environ(), roleVariable+"="+role)
	m.cmd.Stderr = os.Stderr
	if len(prefix) == 0 {
		m.cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	}
	var err error
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	m.wg.Go(func() { eachLine(out, line) })
	return m, m.tell(config)
}

// tell writes a line of JSON to a member.
func (m *member) tell(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = m.in.Write(append(b, '\n'))
	return err
}

// end closes the input of a member and waits until it is gone.
func (m *member) end() {
	_ = m.in.Close()
	late := time.AfterFunc(10*time.Second, func() { _ = m.cmd.Process.Kill() })
	defer late.Stop()
	m.wg.Wait()
	_ = m.cmd.Wait()
}

func (m *member) pid() string { return strconv.Itoa(m.cmd.Process.Pid) }

// rss is the memory of a process, in bytes.
func rss(t testing.TB, pid string) int64 {
	t.Helper()
	return procValue(t, pid, "VmRSS:") << 10
}

func procValue(t testing.TB, pid, field string) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in the status of %s", field, pid)
	return 0
}

// addrOf is an address as the world's log has it.
func addrOf(a netip.AddrPort) string { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()).String() }
