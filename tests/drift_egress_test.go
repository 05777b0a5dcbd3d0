package tests

import (
	"regexp"
	"strings"
	"testing"

	"github.com/agent-container/agent-container/cli"
)

func TestDocsHaveTheLimitsOfEgress(t *testing.T) {
	// docs/egress.md must have each limit that egress show prints, in its words, no other, and every stage of a decision.
	doc := read(t, "docs/egress.md")
	_, section, ok := strings.Cut(doc, "### What it does not cover\n")
	if !ok || len(cli.EgressLimits) < 5 {
		t.Fatal("no section, or no limits")
	}
	section, _, _ = strings.Cut(section, "\n#")
	for _, l := range cli.EgressLimits {
		contains(t, "docs/egress.md", section, "\n- "+l+"\n")
	}
	if n := strings.Count(section, "\n- "); n != len(cli.EgressLimits) {
		t.Errorf("docs/egress.md has %d limits, egress show %d", n, len(cli.EgressLimits))
	}
	stages := regexp.MustCompile(`(?m)^\tStage\w+ +Stage += "(\w+)"`).FindAllStringSubmatch(read(t, "spec/decision.go"), -1)
	if len(stages) < 8 {
		t.Fatalf("spec/decision.go has %d stages", len(stages))
	}
	for _, m := range stages {
		if m[1] != "open" && m[1] != "journal" {
			contains(t, "docs/egress.md", doc, "| `"+m[1]+"` |")
		}
	}
}
