package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func TestManagers(t *testing.T) {
	// Every package manager must be one that is asked, with a variable that says it elsewhere.
	for _, name := range spec.PackageManagers {
		m, ok := managers[name]
		if !ok || len(m.programs) == 0 || len(m.env) == 0 {
			t.Errorf("%s: %v", name, m)
		}
	}
	if len(managers) != len(spec.PackageManagers) {
		t.Errorf("%d are asked, %d are there", len(managers), len(spec.PackageManagers))
	}
}

func TestManagerAnswers(t *testing.T) {
	// What a package manager says of its configuration must be read as the places it gets packages from.
	for _, row := range []struct {
		manager, answer, want string // "!" for an error
	}{
		{"npm", `{"registry":"https://packages.test:8443/npm/","@corp:registry":"https://corp.test/","cache":"/x","audit":true}`, "https://corp.test/ https://packages.test:8443/npm/"},
		{"npm", `{}`, ""},
		{"npm", `undefined`, "!"},
		{"go", "https://proxy.test,https://other.test|direct\nsum.test\n", "https://proxy.test https://other.test direct https://sum.test"},
		{"go", "off\noff\n", "off"},
		{"go", "https://proxy.test\nsum.test+0123+key https://mirror.test/sum\n", "https://proxy.test https://mirror.test/sum"},
		{"go", "https://proxy.test\n", "!"},
		{"pip", "global.index-url='https://packages.test/simple'\nglobal.timeout='60'\n", "https://packages.test/simple"},
		{"pip", ":env:.index-url='https://a.test/simple'\nglobal.extra-index-url='https://b.test https://c.test'\n", "https://a.test/simple https://b.test https://c.test"},
		{"pip", "global.extra-index-url='https://b.test'\n", "https://b.test and its own"},
		{"pip", "", " and its own"},
	} {
		got, whole, err := managers[row.manager].read([]byte(row.answer))
		text := strings.Join(got, " ")
		if !whole {
			text += " and its own"
		}
		if (err != nil) != (row.want == "!") || err == nil && text != row.want {
			t.Errorf("%s, %q: %q, %v", row.manager, row.answer, text, err)
		}
	}
}

func TestHostOf(t *testing.T) {
	// A URL must lead to its host and port, without whoever's password stands in it.
	for text, want := range map[string]string{
		"https://Packages.TEST/npm/": "packages.test packages.test", "http://a.test/": "a.test:80 a.test:80", "https://me:secret@a.test:8443/x": "a.test:8443 a.test:8443",
		"http://10.0.0.1:4873/": "10.0.0.1:4873 private:10.0.0.1:4873", "https://10.0.0.1": "10.0.0.1 private:10.0.0.1:443",
		"file:///srv": "", "direct": "", "off": "", "https://": "", "https://a.test:0/": "", "https://a b/": "", "": "",
	} {
		got := ""
		if at, ok := hostOf(text); ok {
			got = at.String() + " " + at.entry()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestRepoAt(t *testing.T) {
	// A repository must be fetched from the host and port that git would take.
	for repo, want := range map[string]string{
		"": "", "https://git.test/a/b#main": "git.test", "https://git.test:8443/a": "git.test:8443", "http://git.test/a": "git.test:80",
		"git@git.test:a/b": "git.test:22", "ssh://git@git.test:2222/a/b": "git.test:2222", "https://10.0.0.1:8443/a": "10.0.0.1:8443",
	} {
		d := &deployment{spec: spec.Spec{Repo: repo}}
		got := ""
		if at, ok := d.repoAt(); ok {
			got = at.String()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", repo, got, want)
		}
	}
}

func TestModelAPIs(t *testing.T) {
	// The API that has to be permitted must be the one that the agent will use: a variable's, else its configuration's, else its row's or its keys'.
	for _, row := range []struct {
		agent  string
		env    environment
		config string
		want   string // "?" where it is not known
	}{
		{"claude", nil, "", "api.anthropic.com"},
		{"claude", environment{"ANTHROPIC_BASE_URL": "https://m.test:1/v1"}, `{"env":{"ANTHROPIC_BASE_URL":"https://n.test"}}`, "m.test:1"},
		{"claude", nil, `{"env":{"ANTHROPIC_BASE_URL":"https://n.test"}}`, "n.test"},
		{"claude", environment{"CLAUDE_CODE_USE_BEDROCK": "1"}, "", "?"},
		{"codex", nil, "", "api.openai.com chatgpt.com"},
		{"codex", nil, "model = 'x'\n# base_url = 'https://no.test'\n[p]\nbase_url = 'http://n.test:8080/v1'\n", "n.test:8080"},
		{"pi", nil, "", "?"},
		{"pi", environment{"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}, "", "api.openai.com generativelanguage.googleapis.com"},
		{"pi", environment{"OPENAI_API_KEY": "k"}, `{"providers":{"m":{"baseUrl":"http://m.test:8080"}}}`, "m.test:8080 api.openai.com"},
		{"opencode", nil, "{\n // \"baseURL\": \"https://no.test\"\n \"baseURL\" : \"https://m.test/v1\"}", "m.test"},
	} {
		agent, err := spec.LookupAgent(row.agent)
		if err != nil {
			t.Fatal(err)
		}
		d := &deployment{agent: agent}
		d.fill.env, d.fill.config = row.env, []configFile{{"config", 0o600, []byte(row.config)}}
		apis, known := d.modelAPIs()
		var got []string
		for _, api := range apis {
			got = append(got, api.at.String())
		}
		if text := strings.Join(got, " "); known != (row.want != "?") || known && text != row.want {
			t.Errorf("%s, %v, %q: %q, %t", row.agent, row.env, row.config, text, known)
		}
	}
}

func TestUndoEgress(t *testing.T) {
	// The flags that take a redeploy back must name what was typed, and what is gone.
	e := func(enforcement spec.Enforcement, allow string, typed ...string) *spec.Egress {
		return &spec.Egress{Enforcement: enforcement, Allow: strings.Fields(allow), Typed: typed}
	}
	for _, row := range []struct {
		was, next *spec.Egress
		want      string
	}{
		{nil, nil, ""},
		{nil, e("strict", ""), "--egress off"},
		{e("strict", "a.test b.test", "b.test"), e("strict", "a.test b.test"), ""},
		{e("strict", "a.test b.test", "b.test"), e("strict", "a.test c.test", "c.test"), "--egress-allow b.test"},
		{e("strict", "a.test"), e("strict", "a.test c.test", "c.test"), "--egress-allow none"},
		{e("advisory", "a.test"), e("strict", ""), "--egress advisory --egress-allow a.test"},
		{e("strict", "a.test"), nil, "--egress strict --egress-allow a.test"},
	} {
		if got := undoEgress(spec.Spec{Egress: row.was}, spec.Spec{Egress: row.next}); !slices.Equal(got, strings.Fields(row.want)) {
			t.Errorf("%v to %v: %q, want %q", row.was, row.next, got, row.want)
		}
	}
}
