package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ParseRepo must take the forms that git users type, and keep no credential of
// them.
func TestParseRepo(t *testing.T) {
	for _, c := range []struct {
		text    string
		want    Repo
		dropped bool
	}{
		{"https://example.com/a/b", Repo{URL: "https://example.com/a/b", Host: "example.com"}, false},
		{"https://example.com/a/b.git#main", Repo{URL: "https://example.com/a/b.git", Host: "example.com", Ref: "main"}, false},
		{"https://Example.com:8443/a/b#feature/x", Repo{URL: "https://Example.com:8443/a/b", Host: "example.com:8443", Ref: "feature/x"}, false},
		{"https://me:secret@example.com/a", Repo{URL: "https://example.com/a", Host: "example.com"}, true},
		{"https://secret@example.com/a#v1", Repo{URL: "https://example.com/a", Host: "example.com", Ref: "v1"}, true},
		{"http://10.0.0.1:3000/a", Repo{URL: "http://10.0.0.1:3000/a", Host: "10.0.0.1:3000"}, false},
		{"https://[2001:db8::1]/a", Repo{URL: "https://[2001:db8::1]/a", Host: "[2001:db8::1]"}, false},
		{"git@example.com:a/b.git", Repo{URL: "git@example.com:a/b.git", Host: "example.com", SSH: true}, false},
		{"git@example.com:/srv/a#main", Repo{URL: "git@example.com:/srv/a", Host: "example.com", SSH: true, Ref: "main"}, false},
		{"ssh://git@example.com:2022/a/b", Repo{URL: "ssh://git@example.com:2022/a/b", Host: "example.com:2022", SSH: true}, false},
		{"ssh://git:secret@example.com/a", Repo{URL: "ssh://git@example.com/a", Host: "example.com", SSH: true}, true},
		{"ssh://example.com/a", Repo{URL: "ssh://example.com/a", Host: "example.com", SSH: true}, false},
	} {
		got, dropped, err := ParseRepo(c.text)
		if err != nil || dropped != c.dropped {
			t.Errorf("%s: dropped %t, %v", c.text, dropped, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.text, diff)
		}
	}
}

// What is no repository's URL must be refused without showing it, and before
// git could take it for an option or a program.
func TestParseRepoRefuses(t *testing.T) {
	for _, text := range []string{
		"", "#main", "owner/secret", "./secret", "/srv/secret", "C:\\secret", "file:///srv/secret", "git://example.com/secret", "ext::sh -c secret", "ext::secret",
		"https://", "https:///secret", "https://example.com", "https://example.com/", "https://example.com#main", "https://user:secret@/a",
		"https://example.com/a?token=secret", "https://example.com/a?", "https://exa mple.com/secret", "https://example.com/a\nsecret", "https://example.com/a\x1bsecret",
		"https://-secret/a", "ssh://-oProxyCommand=secret/a", "ssh://-l@example.com/secret", "-u@example.com:secret", "git@-secret:a", "git@example.com:-secret", "git@example.com:",
		"example.com:owner/secret", "https://example.com:999999/secret", "https://user:secret@[::1/a", "https:example.com/secret",
		"https://example.com/secret#", "https://example.com/secret#-b", "https://example.com/secret#a..b", "https://example.com/secret#a b", "https://example.com/secret#a#b",
		"https://example.com/secret#a.lock", "https://example.com/secret#/a", "https://example.com/secret#a/", "https://example.com/secret#@{1}", "https://example.com/secret#.a", "https://example.com/secret#a~1",
		"https://example.com/secret" + strings.Repeat("x", maxRepo),
	} {
		r, _, err := ParseRepo(text)
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Hint == "" {
			t.Errorf("%q: not refused with a hint: %+v, %v", text, r, err)
			continue
		}
		if strings.Contains(err.Error()+refusal.Hint, "secret") {
			t.Errorf("%q is shown: %v", text, err)
		}
	}
}

// A work tree must be taken for the repository whatever the end of its URL.
func TestSameRepository(t *testing.T) {
	r := Repo{URL: "https://example.com/a/b"}
	for url, want := range map[string]bool{
		"https://example.com/a/b": true, "https://example.com/a/b.git\n": true, "https://example.com/a/b/": true,
		"https://x-access-token:t@Example.com/a/b.git": true, "http://example.com/a/b": false, "https://example.com@evil.test/a/b": false,
		"https://example.com/a/b.gi": false, "https://example.com/a": false, "": false, "git@example.com:a/b": false,
	} {
		if got := r.Same(url); got != want {
			t.Errorf("%q: %t", url, got)
		}
	}
}

// Whatever was accepted must be read again as the same, hold no password, and
// begin like nothing that git takes for an option.
func FuzzParseRepo(f *testing.F) {
	for _, seed := range []string{
		"https://example.com/a/b.git#main", "git@example.com:a/b", "ssh://git@example.com:22/a#v1", "https://u:p@h/x", "http://[::1]:80/a%20b", "a@b:c#d", "https://h/%23#x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, _, err := ParseRepo(text)
		if err != nil {
			return
		}
		again, dropped, err := ParseRepo(r.String())
		if err != nil || dropped || again != r {
			t.Errorf("%q: %+v is read again as %+v, dropped %t, %v", text, r, again, dropped, err)
		}
		if strings.HasPrefix(r.URL, "-") || strings.HasPrefix(r.Ref, "-") || r.Host == "" || strings.ContainsAny(r.String(), " \t\n\x00") {
			t.Errorf("%q gives %+v", text, r)
		}
		if before, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL, "https://"), "http://"), "/"); ok && !r.SSH && strings.Contains(before, "@") {
			t.Errorf("%q keeps userinfo: %s", text, r.URL)
		}
	})
}
