package cli

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// keptLines is how much of a failed build is shown.
const keptLines = 20

// buildProgress shows the steps of a build as they begin and keeps the last
// lines of its output: one line that is redrawn on a terminal, one a step
// elsewhere.
type buildProgress struct {
	out     io.Writer
	redraw  bool
	started time.Time
	partial []byte
	lines   []string // the last keptLines
	drawn   bool
	shown   map[string]bool // steps; BuildKit announces one again and again while two run at once
}

func newBuildProgress(out io.Writer, terminal bool) *buildProgress {
	return &buildProgress{out: out, redraw: terminal, started: time.Now(), shown: map[string]bool{}}
}

// stepPattern is how BuildKit's plain output announces a step of a stage.
var stepPattern = regexp.MustCompile(`^#\d+ (\[[a-z0-9 -]*\d+/\d+\] .*)$`)

// Write takes the builder's output.
func (p *buildProgress) Write(b []byte) (int, error) {
	p.partial = append(p.partial, b...)
	for {
		i := bytes.IndexByte(p.partial, '\n')
		if i < 0 {
			return len(b), nil
		}
		p.line(strings.TrimRight(string(p.partial[:i]), "\r"))
		p.partial = p.partial[i+1:]
	}
}

func (p *buildProgress) line(text string) {
	if strings.TrimSpace(text) != "" {
		p.lines = append(p.lines, text)
		if len(p.lines) > keptLines {
			p.lines = p.lines[1:]
		}
	}
	m := stepPattern.FindStringSubmatch(text)
	if m == nil || p.shown[m[1]] && !p.redraw {
		return
	}
	p.shown[m[1]] = true
	step := spec.Printable(m[1], 70)
	if p.redraw {
		fmt.Fprintf(p.out, "\r\x1b[K%4ds %s", int(time.Since(p.started).Seconds()), step)
		p.drawn = true
		return
	}
	fmt.Fprintf(p.out, "agent-container: build: %s\n", step)
}

// finish leaves the terminal's line empty.
func (p *buildProgress) finish() {
	if len(p.partial) > 0 {
		p.line(string(p.partial))
		p.partial = nil
	}
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

func (p *buildProgress) last() []string { return p.lines }
