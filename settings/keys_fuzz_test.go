package settings

import (
	"fmt"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func FuzzParseLimits(f *testing.F) {
	// A limit's text must be refused on one printable line, or be a positive number within bounds that reads the same when it is written out.
	for _, s := range []string{"512m", "4g", "1.5", "2048", "1p", "1024p", "1e300", "0x1p9", "NaN", "inf", "-1", "5 k", "0.4b", "9223372036854775808", "1_000", "\x1b[2Jm", "\u202e", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		printable := func(err error) {
			if line := err.Error(); line != spec.Printable(line, len(line)) || len(line) > 10*len(text)+100 {
				t.Errorf("%q: unsafe refusal %q", text, line)
			}
		}
		if n, err := ParseBytes(text); err != nil {
			printable(err)
		} else if again, err := ParseBytes(fmt.Sprint(n)); n < 1 || n > 1<<50 || again != n || err != nil {
			t.Errorf("%q is %d bytes, which reads as %d, %v", text, n, again, err)
		}
		if n, err := ParseCPUs(text); err != nil {
			printable(err)
		} else if again, err := ParseCPUs(fmt.Sprint(n)); !(n > 0 && n <= 4096) || again != n || err != nil {
			t.Errorf("%q is %g processors, which read as %g, %v", text, n, again, err)
		}
		if n, err := ParsePids(text); err != nil {
			printable(err)
		} else if again, err := ParsePids(fmt.Sprint(n)); n < 1 || again != n || err != nil {
			t.Errorf("%q is %d processes, which read as %d, %v", text, n, again, err)
		}
	})
}
