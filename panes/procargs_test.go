package panes

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/process"
)

// procargs is an answer of KERN_PROCARGS2 as macOS's headers describe it.
func procargs(count int32, rest string) []byte {
	return append(binary.NativeEndian.AppendUint32(nil, uint32(count)), rest...)
}

// Exactly as many words as the system counts must be read, and none of the environment behind them.
func TestParseProcargs(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"a program":              {procargs(3, "/usr/local/bin/docker\x00\x00\x00docker\x00run\x00claude\x00TOKEN=hunter2\x00"), "docker|run|claude"},
		"an empty argument":      {procargs(3, "/bin/docker\x00docker\x00\x00x\x00HOME=/\x00"), "docker||x"},
		"a line in an argument":  {procargs(2, "/bin/sh\x00sh\x00a\nb c\x00"), "sh|a\nb c"},
		"more than there are":    {procargs(9, "/bin/sh\x00sh\x00"), "none"},
		"cut within a word":      {procargs(2, "/bin/sh\x00sh\x00a"), "none"},
		"none":                   {procargs(0, "/bin/sh\x00"), "none"},
		"fewer than none":        {procargs(-1, "/bin/sh\x00sh\x00"), "none"},
		"without an end":         {procargs(1, "/bin/sh"), "none"},
		"less than the count":    {[]byte{1, 0}, "none"},
		"nothing":                {nil, "none"},
		"more than would fit in": {procargs(1<<30, "/bin/sh\x00sh\x00"), "none"},
	} {
		argv, err := parseProcargs(c.in)
		got := strings.Join(argv, "|")
		if err != nil {
			got = "none"
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// No answer of the system may make the reader panic, or return more words than are counted.
func FuzzProcargs(f *testing.F) {
	f.Add(procargs(2, "/bin/docker\x00\x00docker\x00run\x00A=b\x00"))
	f.Add([]byte{255, 255, 255, 127, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		argv, err := parseProcargs(b)
		if err == nil && (len(argv) == 0 || uint32(len(argv)) != binary.NativeEndian.Uint32(b)) {
			t.Errorf("%q of %q", argv, b)
		}
	})
}

// Where the system tells the arguments exactly they must be read, and else the line of ps, in which a blank in a value can hide an agent.
func TestExactArguments(t *testing.T) {
	exact := []string{"docker", "run", "-e", "MOTD=hello big world", "img", "claude"}
	s := &psSource{runner: &process.Runner{Env: os.Environ()}, arguments: func(int) ([]string, error) { return slices.Clone(exact), nil }}
	p, _, found, ok := parsePS("77 1 77 77 S+ Mon Nov 30 10:00:00 2026 " + strings.Join(exact, " "))
	if !ok || found.Agent != "" {
		t.Fatalf("the line reads as %+v, %v", found, ok)
	}
	s.table, s.said = map[int]proc{77: p}, map[int]said{77: {Found: Found{"codex", "docker"}}}
	if got, err := s.read(p); err != nil || got != (said{Found: Found{"claude", "docker"}}) {
		t.Errorf("the exact arguments are %+v, %v", got, err)
	}
	s.arguments = func(int) ([]string, error) { return nil, errors.New("it is another user's") }
	if got, err := s.read(p); err != nil || got != (said{Found: Found{"codex", "docker"}}) {
		t.Errorf("without them it is %+v, %v", got, err)
	}
	if err := s.refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	if one, err := s.process(os.Getpid()); err != nil || one.comm == "" {
		t.Errorf("this test is %+v, %v", one, err)
	}
}
