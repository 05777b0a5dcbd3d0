package gateway

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// loadRows are the rows that are many attempts at once, or last.
func loadRows() []row {
	return []row{
		{id: "A14", title: "a declared name whose address changes every second, also to a private one", wants: "it works on; where it cannot, a line says why", test: rotating},
		{id: "C16", title: "6,000 names below a wildcard", wants: "a declared name is answered within a second; memory is bounded", test: manyNames},
		{id: "E09", title: "an agent as a relay for people who come in", wants: "it is no way out but to declared hosts", test: relaying},
		{id: "E11", title: "people who come in", wants: "by the declared port alone", test: inbound},
		{id: "F05", title: "a gateway that was killed", wants: "nothing leaves", test: killed},
		{id: "F09", title: "a policy with a bad rule, no capability, a table that is another's", wants: "an error that names it, and nothing listens", test: refusing},
		{id: "F12", title: "400 connections that begin and never get on", wants: "others are served within 2 s; these are closed", test: slowOnes},
		{id: "F13", title: "600 connections at once to a gateway with 256 descriptors", wants: "it serves what it can, refuses the rest, recovers and loses nothing", test: fewDescriptors},
		{id: "F15", title: "large and long streams", wants: "every byte arrives, also after one side has ended", test: streams},
		{id: "F17", title: "5,000 refusals at once", wants: "the journal is bounded, counts what it leaves out, and has the last", test: flooded},
		{id: "F18", title: "secrets in requests that are let through and that are refused", wants: "in no line of the journal", test: secrets},
		{id: "F20", title: "rules that somebody with every power flushed", wants: "found at the next look", test: flushed},
		{id: "F21", title: "a clock that jumps by a day", wants: "what is kept goes by the time that passes, the journal's rate by neither jump", test: clockJump},
		{id: "G15", title: "an agent that fills its gateway: connections, half proofs, questions", wants: "whoever asks for the proof gets it", test: clogged},
		{id: "G07", title: "the port from which the gateway just asked", wants: "nothing arrives", test: samePort},
	}
}

func (l *lab) loaded(t testing.TB, name string, noFile uint64) *namespace {
	p := placements("strict")
	p.NoFile = noFile
	return l.place(t, name, p)
}

// steady is how much a gateway has open, when nothing is going on.
type steady struct{ goroutines, descriptors, names int }

func (n *namespace) steady(t testing.TB) steady { return n.counted(t, "count") }

func (n *namespace) counted(t testing.TB, order string) (s steady) {
	t.Helper()
	if err := n.hold.tell(order); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(<-n.counts, &s.goroutines, &s.names); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir("/proc/" + n.hold.pid() + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		// The pipes of splice(2) are kept for the next connection.
		if to, err := os.Readlink("/proc/" + n.hold.pid() + "/fd/" + f.Name()); err == nil && !strings.HasPrefix(to, "pipe:") {
			s.descriptors++
		}
	}
	return s
}

// returns waits until no more is open than before.
func (n *namespace) returns(t testing.TB, before steady) {
	t.Helper()
	var now steady
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if now = n.steady(t); now.goroutines <= before.goroutines && now.descriptors <= before.descriptors {
			return
		}
	}
	t.Errorf("%+v are left of %+v", now, before)
}

// within has an agent use a tool, in so much time.
func (a *agent) within(t testing.TB, limit time.Duration, tool, arg string) {
	t.Helper()
	r, err := a.try(order{Row: tool, Arg: arg, Token: newToken(), Limit: limit})
	if err != nil || r.Err != "" || r.Took > limit {
		t.Errorf("%s %s: %v %s after %s, want it within %s", tool, arg, err, r.Err, r.Took, limit)
	}
}

func manyNames(t *testing.T, l *lab) {
	n := l.loaded(t, "names", 0)
	a := n.as("uid 1000")
	a.work(t, "names", "6000")
	a.soon(t, "resolve", func(int) string { return "allowed.test" })
	a.soon(t, "https", func(i int) string { return fmt.Sprintf("n%d.wild.test", i) }) // which has lost its address, and gets another one
	held := rss(t, n.hold.pid()) >> 20
	if held > 40 && !raceEnabled {
		t.Errorf("the gateway holds %d MiB", held)
	}
}

// soon has an agent use a tool, which must take a second at most: once of a few times,
// because others are tried on this machine too. What fails has failed.
func (a *agent) soon(t testing.TB, tool string, arg func(i int) string) {
	t.Helper()
	var took []time.Duration
	for i := range 5 {
		r, err := a.try(order{Row: tool, Arg: arg(i), Token: newToken()})
		if err != nil || r.Err != "" {
			t.Errorf("%s %s: %v %s after %s", tool, arg(i), err, r.Err, r.Took)
			return
		}
		if r.Took <= time.Second {
			return
		}
		took = append(took, r.Took)
	}
	t.Errorf("%s %s: it took %v, want a second", tool, arg(0), took)
}

func inbound(t *testing.T, l *lab) {
	n := l.loaded(t, "inbound", 0)
	done := make(chan result, 1)
	go func() {
		r, _ := n.as("uid 1000").try(order{Row: "listen", Arg: "2222 8081", Limit: 6 * time.Second})
		done <- r
	}()
	world := &namespace{lab: l, hold: l.world, agents: map[string]*agent{}}
	defer func() {
		for _, a := range world.agents {
			a.end()
		}
	}()
	dial := func(port string) result {
		r, err := world.as("root").try(order{Row: "dial", Arg: n.address.String() + ":" + port, Token: newToken(), Limit: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var r result
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // until the agent listens
		if r = dial("2222"); r.Err == "" {
			break
		}
	}
	if r.Err != "" {
		t.Errorf("the declared port: %s", r.Err)
	}
	if r := dial("8081"); r.Err == "" {
		t.Error("another port is open")
	}
	if r := <-done; r.Err != "" {
		t.Error(r.Err)
	}
}

// killed ends the gateway at once. The agents are there before: nobody can enter
// the namespaces of a process that is gone.
func killed(t *testing.T, l *lab) {
	n := l.loaded(t, "killed", 0)
	a, root := n.as("uid 1000"), n.as("root")
	a.within(t, promptly, "https", "allowed.test")
	address := a.work(t, "resolve", "allowed.test")
	if err := n.hold.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	n.hold.wg.Wait() // its output has ended
	var tokens []string
	for _, o := range []order{{Row: "https", Arg: "allowed.test"}, {Row: "dial", Arg: address + ":443"}, {Row: "dial", Arg: server(10, 443)}, {Row: "dial", Arg: server(66, 8080)},
		{Row: "dial", Arg: "[2001:db8:1::66]:8080"}, {Row: "unmarked", Arg: "34568"}} {
		o.Token, o.Limit = newToken(), 3*time.Second
		tokens = append(tokens, o.Token)
		if r, err := a.try(o); err != nil || r.Err == "" && o.Row != "unmarked" {
			t.Errorf("%s %s: not refused: %v", o.Row, o.Arg, err)
		}
	}
	if r, err := root.try(order{Row: "verify"}); err != nil || r.Err != "" {
		t.Errorf("the rules: %v %s", err, r.Err)
	}
	l.settle(n)
	for _, token := range tokens {
		if got := l.seen.with(token); len(got) > 0 {
			t.Errorf("seen: %+v", got)
		}
	}
}

func slowOnes(t *testing.T, l *lab) {
	n := l.loaded(t, "slow", 0)
	before := n.steady(t)
	done := make(chan result)
	go func() {
		r, _ := n.as("uid 1000").try(order{Row: "slow", Arg: "200", Limit: helloTime + 8*time.Second})
		done <- r
	}()
	for {
		select {
		case r := <-done:
			if r.Err != "" {
				t.Error(r.Err)
			}
			n.returns(t, before)
			return
		case <-time.After(time.Second):
			n.as("uid 0, powerless").within(t, promptly, "https", "allowed.test")
		}
	}
}

func fewDescriptors(t *testing.T, l *lab) {
	n := l.loaded(t, "few", 256)
	a := n.as("uid 1000")
	a.within(t, promptly, "https", "allowed.test")
	before := n.steady(t)
	served, err := strconv.Atoi(a.work(t, "hold", "git.test:22 600 100ms"))
	if err != nil || served < 50 {
		t.Errorf("%d of 600 were served: %v", served, err)
	}
	a.within(t, promptly, "https", "allowed.test")
	a.within(t, promptly, "dial", "git.test:22")
	n.returns(t, before)
}

func streams(t *testing.T, l *lab) {
	n := l.loaded(t, "streams", 0)
	a := n.as("uid 1000")
	before := n.steady(t)
	quiet := make(chan struct{})
	go func() {
		n.as("uid 0, powerless").within(t, time.Minute, "quiet", "git.test:22 3s")
		close(quiet)
	}()
	for _, host := range []string{"git.test:22", "https://allowed.test", "http://allowed.test"} {
		a.within(t, time.Minute, "download", fmt.Sprintf("%s %d", host, 32<<20))
	}
	a.within(t, time.Minute, "upload", fmt.Sprintf("git.test:22 %d", 16<<20))
	a.within(t, time.Minute, "late", fmt.Sprintf("git.test:22 %d", 8<<20))
	a.within(t, time.Minute, "events", "https://allowed.test")
	a.within(t, time.Minute, "events", "http://allowed.test")
	a.within(t, time.Minute, "half", "")
	<-quiet
	n.returns(t, before)
}

func flooded(t *testing.T, l *lab) {
	n := l.loaded(t, "flood", 0)
	begin := time.Now()
	n.as("uid 1000").work(t, "flood", "5000")
	// So many are asked at once, any of which may be the last.
	last := func(d Decision) bool {
		return d.Name >= "n4950" && d.Name <= "n4999.evil.test" && len(d.Name) == len("n4999.evil.test")
	}
	if _, ok := n.journal.find(last); !ok {
		t.Error("the last refusal is not in the journal")
	}
	if _, ok := n.journal.find(func(d Decision) bool { return d.Name == "n0.evil.test" }); !ok {
		t.Error("the first refusal is not in the journal")
	}
	lines, left := n.journal.refusals(".evil.test")
	for deadline := time.Now().Add(3 * journalPause); lines+left < 5000 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		lines, left = n.journal.refusals(".evil.test") // what is left out is said a moment later
	}
	if lines+left != 5000 {
		t.Errorf("%d lines and %d left out are not 5,000", lines, left)
	}
	if most := journalBurst + int(time.Since(begin).Seconds()+2)*(journalRate+1); lines > most {
		t.Errorf("%d lines are more than %d", lines, most)
	}
}

// refusals counts the lines about names below suffix, and those that were left out.
func (d *decisions) refusals(suffix string) (lines, left int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.list {
		if e.Stage == spec.StageJournal {
			left += e.Left
		} else if strings.HasSuffix(e.Name, suffix) {
			lines++
		}
	}
	return lines, left
}

func flushed(t *testing.T, l *lab) {
	n := l.loaded(t, "flushed", 0)
	root := n.as("root")
	root.work(t, "verify", "")
	root.work(t, "open up", "")
	r, err := root.try(order{Row: "verify"})
	if err != nil || r.Err == "" {
		t.Errorf("the rules are gone and nobody sees it: %v", err)
	}
}

// samePort sends from a port from which the gateway's mark has just been let out:
// the kernel has that pair of addresses and ports in its memory.
func samePort(t *testing.T, l *lab) {
	n := l.loaded(t, "port", 0)
	allowed, denied := newToken(), newToken()
	for _, o := range []struct{ who, tool, token string }{{"root", "marked", allowed}, {"uid 1000", "unmarked", denied}} {
		if _, err := n.as(o.who).try(order{Row: o.tool, Arg: "34567", Token: o.token}); err != nil {
			t.Fatal(err)
		}
	}
	l.settle(n)
	if len(l.seen.with(allowed)) == 0 {
		t.Error("the row is void: the marked packet does not arrive either")
	}
	if got := l.seen.with(denied); len(got) > 0 {
		t.Errorf("seen: %+v", got)
	}
}
