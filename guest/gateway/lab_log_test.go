package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is what somebody in the lab saw.
type event struct {
	Kind   string // ready; tcp, tls, http, raw, udp, dns: a server; packet: the wire; engine: the engine's resolver
	Server string `json:",omitempty"` // that saw it, or where a packet was going
	From   string `json:",omitempty"` // the interface, for packets
	Text   string `json:",omitempty"`
}

// events is everything that was seen, in order.
type events struct {
	mu   sync.Mutex
	list []event
}

func newEvents() *events { return &events{} }

func (l *events) add(line []byte) event {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		fmt.Fprintf(os.Stderr, "lab: %v: %q\n", err, line)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
	return e
}

// all returns the events that which wants.
func (l *events) all(which func(event) bool) []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var some []event
	for _, e := range l.list {
		if which(e) {
			some = append(some, e)
		}
	}
	return some
}

// count is how many events of a kind there are.
func (l *events) count(kind string) int {
	return len(l.all(func(e event) bool { return e.Kind == kind }))
}

// with returns where a token was seen.
func (l *events) with(token string) []event {
	return l.all(func(e event) bool { return strings.Contains(e.Text, token) })
}

// wait returns the first events that which wants, or none when the time is over.
func (l *events) wait(limit time.Duration, which func(event) bool) []event {
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		if some := l.all(which); len(some) > 0 || time.Now().After(deadline) {
			return some
		}
	}
}

// servers are the servers of events, each once; packets and questions are no
// server's.
func servers(list []event) []string {
	var names []string
	for _, e := range list {
		if (e.Kind == "tcp" || e.Kind == "tls" || e.Kind == "http" || e.Kind == "raw" || e.Kind == "udp") && !slices.Contains(names, e.Server) {
			names = append(names, e.Server)
		}
	}
	return names
}

// reporter writes events as lines.
type reporter struct {
	mu sync.Mutex
	to io.Writer
}

var report = &reporter{to: os.Stdout}

func (r *reporter) event(e any) {
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.to.Write(append(b, '\n')); err != nil {
		os.Exit(0) // nobody listens any more
	}
}

func eachLine(from io.Reader, do func([]byte)) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		do(bytes.Clone(lines.Bytes()))
	}
}

// readConfig reads the first line of a member's input, and ends the process when
// the input does.
func readConfig(v any, then func(line []byte)) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, v)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab: configuration:", err)
		os.Exit(2)
	}
	go func() {
		if then == nil {
			then = func([]byte) {}
		}
		eachLine(in, then)
		os.Exit(0)
	}()
}

// decisions are a gateway's journal.
type decisions struct {
	mu   sync.Mutex
	list []Decision
}

func (d *decisions) add(line []byte) {
	var one Decision
	if err := json.Unmarshal(line, &one); err != nil {
		fmt.Fprintf(os.Stderr, "lab: journal: %v: %q\n", err, line)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, one)
}

// find returns the first decision that which wants, waiting for it for a while.
func (d *decisions) find(which func(Decision) bool) (Decision, bool) {
	for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		d.mu.Lock()
		var found Decision
		i := slices.IndexFunc(d.list, which)
		if i >= 0 {
			found = d.list[i]
		}
		d.mu.Unlock()
		if i >= 0 {
			return found, true
		}
		if time.Now().After(deadline) {
			return Decision{}, false
		}
	}
}
