package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// output passes on what the agent writes and keeps a bounded copy beside the
// run record: its beginning as it comes, so that a container that is killed
// leaves it, and its end when it is over. Known secrets are masked in the copy.
type output struct {
	mu      sync.Mutex
	file    *os.File
	secrets [][]byte
	held    []byte // not yet written: the beginning of a secret may be at its end
	written int
	ring    []byte // what comes after the beginning
	dropped int    // bytes between beginning and end
	total   int64
	at      time.Time // of the last write
	err     error     // why the copy ended early
}

// newOutput begins the copy of the current record's output.
func (j *job) newOutput() (*output, error) {
	o := &output{at: time.Now(), secrets: j.secrets()}
	r, err := j.currentRecord()
	if err != nil || r == nil {
		return o, err // without a record there is nothing to keep it for
	}
	o.file, err = os.OpenFile(j.runFile(r.ID, spec.OutputSuffix), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	return o, err
}

// to returns a writer that passes on to w what it keeps.
func (o *output) to(w io.Writer) io.Writer { return &outputStream{o, w} }

type outputStream struct {
	*output
	w io.Writer
}

func (s *outputStream) Write(p []byte) (int, error) {
	s.keep(p)
	return s.w.Write(p)
}

// last is when the agent wrote last.
func (o *output) last() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at
}

func (o *output) keep(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at = time.Now()
	o.total += int64(len(p))
	o.held = mask(append(o.held, p...), o.secrets)
	if ready := len(o.held) - o.longest() + 1; ready > 0 {
		o.put(o.held[:ready])
		o.held = slices.Clone(o.held[ready:])
	}
}

// longest is the length of the longest secret, at least 1.
func (o *output) longest() int {
	n := 1
	for _, s := range o.secrets {
		n = max(n, len(s))
	}
	return n
}

// half is what is kept of the beginning, and of the end.
const half = spec.MaxOutputBytes / 2

func (o *output) put(p []byte) {
	if o.file == nil || o.err != nil {
		return
	}
	begin := p[:min(len(p), half-o.written)]
	_, o.err = o.file.Write(begin)
	o.written += len(begin)
	o.ring = append(o.ring, p[len(begin):]...)
	if len(o.ring) > 2*half { // now and then, not with every line
		o.cut()
	}
}

// cut drops what is neither beginning nor end.
func (o *output) cut() {
	if over := len(o.ring) - half; over > 0 {
		o.dropped += over
		o.ring = slices.Clone(o.ring[over:])
	}
}

// close writes the end of the output and returns how much there was. It may be
// called twice.
func (o *output) close() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return o.total
	}
	o.put(o.held)
	o.held = nil
	if o.cut(); o.dropped > 0 {
		o.ring = append(fmt.Appendf(nil, "\n[agent-container: %d bytes are left out here]\n", o.dropped), o.ring...)
	}
	if o.err == nil {
		_, o.err = o.file.Write(o.ring)
	}
	if err := errors.Join(o.err, o.file.Close()); err != nil {
		say("warning: the run's output could not be kept whole: %v", err)
	}
	o.file, o.ring = nil, nil
	return o.total
}

// secretWords mark a variable whose value must not be in a kept copy.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"}

// minSecret is the shortest value that is masked: shorter ones are words.
const minSecret = 8

// secrets are the values of the user's environment that look like credentials.
func (g *guest) secrets() [][]byte {
	var list [][]byte
	env, _ := g.userEnvironment() // an unreadable one was the end of the set-up
	job, _ := g.job()
	tokens := slices.Collect(maps.Values(job.Credentials))
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		known := slices.Contains(g.agent.Keys, name) || slices.Contains(tokens, name)
		for _, w := range secretWords {
			known = known || strings.Contains(strings.ToUpper(name), w)
		}
		if known && len(value) >= minSecret && !(strings.HasPrefix(value, "/") && exists(value)) { // the path of a file is no secret
			list = append(list, []byte(value))
		}
	}
	// A secret that holds another one first.
	slices.SortFunc(list, func(a, b []byte) int { return len(b) - len(a) })
	return list
}

// mask replaces every secret in p.
func mask(p []byte, secrets [][]byte) []byte {
	for _, s := range secrets {
		p = bytes.ReplaceAll(p, s, []byte("[masked]"))
	}
	return p
}
