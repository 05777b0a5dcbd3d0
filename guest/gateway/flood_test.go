package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/agent-container/agent-container/spec"
)

// clogged has an agent fill its gateway with all that there is: more connections
// than it serves, connections to where the proof is that ask for none, questions
// whose answers nobody waits for. Whoever asks for the proof meanwhile must get it,
// or the container would be ended for a gateway that is there.
func clogged(t *testing.T, l *lab) {
	n := l.loaded(t, "clogged", 256)
	before := n.steady(t)
	done := make(chan result)
	go func() {
		r, err := n.as("uid 1000").try(order{Row: "clog", Arg: "150 3s", Limit: 20 * time.Second})
		if err != nil {
			r.Err = err.Error()
		}
		done <- r
	}()
	n.as("root").work(t, "clogged", "")
	proved := n.as("uid 0, powerless").work(t, "prove", "2s")
	r := <-done
	served, _ := strconv.Atoi(r.Says)
	if r.Err != "" || served == 0 || served >= 150 {
		t.Errorf("the row is void: %d of 150 connections were served: %s", served, r.Err)
	}
	t.Logf("%d of 150 connections were served; %s", served, proved)
	n.returns(t, before)
}

// untilClogged waits until the gateway refuses a connection.
func (a *attempt) untilClogged() error {
	for a.ctx.Err() == nil {
		if a.raw("git.test:22", "") != nil {
			return nil
		}
	}
	return a.ctx.Err()
}

// proveFor asks for the proof for a while and says how often and how long the
// longest took.
func (a *attempt) proveFor() error {
	d, err := time.ParseDuration(a.arg)
	if err != nil {
		return err
	}
	var slowest time.Duration
	count := 0
	for end := time.Now().Add(d); time.Now().Before(end); count++ {
		begin := time.Now()
		if err := Prove(a.ctx, a.shared.GatewayKey); err != nil {
			return fmt.Errorf("after %d proofs: %w", count, err)
		}
		slowest = max(slowest, time.Since(begin))
	}
	a.says = fmt.Sprintf("%d proofs, the longest took %s", count, slowest.Round(time.Millisecond))
	return nil
}

// clog does what clogged says, for a while, and says how many connections it got.
func (a *attempt) clog() error {
	count, pause, _ := strings.Cut(a.arg, " ")
	n, _ := strconv.Atoi(count)
	d, _ := time.ParseDuration(pause)
	ctx, cancel := context.WithTimeout(a.ctx, d)
	defer cancel()
	var wg sync.WaitGroup
	for _, do := range []func(context.Context){askForNothing, askForNothing, askMuch} {
		wg.Go(func() { do(ctx) })
	}
	held := &attempt{ctx: ctx, arg: fmt.Sprintf("git.test:22 %d %s", n, d)}
	err := held.hold()
	a.says = held.says
	wg.Wait()
	return err
}

// askForNothing connects to where the proof is, ever again, and says nothing. So
// many connections stay open.
func askForNothing(ctx context.Context) {
	open := make([]net.Conn, 300)
	for i := 0; ctx.Err() == nil; i = (i + 1) % len(open) {
		if open[i] != nil {
			open[i].Close()
		}
		open[i], _ = (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp4", spec.GatewayProof.String())
		if i%10 == 0 {
			time.Sleep(time.Millisecond) // others are measured on this machine too
		}
	}
	for _, c := range open {
		if c != nil {
			c.Close()
		}
	}
}

// askMuch sends questions for undeclared names and reads no answer.
func askMuch(ctx context.Context) {
	to := netip.AddrPortFrom(engineResolver, 53)
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return
	}
	defer conn.Close()
	question, err := new(dns.Msg).SetQuestion("clog.evil.test.", dns.TypeA).Pack()
	if err != nil {
		return
	}
	for i := 0; ctx.Err() == nil; i++ {
		if _, err := conn.Write(question); errors.Is(err, net.ErrClosed) {
			return
		}
		if i%500 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}
