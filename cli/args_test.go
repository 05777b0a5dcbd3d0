package cli

import (
	"slices"
	"strings"
	"testing"

	ucli "github.com/urfave/cli/v2"
)

// order is what Main does with argv before urfave sees it, without the
// program's name.
func order(words ...string) ([]string, map[string]bool) {
	list := commands()
	argv, globals := splitGlobals(list, append([]string{"agent-container"}, words...))
	return reorder(list, argv)[1:], globals
}

func TestReorder(t *testing.T) {
	// Flags must be found before and after NAME, up to "--" or a child's command, and values be left alone.
	for _, c := range []struct{ typed, want, globals string }{
		{"up demo", "up|--|demo", ""},
		{"up --agent pi demo", "up|--agent|pi|--|demo", ""},
		{"up demo --agent pi", "up|--agent|pi|--|demo", ""},
		{"up demo --agent=pi --foreground", "up|--agent=pi|--foreground|--|demo", ""},
		{"up --foreground demo --task x", "up|--foreground|--task|x|--|demo", ""},
		{"up demo -e A=1 --env B=2,3", "up|--env|A=1|--env|B=2,3|--|demo", ""}, // urfave refuses two forms of one flag
		{"up demo -e=A=1", "up|--env=A=1|--|demo", ""},
		{"logs -f demo", "logs|--follow|--|demo", ""},

		// A value may begin with a dash, or be a switch of ours.
		{"up demo --task -", "up|--task|-|--|demo", ""},
		{"up demo --task -x", "up|--task|-x|--|demo", ""},
		{"up demo --task=-x", "up|--task=-x|--|demo", ""},
		{"up demo --task --json", "up|--task|--json|--|demo", ""},
		{"up demo --task -- x", "up|--task|--|--|demo|x", ""},
		{"up demo --task=", "up|--task=|--|demo", ""},

		// Global switches stand anywhere.
		{"--json up demo", "up|--|demo", "--json"},
		{"up --json demo", "up|--|demo", "--json"},
		{"up demo --json -v --no-input", "up|--|demo", "--json --no-input -v"},
		{"-v runs --json list demo", "runs|list|--|demo", "--json --verbose"},
		{"list --verbose", "list", "--verbose"},

		// "--" ends our flags, switches too.
		{"up -- demo", "up|--|demo", ""},
		{"up -- --json", "up|--|--json", ""},
		{"up demo -- --agent", "up|--|demo|--agent", ""},

		// After the NAME of exec nothing is ours.
		{"exec demo ls -l --json", "exec|--|demo|ls|-l|--json", ""},
		{"exec demo -v", "exec|--|demo|-v", ""},
		{"exec --json demo ls --json", "exec|--|demo|ls|--json", "--json"},
		{"exec demo -- ls --json", "exec|--|demo|ls|--json", ""},
		{"exec demo -- -- ls", "exec|--|demo|--|ls", ""},
		{"exec demo git -- -x", "exec|--|demo|git|--|-x", ""},
		{"exec demo up --agent pi", "exec|--|demo|up|--agent|pi", ""},

		// Unknown flags stay flags, for urfave to refuse.
		{"up demo --taks x", "up|--taks|--|demo|x", ""},
		{"list -q", "list|-q", ""},
		{"--frob list", "list|--frob", ""},
		{"up demo -", "up|--|demo|-", ""},

		// A command's name after the first argument is an argument.
		{"down list", "down|--|list", ""},
		{"runs ls", "runs|ls", ""},
		{"ls", "ls", ""},
		{"lst list", "--|lst|list", ""},

		// A flag whose value is missing comes last: nothing may become its value.
		{"up demo --task", "up|--task", ""},
		{"up demo --foreground --env", "up|--foreground|--env", ""},
		{"up demo --json --task", "up|--task", "--json"},
	} {
		got, globals := order(strings.Fields(c.typed)...)
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q becomes %q, want %q", c.typed, strings.Join(got, "|"), c.want)
		}
		var found []string
		for g := range globals {
			found = append(found, g)
		}
		slices.Sort(found)
		if strings.Join(found, " ") != c.globals {
			t.Errorf("%q: globals %q, want %q", c.typed, found, c.globals)
		}
	}
	if got, _ := order(); len(got) != 0 {
		t.Errorf("nothing becomes %q", got)
	}
}

func FuzzReorder(f *testing.F) {
	// Whatever is typed, nothing may panic, no word be lost or made up, arguments keep their order, a second time change nothing, and a child's words stay complete and in order.
	for _, seed := range []string{"up demo --task -x", "exec demo -- ls --json", "-v exec --json x", "runs list -- --", "up --env", "--", "", "exec demo\x00--json", " -h", "up a b -- --json"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, " ")
		got, globals := order(words...)
		count := func(list []string) map[string]int {
			n := map[string]int{}
			for _, w := range list {
				n[w]++
			}
			return n
		}
		typed, kept := count(words), count(got)
		for w, n := range kept {
			if w != "--" && n > typed[w] && !hasAlias(w) {
				t.Errorf("%q: %q was made up: %q", words, w, got)
			}
		}
		missing := len(got) > 0 && takesAValue(got)
		help := slices.Contains(got, "--help") || slices.Contains(got, "-h") // arguments are dropped then
		for w, n := range typed {
			if w != "--" && kept[w] < n && !globals[w] && !hasAlias(w) && !missing && !help {
				t.Errorf("%q: %q was lost: %q", words, w, got)
			}
		}
		if i := slices.Index(got, "--"); i >= 0 && !missing && !help {
			if !subsequence(got[i+1:], words) {
				t.Errorf("%q: the arguments are in another order: %q", words, got)
			}
			if again := reorder(commands(), append([]string{"agent-container"}, got...))[1:]; !slices.Equal(again, got) {
				t.Errorf("%q becomes %q, and that %q", words, got, again)
			}
		}
		child := []string{"--json", "--", "-x", "up", ""}
		out, more := order(append([]string{"exec", "demo", "cmd"}, append(words, child...)...)...)
		if want := append([]string{"exec", "--", "demo", "cmd"}, append(words, child...)...); !slices.Equal(out, want) || len(more) > 0 {
			t.Errorf("the child's words became %q, want %q", out, want)
		}
	})
}

// subsequence reports whether part is in whole, in its order.
func subsequence(part, whole []string) bool {
	for _, w := range whole {
		if len(part) > 0 && part[0] == w {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// takesAValue reports whether the last word is a flag that lacks its value.
func takesAValue(words []string) bool {
	last := words[len(words)-1]
	for _, c := range commands() {
		if takesValue(c.flags, last) && strings.HasPrefix(last, "-") {
			return true
		}
	}
	return false
}

// hasAlias reports whether word is a flag that may be replaced by its own name.
func hasAlias(word string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	flags := globalFlags()
	for _, c := range commands() {
		flags = append(flags, c.flags...)
	}
	return slices.ContainsFunc(flags, func(f ucli.Flag) bool { return len(f.Names()) > 1 && slices.Contains(f.Names(), name) })
}

func TestCommandTable(t *testing.T) {
	// Every command must have a group, a usage and work to do, and no two may share a name.
	seen := map[string]bool{}
	groups := []string{groupLife, groupWork, groupLook, groupKeys, groupEgress, groupShell}
	for _, c := range commands() {
		if c.usage == "" || !slices.Contains(groups, c.group) || (c.run == nil) == (len(c.sub) == 0) {
			t.Errorf("row %q is incomplete", c.name)
		}
		for _, n := range append([]string{c.name}, c.aliases...) {
			if seen[n] {
				t.Errorf("%q is there twice", n)
			}
			seen[n] = true
		}
		if c.max >= 0 && c.min > c.max {
			t.Errorf("%q takes %d to %d arguments", c.name, c.min, c.max)
		}
	}
}
