package gateway

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// soakWarm is how long the soak goes on before anything is compared: as many names
// have to be live as may be.
const soakWarm = 20 * time.Second

// A gateway must hold no more after a long time of everything that agents do than
// after a short one. With AGENT_CONTAINER_SOAK, a duration such as 5m.
func TestSoak(t *testing.T) {
	text := os.Getenv("AGENT_CONTAINER_SOAK")
	if text == "" {
		t.Skip("without AGENT_CONTAINER_SOAK, a duration such as 5m")
	}
	length, err := time.ParseDuration(text)
	if err != nil || length <= 0 {
		t.Fatalf("AGENT_CONTAINER_SOAK is %q, not a duration", text)
	}
	l := theLab(t)
	n := l.loaded(t, "soak", 0)
	a := n.as("uid 1000")
	a.work(t, "names", fmt.Sprint(maxNames+100))
	a.soak(t, soakWarm)
	before, held := n.settled(t)
	t.Log(a.soak(t, length))
	after, holds := n.settled(t)
	t.Logf("after the warm-up %+v and %.1f MiB, after %s more %+v and %.1f MiB", before, held, length, after, holds)
	if after.goroutines > before.goroutines || after.descriptors > before.descriptors || after.names > before.names || holds > held*1.1 {
		t.Error("it has grown")
	}
}

func (a *agent) soak(t *testing.T, d time.Duration) string {
	t.Helper()
	r, err := a.try(order{Row: "soak", Arg: d.String(), Token: newToken(), Limit: d + 30*time.Second})
	if err != nil || r.Err != "" {
		t.Fatalf("%v %s", err, r.Err)
	}
	return r.Says
}

// settled waits until as little is open as there is when nothing goes on, and says
// what that is and what is held then, after what can be given back was.
func (n *namespace) settled(t *testing.T) (least steady, held float64) {
	t.Helper()
	least = n.counted(t, "free")
	for end := time.Now().Add(helloTime + 5*time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if now := n.counted(t, "free"); now.goroutines+now.descriptors <= least.goroutines+least.descriptors {
			least, held = now, megabytes(t, n, "VmRSS:")
		}
	}
	return least, held
}

// soak is traffic of every kind for a while: what is declared must work all the
// time, and what is not must never.
func (a *attempt) soak() error {
	d, err := time.ParseDuration(a.arg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(a.ctx, d)
	defer cancel()
	var wg sync.WaitGroup
	var failed atomic.Value
	counts := make([]int, len(soaks))
	for i, s := range soaks {
		wg.Go(func() {
			for ; ctx.Err() == nil; counts[i]++ {
				if err := a.soakOnce(s, counts[i]); err != nil {
					failed.Store(fmt.Errorf("%s, time %d: %w", s.what, counts[i], err))
					return
				}
				time.Sleep(10 * time.Millisecond) // it is to last, not to fill the machine
			}
		})
	}
	wg.Wait()
	for i, s := range soaks {
		a.says += fmt.Sprintf("%s: %d; ", s.what, counts[i])
	}
	err, _ = failed.Load().(error)
	return err
}

func (a *attempt) soakOnce(s soak, i int) error {
	ctx, cancel := context.WithTimeout(a.ctx, 8*time.Second)
	defer cancel()
	err := s.do(&attempt{ctx: ctx, token: a.token, shared: a.shared}, i)
	if s.denied && err == nil {
		return fmt.Errorf("it is let through")
	}
	if s.denied {
		return nil
	}
	return err
}

type soak struct {
	what   string
	denied bool
	do     func(a *attempt, i int) error
}

var soaks = []soak{
	{"https", false, func(a *attempt, _ int) error { return a.https("allowed.test") }},
	{"http", false, func(a *attempt, _ int) error { return a.http("allowed.test") }},
	{"other TCP", false, func(a *attempt, _ int) error { return a.raw("git.test:22", "") }},
	{"names below a wildcard", false, func(a *attempt, i int) error { return a.https(fmt.Sprintf("n%d.wild.test", i)) }},
	{"3 MiB", false, func(a *attempt, _ int) error { return a.megabytes(3) }},
	{"undeclared names", true, func(a *attempt, i int) error { return a.https(fmt.Sprintf("n%d.evil.test", i)) }},
	{"undeclared addresses", true, func(a *attempt, _ int) error { return a.raw(server(66, 8080), "") }},
	{"other hosts' hellos", true, func(a *attempt, _ int) error { return a.fetch(request{url: "https://allowed.test/", sni: "evil.test"}) }},
	{"half hellos that are given up", true, func(a *attempt, i int) error { return a.half443(time.Duration(i%50) * time.Millisecond) }},
	{"connections that are left", true, func(a *attempt, i int) error {
		if i%100 == 0 { // the gateway ends them
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), helloTime+3*time.Second)
				defer cancel()
				_ = (&attempt{ctx: ctx}).slowly(false)
			}()
		}
		return io.EOF
	}},
}

// megabytes gets so many, most of which the kernel moves.
func (a *attempt) megabytes(n int64) error {
	got, err := a.downloadRaw("git.test:22", n<<20)
	if err == nil && got != n<<20 {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// half443 sends a part of a hello and goes away.
func (a *attempt) half443(after time.Duration) error {
	conn, err := a.connectTo("allowed.test:443")
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("\x16\x03\x01\x02\x00\x01\x00")); err != nil {
		return err
	}
	time.Sleep(after)
	return io.EOF
}
