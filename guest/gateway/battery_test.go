package gateway

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// row is a case of the battery, with the id that it has for good.
type row struct {
	id    string
	title string
	place string // "": strict
	tries []try
	test  func(t *testing.T, l *lab) // a case that is no list of tries
	wants string                     // what such a case wants
}

// try is one thing that a client does.
type try struct {
	what    string
	want    want
	do      func(*attempt) error
	control func(*attempt) error // what the control run does, where the same would not do
	who     []string             // nil: an agent, and a service that is root
}

func (t try) by() []string {
	if t.who != nil {
		return t.who
	}
	return []string{"uid 1000", "uid 0, powerless"}
}

// want is how a try must end. It is read at the servers.
type want struct {
	kind    string
	servers []string
	says    string // part of the client's error
	within  time.Duration
}

// The kinds of ends. Without the gateway, a token that must be somewhere or
// nowhere must reach a server; what the kernel must refuse must succeed for root;
// and what must hold must not.
const (
	kindReaches = "reaches"
	kindDenied  = "denied"
	kindRefused = "refused by the kernel"
	kindHolds   = "holds"
)

// promptly is how soon a refusal must be there.
const promptly = 2 * time.Second

func reaches(servers ...string) want {
	return want{kind: kindReaches, servers: servers, within: 8 * time.Second}
}
func denied(says ...string) want {
	return want{kind: kindDenied, says: strings.Join(says, ""), within: promptly}
}

func (w want) slow(d time.Duration) want { w.within = d; return w }

var (
	refusedByKernel = want{kind: kindRefused, within: promptly}
	holds           = want{kind: kindHolds, within: 8 * time.Second}
)

func (w want) String() string {
	switch w.kind {
	case kindReaches:
		return "reaches " + strings.Join(w.servers, ", ")
	case kindDenied:
		return "denied"
	}
	return w.kind
}

// errNotHere is what an attempt returns that this kernel has no means for.
var errNotHere = errors.New("not in this kernel")

// rows is the battery.
func rows() []row {
	return slices.Concat(nameRows(), networkRows(), dnsRows(), webRows(), localRows(), ownRows(), loadRows())
}

func tryOf(o order) try {
	if do := tools[o.Row]; do != nil {
		return try{do: do}
	}
	if do := secretTools[o.Row]; do != nil {
		return try{do: do}
	}
	for _, r := range rows() {
		if r.id == o.Row {
			t := r.tries[o.Try%1000]
			if o.Try >= 1000 { // the control's
				t.do = t.control
			}
			return t
		}
	}
	return try{do: func(*attempt) error { return fmt.Errorf("no row %s", o.Row) }}
}

func declare(below bool, name string, private bool, ports ...int) []spec.Rule {
	var rules []spec.Rule
	for _, port := range ports {
		rules = append(rules, spec.Rule{Name: name, Below: below, Port: port, Private: private, From: "the lab"})
	}
	return rules
}

// placements are the places of the battery; open is the control's.
func placements(name string) placement {
	declared := slices.Concat(declare(false, "allowed.test", false, 443, 80), declare(true, "wild.test", false, 443, 80), declare(false, "good-cdn.test", false, 443, 80),
		declare(false, "git.test", false, 22), declare(false, "xn--bcher-kva.test", false, 443))
	switch name {
	case "open":
		return placement{}
	case "strict":
		return placement{Policy: &spec.Policy{Enforcement: spec.Strict, Rules: declared}, Inbound: []uint16{2222}}
	case "outside":
		return placement{Policy: &spec.Policy{Enforcement: spec.Strict, Rules: declared}, Outside: true}
	case "empty":
		return placement{Policy: &spec.Policy{Enforcement: spec.Strict}}
	case "advisory":
		return placement{Policy: &spec.Policy{Enforcement: spec.Advisory, Rules: declared}}
	case "private":
		return placement{Policy: &spec.Policy{Enforcement: spec.Strict, Rules: slices.Concat(declare(false, "private.test", true, 443, 80, 6379), declare(false, "loop.test", true, 49001, 8080), declare(false, "meta.test", true, 80),
			declare(false, "db", true, 5432), declare(false, "cache", true, 5432), []spec.Rule{{Address: netip.MustParseAddr("10.20.0.5"), Port: 3306, Private: true, From: "the lab"}})}}
	}
	panic(name)
}

func (l *lab) named(t testing.TB, name string) *namespace { return l.place(t, name, placements(name)) }

var update = flag.Bool("update", false, "write docs/egress-tests.md from this run")

// The battery's rows must end as they say, for an agent and for a service that is
// root; and without the gateway they must not.
func TestBattery(t *testing.T) {
	l := theLab(t)
	repeats := 1
	if os.Getenv("AGENT_CONTAINER_BATTERY") == "full" {
		repeats = 3
	}
	b := &battery{lab: l, measured: map[string]*measured{}}
	for _, r := range rows() {
		if r.test != nil {
			continue
		}
		t.Run(r.id, func(t *testing.T) {
			for i := range r.tries {
				b.control(t, r, i)
				for range repeats {
					for _, who := range r.tries[i].by() {
						b.run(t, r, i, who)
					}
				}
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		for _, r := range rows() {
			if r.test != nil {
				t.Run(r.id, func(t *testing.T) {
					t.Parallel()
					r.test(t, l)
					b.note(r.id, !t.Failed(), "")
				})
			}
		}
	})
	t.Run("nothing came late", b.late)
	t.Run("every packet", b.packets)
	t.Run("document", b.document)
}

// battery is one run.
type battery struct {
	lab      *lab
	mu       sync.Mutex
	tokens   []string             // that must be nowhere
	measured map[string]*measured // by row
}

// measured is how often a row ended as it must, of how many times, and what it
// could not try.
type measured struct {
	good, all int
	notHere   []string
}

func (b *battery) note(id string, good bool, notHere string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.measured[id]
	if m == nil {
		m = &measured{}
		b.measured[id] = m
	}
	if notHere != "" {
		if !slices.Contains(m.notHere, notHere) {
			m.notHere = append(m.notHere, notHere)
		}
		return
	}
	m.all++
	if good {
		m.good++
	}
}

// control makes the try in a place without a gateway, where it must not end as it
// must behind one: otherwise the row says nothing.
func (b *battery) control(t *testing.T, r row, i int) {
	t.Helper()
	tr, token, who := r.tries[i], newToken(), "uid 1000"
	o := order{Row: r.id, Try: i, Token: token}
	if tr.control != nil {
		o.Try += 1000
	}
	if tr.want.kind == kindRefused || tr.who != nil {
		who = "root"
	}
	place := b.lab.named(t, "open")
	res, err := place.as(who).try(o)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case res.Err == errNotHere.Error():
	case tr.want.kind == kindRefused && res.Err != "":
		t.Errorf("%s %s: the row is void: root fails too: %s", r.id, tr.what, res.Err)
	case tr.want.kind == kindHolds && res.Err == "":
		t.Errorf("%s %s: the row is void: it holds without a gateway", r.id, tr.what)
	case tr.want.kind == kindReaches || tr.want.kind == kindDenied:
		if got := b.lab.seen.wait(2*time.Second, func(e event) bool { return e.Kind != "engine" && strings.Contains(e.Text, token) }); len(got) == 0 {
			t.Errorf("%s %s: the row is void: without a gateway it reaches nothing either: %s", r.id, tr.what, res.Err)
		}
	}
}

// run makes the try behind the gateway and reads the verdict.
func (b *battery) run(t *testing.T, r row, i int, who string) {
	t.Helper()
	place := r.place
	if place == "" {
		place = "strict"
	}
	tr, token := r.tries[i], newToken()
	n := b.lab.named(t, place)
	o := order{Row: r.id, Try: i, Token: token}
	if tr.want.kind == kindHolds { // which may take what it wants; the others end by themselves
		o.Limit = tr.want.within
	}
	res, err := n.as(who).try(o)
	if err != nil {
		t.Fatal(err)
	}
	if res.Err == errNotHere.Error() {
		b.note(r.id, false, tr.what)
		return
	}
	verdict := b.verdict(n, tr, token, res)
	b.note(r.id, verdict == tr.want.String(), "")
	if verdict != tr.want.String() {
		t.Errorf("%s %s, as %s: %s, want %s; the client saw %q after %s", r.id, tr.what, who, verdict, tr.want, res.Err, res.Took.Round(time.Millisecond))
	}
}

// verdict is how a try ended, in the words of what was wanted if it did so.
func (b *battery) verdict(n *namespace, tr try, token string, res result) string {
	if res.Took > tr.want.within {
		return fmt.Sprintf("late: %s", res.Took.Round(time.Millisecond))
	}
	switch tr.want.kind {
	case kindReaches:
		got := servers(b.lab.seen.wait(2*time.Second, func(e event) bool {
			return e.Kind != "packet" && e.Kind != "engine" && e.Kind != "dns" && strings.Contains(e.Text, token)
		}))
		if res.Err != "" {
			return "the client fails: " + res.Err
		}
		return "reaches " + strings.Join(got, ", ")
	case kindDenied:
		b.tokens = append(b.tokens, token)
		b.lab.settle(n)
		if got := b.lab.seen.with(token); len(got) > 0 {
			return fmt.Sprintf("seen: %+v", got)
		}
		if res.Err == "" || !strings.Contains(res.Err, tr.want.says) {
			return fmt.Sprintf("the client does not see %q", tr.want.says)
		}
		return "denied"
	}
	if (res.Err == "") != (tr.want.kind == kindHolds) {
		return "does not hold: " + res.Err
	}
	return tr.want.kind
}

// late looks for the tokens that must be nowhere once more.
func (b *battery) late(t *testing.T) {
	for _, token := range b.tokens {
		if got := b.lab.seen.with(token); len(got) > 0 {
			t.Errorf("seen after all: %+v", got)
		}
	}
	if len(b.tokens) == 0 {
		t.Error("nothing was denied")
	}
}

// packets looks at every packet that left the strict place: each must be the
// gateway's own, to a declared host's server or to the resolver.
func (b *battery) packets(t *testing.T) {
	n := b.lab.named(t, "strict")
	b.lab.settle(n)
	declared := []string{"udp 198.51.100.53:53", "tcp 198.51.100.53:53", "tcp 198.51.100.22:22", "tcp 198.51.100.12:443", "tcp 192.0.2.99:443"}
	for _, host := range []string{"10", "11", "67", "80"} {
		declared = append(declared, "tcp 198.51.100."+host+":443", "tcp 198.51.100."+host+":80")
	}
	all := b.lab.seen.all(func(event) bool { return true })[n.since:]
	all = slices.DeleteFunc(all, func(e event) bool {
		return e.Kind != "packet" || e.From != n.wire || e.Server == "udp 198.51.100.53:9999"
	})
	if len(all) < len(declared)/2 {
		t.Errorf("only %d kinds of packets were seen", len(all))
	}
	for _, e := range all {
		if !slices.Contains(declared, e.Server) {
			t.Errorf("a packet left to %s", e.Server)
		}
	}
}

// settle waits until the world's log has caught up with what left a place before:
// a packet of the lab's own, with a token of its own, is in it.
func (l *lab) settle(n *namespace) {
	token := newToken()
	_, _ = n.as("root").try(order{Row: "settle", Token: token})
	// The packet log is in order; a server may see its packet before the log does.
	l.seen.wait(2*time.Second, func(e event) bool { return e.Kind == "packet" && strings.Contains(e.Text, token) })
}
