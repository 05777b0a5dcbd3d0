package recognise

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// long are command lines of about n bytes, each made to be slow where one can be.
var long = map[string]func(n int) []string{
	"commands":     func(n int) []string { return in(strings.Repeat("echo x; ", n/8)) },
	"lines":        func(n int) []string { return in(strings.Repeat("echo x\n", n/7)) },
	"one word":     func(n int) []string { return in(strings.Repeat("x", n)) },
	"words":        func(n int) []string { return in("echo " + strings.Repeat("x ", n/2)) },
	"quotes":       func(n int) []string { return in("echo '" + strings.Repeat("x\n", n/2) + "'") },
	"a comment":    func(n int) []string { return in("#" + strings.Repeat("'", n)) },
	"comments":     func(n int) []string { return in(strings.Repeat("x # \\\n", n/6)) },
	"conditions":   func(n int) []string { return in("a" + strings.Repeat(" && a", n/5)) },
	"pipes":        func(n int) []string { return in("a" + strings.Repeat("|a", n/2)) },
	"brackets":     func(n int) []string { return in(strings.Repeat("(", n)) },
	"braces":       func(n int) []string { return in(strings.Repeat("{ ", n/2)) },
	"substitution": func(n int) []string { return in(strings.Repeat("$(", n/2)) },
	"backquotes":   func(n int) []string { return in(strings.Repeat("`", n)) },
	"arithmetic":   func(n int) []string { return in("echo $((" + strings.Repeat("(", n)) },
	"parameters":   func(n int) []string { return in("echo " + strings.Repeat("${a:-", n/5)) },
	"parameters of zsh": func(n int) []string {
		return append(args("docker run img zsh -c"), strings.Repeat("${~", n/3))
	},
	"ifs":               func(n int) []string { return in(strings.Repeat("if ", n/3)) },
	"elifs":             func(n int) []string { return in("if a; then b; " + strings.Repeat("elif a; then b; ", n/16) + "fi") },
	"documents":         func(n int) []string { return in(strings.Repeat("cat <<E\nx\nE\n", n/12)) },
	"one document":      func(n int) []string { return in("cat <<E\n" + strings.Repeat("x\n", n/2) + "E\n") },
	"functions":         func(n int) []string { return in(strings.Repeat("f() { f; }; f; ", n/15)) },
	"backslashes":       func(n int) []string { return in(strings.Repeat("\\\n", n/2)) },
	"envs":              func(n int) []string { return append(args("docker run img"), args(strings.Repeat("env ", n/4))...) },
	"flags":             func(n int) []string { return append(args("docker run"), args(strings.Repeat("-e a=b ", n/7))...) },
	"a cluster":         func(n int) []string { return []string{"docker", "run", "-" + strings.Repeat("i", n)} },
	"documents to come": func(n int) []string { return in("cat" + strings.Repeat(" <<E", n/4)) },
	"a long end of a document": func(n int) []string {
		return in("cat <<" + strings.Repeat("E", n/2) + "\n" + strings.Repeat("E\n", n/4))
	},
	"sandboxes": func(n int) []string { return append(args("sbx run claude"), args(strings.Repeat("a ", n/2))...) },
	"shells":    func(n int) []string { return in(strings.Repeat("sh -c 'sh -c x'; ", n/17)) },
}

func TestLinear(t *testing.T) {
	// Ten times the length must not take much more than ten times as long, up to a
	// megabyte. Quadratic time would be a hundred times as long.
	for name, argv := range long {
		t.Run(name, func(t *testing.T) {
			if raceDetector && name == "a long end of a document" {
				t.Skip("skipped: the race detector looks at every byte of the end once a line")
			}
			took := func(n int) time.Duration {
				words := argv(n)
				start := spent()
				Recognise(words)
				return spent() - start
			}
			const never = time.Hour
			small, middle, large := never, never, never
			for range 10 { // the collector works when it likes; the least of each is the program's own
				small, middle, large = min(small, took(10_000)), min(middle, took(100_000)), min(large, took(1_000_000))
				if middle <= 40*max(small, time.Millisecond) && large <= 40*max(middle, time.Millisecond) {
					return
				}
			}
			t.Errorf("10 KB %v, 100 KB %v, 1000 KB %v", small, middle, large)
		})
	}
}

// spent is the processor time that this process has had: on a busy machine a clock
// tells mostly of the others.
func spent() time.Duration {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func BenchmarkRecognise(b *testing.B) {
	for name, argv := range map[string][]string{
		"program": args("docker run -it --rm -e A=b -v /src:/src -w /src --name box img claude --resume x"),
		"script":  append(args("docker run -it --entrypoint bash img -lc"), "mise install && cd /w && exec claude --effort medium"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Recognise(argv)
			}
		})
	}
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		argv := long["commands"](n)
		b.Run("script of "+map[int]string{10_000: "10", 100_000: "100", 1_000_000: "1000"}[n]+" KB", func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				Recognise(argv)
			}
		})
	}
}
