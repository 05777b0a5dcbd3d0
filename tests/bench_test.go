package tests

import (
	"os/exec"
	"testing"
	"time"
)

// BenchmarkStart must show what a start of the program costs, as a ratio to a
// start of the smallest program in the same run: machines differ.
func BenchmarkStart(b *testing.B) {
	for _, argument := range []string{"version", "--help"} {
		b.Run(argument, func(b *testing.B) {
			var ours, least time.Duration
			for b.Loop() {
				ours += timeOf(b, "../build/agent-container", argument)
				least += timeOf(b, "true")
			}
			b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/start")
			b.ReportMetric(float64(ours)/float64(least), "×true")
		})
	}
}

func timeOf(b *testing.B, argv ...string) time.Duration {
	b.Helper()
	started := time.Now()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		b.Fatalf("%v: %v: %s", argv, err, out)
	}
	return time.Since(started)
}
