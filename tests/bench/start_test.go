// Package bench measures the program on the real engine, each figure as a ratio
// to what the engine's own command line needs for the same in the same run:
// machines differ, and are not alone. "make bench" runs it; docs/performance.md
// has the results.
package bench

import (
	"testing"
	"time"
)

// BenchmarkStart is a start of the program beside one of the smallest program.
func BenchmarkStart(b *testing.B) {
	for _, argument := range []string{"version", "--help"} {
		b.Run(argument, func(b *testing.B) {
			u := &bench{b: b}
			ours := timed(func() { u.command("../../build/agent-container", argument) })
			u.compare(map[string]func() time.Duration{"start": ours, "floor": timed(func() { u.command("true") })})
		})
	}
}
