package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/google/renameio/v2"
	"github.com/pelletier/go-toml/v2"
)

// seeds answers, for each agent, the questions with which it would greet a
// fresh home and wait for ever. Every agent of the table has a row; nil means
// that it asks nothing.
var seeds = map[string]func(g *guest) error{
	"claude":   (*guest).seedClaude,
	"codex":    (*guest).seedCodex,
	"pi":       nil,
	"opencode": nil,
}

func (g *guest) seed() error {
	if f := seeds[g.agent.Name]; f != nil {
		return wrap("seed", f(g))
	}
	return nil
}

// seedClaude merges the answers to Claude Code's first questions into its
// dotfile. What is there stays; a file that does not parse is left alone,
// because Claude reports that better than we can.
func (g *guest) seedClaude() error {
	path := filepath.Join(g.inHome(g.agent.Environment["CLAUDE_CONFIG_DIR"]), ".claude.json")
	doc := map[string]any{}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber() // numbers come out as they went in
		if dec.Decode(&doc) != nil || doc == nil || dec.Decode(new(any)) != io.EOF {
			say("%s is not a JSON object: left alone", path)
			return nil
		}
	}
	setDefault(doc, "hasCompletedOnboarding", true)
	setDefault(doc, "lastOnboardingVersion", g.agentVersion())
	setDefault(doc, "theme", "dark")
	setDefault(doc, "bypassPermissionsModeAccepted", true)
	// "Make auto mode your default?", which it asks where the configuration says
	// that nothing is to be asked.
	setDefault(doc, "hasSeenAutoDefaultNudge", true)
	if project := object(object(doc, "projects"), g.workspace); project != nil {
		setDefault(project, "hasTrustDialogAccepted", true)
	}
	if err := g.approveKey(doc); err != nil {
		return err
	}
	out, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, append(out, '\n'), 0o600)
}

// approveKey answers "use this API key?" for the key of the environment. Claude
// remembers a key by its last 20 characters.
func (g *guest) approveKey(doc map[string]any) error {
	env, err := g.environment()
	if err != nil {
		return err
	}
	key := lookup(env, "ANTHROPIC_API_KEY")
	responses := object(doc, "customApiKeyResponses")
	if key == "" || responses == nil {
		return nil
	}
	mark := key[max(0, len(key)-20):]
	approved, _ := responses["approved"].([]any)
	if !slices.Contains(approved, any(mark)) {
		responses["approved"] = append(approved, mark)
	}
	return nil
}

// setDefault sets a key that is absent.
func setDefault(doc map[string]any, key string, value any) {
	if _, ok := doc[key]; !ok {
		doc[key] = value
	}
}

// object returns the object under key, made when absent, or nil when doc is nil
// or something else is there.
func object(doc map[string]any, key string) map[string]any {
	if doc == nil {
		return nil
	}
	setDefault(doc, key, map[string]any{})
	o, _ := doc[key].(map[string]any)
	return o
}

// seedCodex trusts /workspace unless the user has answered, either way. The
// file is the user's: it is parsed to decide and appended to, never rewritten.
func (g *guest) seedCodex() error {
	path := filepath.Join(g.home, g.agent.ConfigDir, "config.toml")
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var doc struct {
		Projects map[string]struct {
			TrustLevel *string `toml:"trust_level"`
		} `toml:"projects"`
	}
	if err := toml.Unmarshal(b, &doc); err != nil {
		say("%s does not parse: left alone", path)
		return nil
	}
	if doc.Projects[g.workspace].TrustLevel != nil {
		return nil
	}
	lines := fmt.Sprintf("[projects.%s]\ntrust_level = \"trusted\"\n", strconv.Quote(g.workspace))
	if len(b) > 0 {
		lines = "\n" + lines
		if !bytes.HasSuffix(b, []byte("\n")) {
			lines = "\n" + lines
		}
	}
	longer := append(slices.Clip(b), lines...)
	if toml.Unmarshal(longer, &doc) != nil {
		// The table is there without an answer, or inline; TOML allows it once.
		say("%s names %s without a trust_level: left alone; add trust_level = \"trusted\" to it", path, g.workspace)
		return nil
	}
	return renameio.WriteFile(path, longer, 0o600)
}
