package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func FuzzUserEnvironment(f *testing.F) {
	// Of any bytes in the environment's place, only a whole file may be taken, each of its entries as it is, none of ours among them, and no byte of it be in an error.
	for _, s := range []string{"A=1\x00B=2\x00\x00", "\x00", "", "A=1\x00", "A=1\x00\x00\x00", "=x\x00\x00", "A\x00\x00", "AGENT_CONTAINER_MODE=idle\x00\x00", "A=\xff\n\x1b[2J\x00\x00", "A=1\x00A=2\x00\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		g := &guest{name: "web", secretsDir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(g.secretsDir, spec.FillEnvironment), content, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := g.userEnvironment()
		rest, whole := strings.CutSuffix("\x00"+string(content), "\x00\x00")
		var want []string
		for _, entry := range strings.Split(rest, "\x00") {
			name, _, ok := strings.Cut(entry, "=")
			if entry == "" {
				continue
			}
			want = append(want, entry)
			whole = whole && ok && name != "" && !strings.HasPrefix(name, spec.EnvPrefix)
		}
		if (err == nil) != whole || whole && !slices.Equal(got, want) {
			t.Errorf("%q gives %q, %v; want %q, whole %t", content, got, err, want, whole)
		}
		if err != nil && (len(got) > 0 || err.Error() != spec.Printable(err.Error(), 200)) {
			t.Errorf("%q gives %q and the error %q", content, got, err)
		}
	})
}
