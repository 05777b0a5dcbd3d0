package tests

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func code(words []string) string {
	if len(words) == 0 {
		return "–"
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

func TestDocsHaveTheProviders(t *testing.T) {
	// docs/egress.md must have every provider with its hosts, every package manager, and what each agent needs.
	doc := read(t, "docs/egress.md")
	for _, p := range spec.Providers {
		contains(t, "docs/egress.md", doc, fmt.Sprintf("| `%s` | %s | %s |\n", p.Name, p.Doc, code(p.Hosts)))
	}
	for _, a := range spec.Agents {
		contains(t, "docs/egress.md", doc, fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", a.Name, code(a.API), code(a.Login), code(a.Telemetry), code(a.BaseURLs)))
	}
	for _, name := range append([]string{spec.AgentProvider}, spec.PackageManagers...) {
		contains(t, "docs/egress.md", doc, "`provider:"+name+"`")
	}
}

func TestDocsHaveFormsThatAreRead(t *testing.T) {
	// Every form of an entry that docs/egress.md shows must be one that is read, and written as it stands there.
	table := regexp.MustCompile(`(?s)\| entry \|.*?\n\n`).FindString(read(t, "docs/egress.md"))
	forms := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1)
	if len(forms) < 7 {
		t.Fatalf("docs/egress.md shows %d forms", len(forms))
	}
	for _, m := range forms {
		if a, err := spec.ParseAllow("docs", m[1]); err != nil || a.String() != m[1] {
			t.Errorf("%s: %v, %v", m[1], a, err)
		}
	}
}
