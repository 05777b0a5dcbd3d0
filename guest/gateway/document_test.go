package gateway

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const documentPath = "../../docs/egress-tests.md"

const documentHead = `# The egress battery

What a gateway must let through and what it must not, tried in network namespaces
by the test binary of ` + "`guest/gateway`" + ` and written by that run:

    AGENT_CONTAINER_BATTERY=full go test ./guest/gateway -run TestBattery -update

Each attempt carries a token of its own. "Reaches" is the server in whose log the
token is, and no other. "Denied" is a token that is in no server's log, in no
question to a resolver and in no packet that left the namespace, and a client that
failed within two seconds (in G01, G07 and C15 no refusal is promised). "Refused by
the kernel" is a call that fails, and "holds" a fact. Before each row the same is
done in a namespace without a gateway, where it must not end so: a row that cannot
fail fails. Each attempt is made as uid 1000 and as uid 0 without capabilities,
three times each when the battery is full. At
the end every packet that left is looked at: each was the gateway's own, to a
declared host or to the resolver.

In containers on a real engine the ways out are tried again by
` + "`tests/e2e/egress*_test.go`" + `: from the agent's container and from a service inside, as
uid 1000 and as root, with a witness's log as the verdict and the same attempts without
egress first; and while gateway, agent and engine are restarted, killed and lost.

| id | case | must be | ended so |
|---|---|---|---|
`

// cells are the first cells of a row of the document.
func (r row) cells() string {
	must := r.wants
	if r.test == nil {
		var parts []string
		for i, t := range r.tries {
			if i == 0 || t.want.String() != r.tries[i-1].want.String() {
				parts = append(parts, t.want.String()+": "+t.what)
			} else {
				parts[len(parts)-1] += ", " + t.what
			}
		}
		must = strings.Join(parts, "; ")
	}
	title := r.title
	if r.place != "" {
		title += " (policy: " + r.place + ")"
	}
	return fmt.Sprintf("| %s | %s | %s |", r.id, title, strings.NewReplacer("|", `\|`, "*", `\*`).Replace(must))
}

// document writes the document, if that was asked for.
func (b *battery) document(t *testing.T) {
	if !*update {
		t.Skip("without -update")
	}
	text := documentHead
	for _, r := range rows() {
		m := b.measured[r.id]
		if m == nil {
			t.Fatalf("%s was not run", r.id)
		}
		text += fmt.Sprintf("%s %d of %d", r.cells(), m.good, m.all)
		if m.notHere != nil {
			text += "; not in this kernel: " + strings.Join(m.notHere, ", ")
		}
		text += " |\n"
	}
	if err := os.WriteFile(documentPath, []byte(text), 0o644); err != nil {
		t.Error(err)
	}
}

// docs/egress-tests.md must have every row of the battery, and no other, with what
// it wants, and none that ended otherwise.
func TestBatteryDocument(t *testing.T) {
	b, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	text, ok := strings.CutPrefix(string(b), documentHead)
	if !ok {
		t.Error("it begins differently")
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) != len(rows()) {
		t.Fatalf("%d rows of %d", len(lines), len(rows()))
	}
	for i, r := range rows() {
		rest, ok := strings.CutPrefix(lines[i], r.cells())
		var good, all int
		if _, err := fmt.Sscanf(rest, "%d of %d", &good, &all); !ok || err != nil || good != all || all == 0 {
			t.Errorf("%s: %s", r.id, lines[i])
		}
	}
}

// Each row of the battery must have an id of its own.
func TestBatteryIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range rows() {
		if seen[r.id] || r.title == "" || (r.test == nil) == (len(r.tries) == 0) || (r.test == nil) != (r.wants == "") {
			t.Errorf("%+v", r)
		}
		seen[r.id] = true
	}
}
