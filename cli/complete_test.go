package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/process"
)

// offered are the words for word after the words of line, with no
// engine to ask.
func offered(t *testing.T, word, line string) []string {
	t.Helper()
	t.Setenv("PATH", "")
	var out bytes.Buffer
	a := &app{out: &out, runner: &process.Runner{}}
	a.complete(context.Background(), commands(), word, strings.Fields(line))
	return strings.Fields(out.String())
}

func TestCompletions(t *testing.T) {
	// What may stand at a place must be offered there, and nothing else: the words of a flag's value, commands, flags, or the shell's own files.
	for _, c := range []struct{ line, word, want string }{
		{"up --agent", "", "claude codex pi opencode"},
		{"up x --mode", "", "interactive headless idle"},
		{"redeploy --workspace", "", "persistent bind ephemeral"},
		{"up x --headless-restart", "", "no on-failure"},
		{"up x --egress", "", "strict advisory off"},
		{"redeploy x --egress-allow", "", "none provider:agent provider:anthropic provider:openai provider:google provider:openrouter provider:github provider:gitlab provider:npm provider:go provider:pip"},
		{"attach x --via", "", "ssh exec"},
		{"--json runs ls --outcome", "", "running finished failed stopped ended lost"},
		{"up --env-file", "", ":files"},
		{"up --env-file", "-", ":files"}, // a value is missing, whatever it begins with
		{"up --authorized-key", "", ":files"},
		{"up --task", "", ":files"},
		{"runs report --file", "", ":files"},
		{"up --workspace-dir", "", ":directories"},
		{"up --memory", "", ""},
		{"up --env", "", ""},
		{"attach x -w", "", ""},
		{"runs", "", "list show report"},
		{"access", "", "list add remove"},
		{"access add x", "", ":files"},
		{"completions", "", "bash zsh fish"},
		{"down", "--", "--purge --yes --json --verbose --no-input --help"},
		{"down x", "", "--purge --yes --json --verbose --no-input --help"},
		{"exec x", "", ":files"},
		{"exec x", "-", ":files"}, // nothing is ours there
		{"exec x -- ls --json", "", ":files"},
		{"attach x --", "-", ":files"},
		{"up -- x", "-", ""},
		{"start -- x", "", ""},
		{"frobnicate", "", "--json --verbose --no-input --help"},
	} {
		if got := strings.Join(offered(t, c.word, c.line), " "); got != c.want {
			t.Errorf("%q then %q: offered %q, want %q", c.line, c.word, got, c.want)
		}
	}
	if got := offered(t, "", ""); !slices.Contains(got, "redeploy") || len(got) != len(commands()) {
		t.Errorf("the commands are %q", got)
	}
}

func TestFlagWordsHaveFlags(t *testing.T) {
	// Every row of words must be of a flag that some command has.
	var names []string
	var collect func(list []command)
	collect = func(list []command) {
		for _, c := range list {
			for _, f := range c.flags {
				names = append(names, f.Names()...)
			}
			collect(c.sub)
		}
	}
	collect(commands())
	for flag := range flagWords {
		if !slices.Contains(names, flag) {
			t.Errorf("no command has --%s", flag)
		}
	}
}

func FuzzComplete(f *testing.F) {
	// Whatever stands on the line, completing it must neither panic nor offer anything that is more than one word.
	for _, s := range []string{"up x --agent", "exec x -- --json", "runs list --outcome", "-- -- --", "", "attach -w", "access add x y z", "up --task --foreground", "--json=x -v"} {
		f.Add(s, "")
		f.Add(s, "--")
	}
	f.Fuzz(func(t *testing.T, line, typed string) {
		t.Setenv("PATH", "")
		var out bytes.Buffer
		a := &app{out: &out, runner: &process.Runner{}}
		a.complete(context.Background(), commands(), typed, strings.Split(line, " "))
		for word := range strings.Lines(out.String()) {
			if strings.ContainsAny(strings.TrimSuffix(word, "\n"), " \t\n\x1b'\"$`") || word == "\n" {
				t.Errorf("%q then %q: offered %q", line, typed, word)
			}
		}
	})
}
