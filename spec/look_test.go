package spec

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestLookRoundTrip(t *testing.T) {
	// What the guest says must be read as it is, and a field of a later guest be passed over.
	three := 3
	l := Look{
		Session:    Session{State: SessionAlive, Clients: 2, Windows: []Window{{1, "agent", "claude", true}}},
		Repository: WorkTree{State: "ok", Branch: "main", Head: strings.Repeat("0a", 20), Remote: "git@host.example:a.git", Uncommitted: &three},
	}
	document, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseLook([]byte(strings.Replace(string(document), "{", `{"later":{"a":1},`, 1)))
	if d := cmp.Diff(l, got); err != nil || d != "" {
		t.Errorf("%v: %s", err, d)
	}
	for _, text := range []string{"", "{", "null", "{}", `{"session":{"state":"alive"}}`, `{"session":1}`, "[]", `{"session":{"state":"\u001b[2J"},"repository":{}}`, "{}{}"} {
		if got, err := ParseLook([]byte(text)); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

func FuzzParseLook(f *testing.F) {
	// Whatever stands in the guest's answer, what is read must be bounded, count from 0, and hold no character that a terminal obeys; nor may an error.
	for _, s := range hostile {
		text, _ := json.Marshal(s)
		f.Add(`{"session":{"state":` + string(text) + `,"clients":-1,"windows":[{"name":` + string(text) + `,"command":` + string(text) + `}]},"repository":{"state":` + string(text) + `,"branch":` + string(text) + `,"uncommitted":-1}}`)
		f.Add(s)
	}
	f.Add(`{"session":{"state":"alive","windows":[` + strings.Repeat("{},", 99) + `{}]},"repository":{"state":"ok"}}`)
	f.Fuzz(func(t *testing.T, document string) {
		l, err := ParseLook([]byte(document))
		if err != nil {
			if text := err.Error(); len(text) > 1000 || strings.ContainsFunc(text, obeyed) || !utf8.ValidString(text) {
				t.Errorf("%q gives the error %q", document, text)
			}
			return
		}
		words := []string{string(l.Session.State), l.Repository.State, l.Repository.Branch, l.Repository.Head, l.Repository.Remote}
		for _, w := range l.Session.Windows {
			words = append(words, w.Name, w.Command)
		}
		for _, w := range words {
			if len(w) > 510 || strings.ContainsFunc(w, obeyed) || !utf8.ValidString(w) {
				t.Errorf("%q is read as %q", document, w)
			}
		}
		for _, n := range []*int{&l.Session.Clients, l.Repository.Uncommitted, l.Repository.Unpushed} {
			if n != nil && *n < 0 {
				t.Errorf("%q counts %d", document, *n)
			}
		}
		if len(l.Session.Windows) > MaxWindows {
			t.Errorf("%d windows", len(l.Session.Windows))
		}
	})
}
