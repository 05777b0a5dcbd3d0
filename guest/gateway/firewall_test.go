package gateway

import (
	"encoding/binary"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
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
	again(t, t.Name())
	return false
}

// again runs a test in a network namespace of its own, through a command.
func again(t *testing.T, name string, through ...string) {
	t.Helper()
	argv := append(append([]string{"--net"}, through...), os.Args[0], "-test.run=^"+name+"$", "-test.v", "-test.count=1")
	cmd := exec.Command("unshare", argv...)
	cmd.Env = append(os.Environ(), "GATEWAY_TEST_NAMESPACE="+name)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v: %s", err, out)
	}
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
		"a table that sleeps": func(*nftables.Conn) { putToSleep(t) },
		"no table":            func(c *nftables.Conn) { c.DelTable(table) },
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

// putToSleep sets the flag that puts a table out of force and leaves it as it is.
func putToSleep(t *testing.T) {
	t.Helper()
	const dormant = 1
	unix.Close(addTable(t, dormant))
}

// addTable adds the gateway's table with flags, which the library cannot, and
// returns the socket that did.
func addTable(t *testing.T, flags uint32) (fd int) {
	t.Helper()
	attribute := func(kind uint16, value []byte) []byte {
		b := binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, uint16(4+len(value))), kind)
		return append(b, append(value, make([]byte, -len(value)&3)...)...)
	}
	message := func(kind uint16, head []byte, attributes ...[]byte) []byte {
		body := append(head, slices.Concat(attributes...)...)
		b := binary.NativeEndian.AppendUint32(nil, uint32(16+len(body)))
		b = binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(b, kind), unix.NLM_F_REQUEST)
		return append(append(b, make([]byte, 8)...), body...)
	}
	batch := []byte{unix.AF_UNSPEC, 0, 0, unix.NFNL_SUBSYS_NFTABLES}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(message(unix.NFNL_MSG_BATCH_BEGIN, slices.Clone(batch)),
		message(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWTABLE, []byte{unix.NFPROTO_INET, 0, 0, 0},
			attribute(unix.NFTA_TABLE_NAME, []byte(tableName+"\x00")), attribute(unix.NFTA_TABLE_FLAGS, binary.BigEndian.AppendUint32(nil, flags))),
		message(unix.NFNL_MSG_BATCH_END, slices.Clone(batch)))
	if err := unix.Sendto(fd, all, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		t.Fatal(err)
	}
	return fd
}
