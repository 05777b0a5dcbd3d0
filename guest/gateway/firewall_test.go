package gateway

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/nftables"
)

// inNamespace runs the test once more in a network namespace of its own, where
// it is root, and returns true there.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv("GATEWAY_TEST_NAMESPACE") == t.Name() {
		return true
	}
	if os.Getuid() != 0 {
		t.Skip("network namespaces take root")
	}
	cmd := exec.Command("unshare", "--net", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), "GATEWAY_TEST_NAMESPACE="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v: %s", err, out)
	}
	return false
}

// The kernel must have exactly the rules that were asked for, also where others
// were before; whatever differs must be found.
func TestInstall(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for range 2 {
		if err := install([]uint16{2222}); err != nil {
			t.Fatal(err)
		}
	}
	if err := verify([]uint16{2222}); err != nil {
		t.Error(err)
	}
	if verify(nil) == nil || verify([]uint16{2223}) == nil {
		t.Error("another inbound port is not found")
	}
	table := &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}
	for about, change := range map[string]func(c *nftables.Conn){
		"a rule more": func(c *nftables.Conn) {
			c.InsertRule(&nftables.Rule{Table: table, Chain: &nftables.Chain{Name: "output"}, Exprs: accept})
		},
		"no rules": func(c *nftables.Conn) { c.FlushChain(&nftables.Chain{Name: "output", Table: table}) },
		"another policy": func(c *nftables.Conn) {
			p := nftables.ChainPolicyAccept
			c.AddChain(&nftables.Chain{Name: "forward", Table: table, Policy: &p})
		},
		"no table": func(c *nftables.Conn) { c.DelTable(table) },
	} {
		if err := install([]uint16{2222}); err != nil {
			t.Fatal(err)
		}
		c, err := nftables.New()
		if err != nil {
			t.Fatal(err)
		}
		change(c)
		if err := c.Flush(); err != nil {
			t.Fatalf("%s: %v", about, err)
		}
		if verify([]uint16{2222}) == nil {
			t.Errorf("%s is not found", about)
		}
	}
}
