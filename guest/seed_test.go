package main

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/agent-container/agent-container/spec"
)

func TestEveryAgentHasASeed(t *testing.T) {
	// Every agent of the table must have a row in seeds, if only to say that it asks nothing; no other may.
	for _, name := range spec.AgentNames() {
		if _, ok := seeds[name]; !ok {
			t.Errorf("seeds has no row for %s", name)
		}
	}
	for name := range seeds {
		if !slices.Contains(spec.AgentNames(), name) {
			t.Errorf("seeds has a row for %s, which is no agent", name)
		}
	}
}

// seeded runs the seed on a file's content ("absent" for none), twice, and
// returns what is there then.
func (b *box) seeded(path, content string) string {
	b.t.Helper()
	if content != "absent" {
		b.write(path, content, 0o600)
	}
	if code, _, said := b.guest("phase", "seed"); code != 0 {
		b.t.Fatalf("exit %d: %s", code, said)
	}
	first := b.read(path)
	if code, _, said := b.guest("phase", "seed"); code != 0 || b.read(path) != first {
		b.t.Errorf("a second seed changed the file (exit %d, %s)", code, said)
	}
	return first
}

const workspaceMark = "WORKSPACE" // in the tables below, for the box's workspace

func TestSeedClaude(t *testing.T) {
	// Claude's questions must be answered where they are open; every answer that is there must stay.
	const rest = `"lastOnboardingVersion":"","theme":"dark","bypassPermissionsModeAccepted":true,"hasSeenAutoDefaultNudge":true`
	const trusted = `"projects":{"WORKSPACE":{"hasTrustDialogAccepted":true}}`
	for name, c := range map[string]struct{ before, key, want string }{
		"fresh": {"absent", "", `{"hasCompletedOnboarding":true,` + rest + `,` + trusted + `,"customApiKeyResponses":null}`},
		"key of the environment": {"absent", "sk-ant-0123456789abcdefghijKLMNOPQRST", `{"hasCompletedOnboarding":true,` + rest + `,` + trusted +
			`,"customApiKeyResponses":{"approved":["abcdefghijKLMNOPQRST"]}}`},
		"short key": {"{}", "short", `{"hasCompletedOnboarding":true,` + rest + `,` + trusted + `,"customApiKeyResponses":{"approved":["short"]}}`},
		"answers stay": {`{"hasCompletedOnboarding":false,"theme":"light","lastOnboardingVersion":"1.0","bypassPermissionsModeAccepted":false,"hasSeenAutoDefaultNudge":false,
			"projects":{"/other":{"x":1},"WORKSPACE":{"hasTrustDialogAccepted":false,"history":["a"]}},
			"customApiKeyResponses":{"approved":["old"],"rejected":["no"]},"more":{"deep":[1,{"a":null}]}}`, "k",
			`{"hasCompletedOnboarding":false,"theme":"light","lastOnboardingVersion":"1.0","bypassPermissionsModeAccepted":false,"hasSeenAutoDefaultNudge":false,
			"projects":{"/other":{"x":1},"WORKSPACE":{"hasTrustDialogAccepted":false,"history":["a"]}},
			"customApiKeyResponses":{"approved":["old","k"],"rejected":["no"]},"more":{"deep":[1,{"a":null}]}}`},
		"other shapes stay": {`{"projects":"none","customApiKeyResponses":[1]}`, "k", `{"hasCompletedOnboarding":true,` + rest + `,"projects":"none","customApiKeyResponses":[1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "claude", spec.Interactive)
			if c.key != "" {
				b.environment("ANTHROPIC_API_KEY=" + c.key + "\x00")
			}
			place := func(s string) string { return strings.ReplaceAll(s, workspaceMark, b.p.Workspace) }
			got := b.seeded(b.home(".claude/.claude.json"), place(c.before))
			var have, want map[string]any
			if err := json.Unmarshal([]byte(got), &have); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(place(c.want)), &want); err != nil {
				t.Fatal(err)
			}
			if want["customApiKeyResponses"] == nil { // no key: the object is there, and says nothing
				want["customApiKeyResponses"] = map[string]any{}
			}
			if !reflect.DeepEqual(have, want) {
				t.Errorf("got  %v\nwant %v", have, want)
			}
			if info, err := os.Stat(b.home(".claude/.claude.json")); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode is %v", info.Mode())
			}
		})
	}
}

func TestSeedClaudeLeavesAlone(t *testing.T) {
	// A dotfile that is not one JSON object must stay byte for byte.
	for _, content := range []string{"", "{", "null", "[1]", `"text"`, `{"a":1} trailing`, "{\"a\":1}\n{\"b\":2}", "{\"a\":1,}", "\xff\xfe{"} {
		b := newBox(t, "claude", spec.Interactive)
		if got := b.seeded(b.home(".claude/.claude.json"), content); got != content {
			t.Errorf("%q became %q", content, got)
		}
	}
}

func TestSeedClaudeKeepsNumbers(t *testing.T) {
	// Numbers that do not fit a float must come out as they went in.
	b := newBox(t, "claude", spec.Interactive)
	got := b.seeded(b.home(".claude/.claude.json"), `{"id":12345678901234567890123,"exact":0.1000,"big":1E400}`)
	for _, number := range []string{"12345678901234567890123", "0.1000", "1E400", "hasCompletedOnboarding"} {
		if !strings.Contains(got, number) {
			t.Errorf("%s is not in %s", number, got)
		}
	}
}

func TestSeedCodex(t *testing.T) {
	// Codex must trust the workspace unless its file says something of it; the text that is there must stay.
	const trust = `trust_level = "trusted"`
	for name, c := range map[string]struct {
		before string
		after  string // trust_level of the workspace as go-toml reads it
		same   bool   // the file stays byte for byte
	}{
		"fresh":                  {"absent", "trusted", false},
		"empty":                  {"", "trusted", false},
		"other tables":           {"# mine\nmodel = \"m\"\n\n[projects.\"/other\"]\n" + trust + "\n\n[tools]\nx = 1\n", "trusted", false},
		"no newline at the end":  {"[tools]\nx = 1", "trusted", false},
		"comment at the end":     {"x = 1 # no newline", "trusted", false},
		"windows line ends":      {"x = 1\r\n[tools]\r\ny = 2\r\n", "trusted", false},
		"untrusted stays":        {"[projects.\"WORKSPACE\"]\ntrust_level = \"untrusted\"\n", "untrusted", true},
		"trusted stays":          {"[projects.\"WORKSPACE\"]\n" + trust, "trusted", true},
		"inline answer":          {"projects = { \"WORKSPACE\" = { trust_level = \"untrusted\" } }\n", "untrusted", true},
		"dotted answer":          {"projects.\"WORKSPACE\".trust_level = \"untrusted\"\n", "untrusted", true},
		"table without answer":   {"[projects.\"WORKSPACE\"]\nother = 1\n", "", true},
		"inline of others":       {"projects = { \"/other\" = { " + trust + " } }\n", "", true},
		"malformed":              {"[projects\n", "unparsable", true},
		"another type":           {"projects = 3\n", "unparsable", true},
		"multi-line text at end": {"x = \"\"\"\na\n\"\"\"", "trusted", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, "codex", spec.Interactive)
			before := strings.ReplaceAll(c.before, workspaceMark, b.p.Workspace)
			got := b.seeded(b.home(".codex/config.toml"), before)
			if c.before == "absent" {
				before = ""
			}
			if !strings.HasPrefix(got, before) || c.same != (got == before) {
				t.Errorf("got %q from %q", got, before)
			}
			var doc struct {
				Projects map[string]struct {
					TrustLevel string `toml:"trust_level"`
				}
			}
			err := toml.Unmarshal([]byte(got), &doc)
			if (err != nil) != (c.after == "unparsable") {
				t.Fatalf("go-toml: %v, of %q", err, got)
			}
			if level := doc.Projects[b.p.Workspace].TrustLevel; err == nil && level != c.after {
				t.Errorf("trust_level is %q, want %q, in %q", level, c.after, got)
			}
		})
	}
}
