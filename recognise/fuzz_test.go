package recognise

import (
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func FuzzRecognise(f *testing.F) {
	// No command line may make it panic, hang, or answer with anything but a name of its tables.
	for _, c := range cases {
		f.Add(strings.Join(c.argv, "\x1f"))
	}
	f.Fuzz(func(t *testing.T, joined string) {
		argv := strings.Split(joined, "\x1f")
		for _, recognise := range []func() (string, string, bool){
			func() (string, string, bool) { return Recognise(argv) },
			func() (string, string, bool) { return RecogniseLine(joined) },
			func() (string, string, bool) { return Recognise(in(joined)) },
			func() (string, string, bool) {
				return Recognise([]string{"docker", "run", "img", "bash", "-c", joined})
			},
			func() (string, string, bool) { return Recognise([]string{"docker", "run", "img", "zsh", "-c", joined}) },
			func() (string, string, bool) {
				return Recognise([]string{"docker", "run", "img", "mksh", "-c", joined})
			},
		} {
			agent, runtime, ok := recognise()
			if ok && (!slices.Contains(spec.AgentNames(), agent) || runtimes[runtime].name != runtime) || !ok && agent+runtime != "" {
				t.Errorf("%q is %q, %q, %t", argv, agent, runtime, ok)
			}
		}
	})
}
