package gateway

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// work has an agent use a tool and returns what it says.
func (a *agent) work(t testing.TB, tool, arg string) string {
	t.Helper()
	r, err := a.try(order{Row: tool, Arg: arg, Token: newToken(), Limit: time.Minute})
	if err == nil && r.Err != "" {
		err = fmt.Errorf("%s", r.Err)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arg, err)
	}
	return r.Says
}

func number(t testing.TB, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// BenchmarkDownload is 256 MiB through the gateway, beside the same without one.
func BenchmarkDownload(b *testing.B) {
	l := theLab(b)
	open, strict := l.named(b, "open").as("uid 1000"), l.named(b, "strict").as("uid 1000")
	for _, what := range []string{"git.test:22", "https://allowed.test", "http://allowed.test"} {
		b.Run(what, func(b *testing.B) {
			var direct, through float64
			for b.Loop() {
				arg := fmt.Sprintf("%s %d", what, 256<<20)
				direct += number(b, open.work(b, "download", arg))
				through += number(b, strict.work(b, "download", arg))
			}
			b.ReportMetric(direct/float64(b.N)/(1<<20), "direct-MiB/s")
			b.ReportMetric(through/float64(b.N)/(1<<20), "gateway-MiB/s")
			b.ReportMetric(through/direct, "ratio")
		})
	}
}

// BenchmarkConnect is the time until the first byte of a new connection is back.
func BenchmarkConnect(b *testing.B) {
	l := theLab(b)
	open, strict := l.named(b, "open").as("uid 1000"), l.named(b, "strict").as("uid 1000")
	var sums [4]float64
	for b.Loop() {
		for i, a := range []*agent{open, strict} {
			address := a.work(b, "resolve", "git.test") + ":22"
			p50, p99, _ := strings.Cut(a.work(b, "connect", address+" 1000"), " ")
			sums[2*i] += number(b, p50)
			sums[2*i+1] += number(b, p99)
		}
	}
	for i, name := range []string{"direct-p50-µs", "direct-p99-µs", "gateway-p50-µs", "gateway-p99-µs"} {
		b.ReportMetric(sums[i]/float64(b.N)/1000, name)
	}
	b.ReportMetric((sums[2]-sums[0])/float64(b.N)/1000, "added-p50-µs")
}

// BenchmarkMemory is what the gateway's process holds, idle and with open
// connections; what it has once had it gives back to the kernel late.
func BenchmarkMemory(b *testing.B) {
	l := theLab(b)
	for b.Loop() {
		n := l.place(b, fmt.Sprintf("memory%d", l.count), placements("outside"))
		b.ReportMetric(megabytes(b, n, "RssAnon:"), "idle-anon-MiB")
		b.ReportMetric(megabytes(b, n, "VmRSS:"), "idle-MiB")
		for _, count := range []int{200, 2000} {
			b.ReportMetric(memoryAt(b, n, count), fmt.Sprintf("%d-MiB", count))
			b.ReportMetric(megabytes(b, n, "RssAnon:"), fmt.Sprintf("%d-anon-MiB", count))
		}
	}
}

func megabytes(t testing.TB, n *namespace, field string) float64 {
	return float64(procValue(t, n.hold.pid(), field)) / 1024
}

// memoryAt is the most that a gateway holds while so many connections are open.
func memoryAt(t testing.TB, n *namespace, count int) float64 {
	t.Helper()
	done := make(chan string)
	go func() { done <- n.as("uid 1000").work(t, "hold", fmt.Sprintf("git.test:22 %d 2s", count)) }()
	for peak := 0.0; ; {
		select {
		case open := <-done:
			if open != strconv.Itoa(count) {
				t.Errorf("%s of %d connections were open", open, count)
			}
			return peak
		case <-time.After(50 * time.Millisecond):
			peak = max(peak, megabytes(t, n, "VmRSS:"))
		}
	}
}
