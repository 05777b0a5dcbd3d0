package main

import (
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func TestAuthorizedKeysRegion(t *testing.T) {
	// Only what stands between our marks may be replaced; the user's lines must stay, and broken marks be an error.
	begin, end := spec.AccessBegin+": rewritten at every start\n", spec.AccessEnd+"\n"
	for name, c := range map[string]struct{ before, after string }{
		"nothing":          {"", begin + "new\n" + end},
		"the user's":       {"mine\n", "mine\n" + begin + "new\n" + end},
		"no last line end": {"mine", "mine\n" + begin + "new\n" + end},
		"ours":             {begin + "old\nold2\n" + end, begin + "new\n" + end},
		"around":           {"a\n" + begin + "old\n" + end + "b\n", "a\n" + begin + "new\n" + end + "b\n"},
		"an older mark":    {spec.AccessBegin + " of before\nold\n" + end, begin + "new\n" + end},
		"carriage returns": {"mine\r\n", "mine\n" + begin + "new\n" + end},
		"no end":           {"mine\n" + begin + "old\n", ""},
		"no begin":         {"mine\n" + end, ""},
		"twice":            {begin + end + begin + end, ""},
		"the other way":    {end + begin, ""},
		"begin inside":     {begin + begin + end, ""},
		"end twice":        {begin + end + end, ""},
	} {
		got, err := replaceRegion(c.before, "new\n")
		if (err == nil) != (c.after != "") || err == nil && got != c.after {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.after)
		}
		if err == nil {
			if again, err := replaceRegion(got, "new\n"); err != nil || again != got {
				t.Errorf("%s: a second time it is %q, %v", name, again, err)
			}
		}
	}
	if got, err := replaceRegion("mine\n", ""); err != nil || got != "mine\n"+begin+end {
		t.Errorf("without keys: %q, %v", got, err)
	}
}

func TestWithoutKey(t *testing.T) {
	// A key must be taken out where a person added it, and nowhere else.
	text := "ssh-ed25519 AAA one\n" + spec.AccessBegin + "\nssh-ed25519 AAA ours\n" + spec.AccessEnd + "\nfrom=\"x\" ssh-ed25519 AAA two\nssh-ed25519 AAAA three\n"
	want := spec.AccessBegin + "\nssh-ed25519 AAA ours\n" + spec.AccessEnd + "\nssh-ed25519 AAAA three\n"
	if got := withoutKey(text, "AAA"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, none := range []string{"", "B", strings.Repeat("A", 9)} {
		if got := withoutKey(text, none); got != text {
			t.Errorf("%q took out something: %q", none, got)
		}
	}
}
