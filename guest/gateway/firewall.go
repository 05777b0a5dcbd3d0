package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Where the gateway listens, on 127.0.0.1 of the namespace, and the mark of its
// own packets. To set a mark takes CAP_NET_ADMIN, which nothing else in the
// namespace has.
const (
	tcpPort = 49001
	dnsPort = 49053
	ownMark = 0x61670001
)

// tableName is the one table of ours. It is of the family inet: what it does not
// permit is closed for IPv4 and IPv6 alike.
const tableName = "agent_container"

// chain is a base chain with its rules, as they are sent and read back.
type chain struct {
	name     string
	kind     nftables.ChainType
	hook     *nftables.ChainHook
	priority nftables.ChainPriority
	policy   nftables.ChainPolicy
	rules    [][]expr.Any
}

// chains is the whole rule set. inbound are the ports that may be reached from
// outside.
func chains(inbound []uint16) []chain {
	input := chain{"input", nftables.ChainTypeFilter, nftables.ChainHookInput, *nftables.ChainPriorityFilter, nftables.ChainPolicyDrop, [][]expr.Any{
		rule(onLoopback(expr.MetaKeyIIFNAME), accept),
		rule(established, accept),
	}}
	// What the rules of output take for the listener's may leave by another interface
	// all the same: a socket that is bound to one (which takes no capability) keeps it
	// through a redirect. Only here is it known where a packet goes. An answer goes
	// out from an inbound port alone: the kernel takes for one also what answers a
	// packet over the loopback.
	leave := chain{"leave", nftables.ChainTypeFilter, nftables.ChainHookPostrouting, *nftables.ChainPriorityFilter, nftables.ChainPolicyDrop, [][]expr.Any{
		rule(onLoopback(expr.MetaKeyOIFNAME), accept),
		rule(marked, accept),
	}}
	for _, port := range inbound {
		input.rules = append(input.rules, rule(ipv4, protocol(unix.IPPROTO_TCP), toPort(port), accept))
		leave.rules = append(leave.rules, rule(ipv4, protocol(unix.IPPROTO_TCP), fromPort(port), established, reply, accept))
	}
	loopback4, loopback6 := netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")
	own, engineDNS, asking := netip.MustParsePrefix("127.0.0.1/32"), netip.PrefixFrom(engineResolver, 32), netip.PrefixFrom(ownLoopback, 32)
	return []chain{
		// Before the engine's own rules (priority -100), which lead port 53 of
		// 127.0.0.11 to its resolver.
		{"redirect", nftables.ChainTypeNAT, nftables.ChainHookOutput, -110, nftables.ChainPolicyAccept, [][]expr.Any{
			rule(marked, accept),
			rule(ipv4, protocol(unix.IPPROTO_UDP), toPort(53), redirect(dnsPort)),
			rule(ipv4, protocol(unix.IPPROTO_TCP), toPort(53), redirect(dnsPort)),
			rule(ipv4, to(loopback4), accept),
			rule(ipv4, protocol(unix.IPPROTO_TCP), redirect(tcpPort)),
		}},
		{"output", nftables.ChainTypeFilter, nftables.ChainHookOutput, *nftables.ChainPriorityFilter, nftables.ChainPolicyDrop, [][]expr.Any{
			rule(marked, accept),
			rule(established, reply, accept), // of what came in, and of the gateway's own questions
			// A redirected packet still carries the interface that it would have left
			// by: it is known by the address and the port of the listener.
			rule(ipv4, to(own), protocol(unix.IPPROTO_TCP), toPort(tcpPort), accept),
			rule(ipv4, to(own), protocol(unix.IPPROTO_TCP), toPort(dnsPort), accept),
			rule(ipv4, to(own), protocol(unix.IPPROTO_UDP), toPort(dnsPort), accept),
			rule(ipv4, to(engineDNS), protocol(unix.IPPROTO_TCP), reset), // its resolver listens on another port too
			rule(ipv4, to(engineDNS), refuse),
			// Only answers go to where the gateway asks from. What a program sent there
			// first would make the kernel take a question for the answer to that, and
			// lead it to the program in place of the engine's resolver.
			rule(ipv4, to(asking), refuse),
			rule(onLoopback(expr.MetaKeyOIFNAME), ipv4, to(loopback4), accept),
			rule(onLoopback(expr.MetaKeyOIFNAME), ipv6, to(loopback6), accept),
			rule(protocol(unix.IPPROTO_TCP), reset),
			rule(refuse),
		}},
		input,
		leave,
		{"forward", nftables.ChainTypeFilter, nftables.ChainHookForward, *nftables.ChainPriorityFilter, nftables.ChainPolicyDrop, nil},
	}
}

// install puts the rule set into the kernel in one transaction, in place of one
// that may be there, and compares what the kernel then has with it.
func install(inbound []uint16) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}
	c.AddTable(table) // so that there is one to delete
	c.DelTable(table)
	table = c.AddTable(table)
	want := chains(inbound)
	for _, ch := range want {
		added := c.AddChain(&nftables.Chain{Name: ch.name, Table: table, Type: ch.kind, Hooknum: ch.hook, Priority: &ch.priority, Policy: &ch.policy})
		for _, exprs := range ch.rules {
			c.AddRule(&nftables.Rule{Table: table, Chain: added, Exprs: exprs})
		}
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("install the rules: %w", err)
	}
	return verify(inbound)
}

// verify compares the kernel's rule set with the one that it must be.
func verify(inbound []uint16) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	table := &nftables.Table{Name: tableName, Family: nftables.TableFamilyINet}
	if have, err := c.ListTableOfFamily(tableName, table.Family); err != nil {
		return fmt.Errorf("read the table %s back: %w", tableName, err)
	} else if have.Flags != 0 {
		return fmt.Errorf("the table has flags: %#x", have.Flags) // it may be dormant: there, and not in force
	}
	all, err := c.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return fmt.Errorf("read the rules back: %w", err)
	}
	found := map[string]*nftables.Chain{}
	for _, ch := range all {
		if ch.Table.Name == tableName {
			found[ch.Name] = ch
		}
	}
	want := chains(inbound)
	if len(found) != len(want) {
		return fmt.Errorf("the kernel has %d chains of %d", len(found), len(want))
	}
	for _, ch := range want {
		have := found[ch.name]
		if have == nil || have.Type != ch.kind || have.Hooknum == nil || *have.Hooknum != *ch.hook ||
			have.Priority == nil || *have.Priority != ch.priority || have.Policy == nil || *have.Policy != ch.policy {
			return fmt.Errorf("the chain %s is not what was asked for", ch.name)
		}
		rules, err := c.GetRules(table, have)
		if err != nil {
			return fmt.Errorf("read the rules of %s back: %w", ch.name, err)
		}
		if len(rules) != len(ch.rules) {
			return fmt.Errorf("the chain %s has %d rules of %d", ch.name, len(rules), len(ch.rules))
		}
		for i, r := range rules {
			if !reflect.DeepEqual(r.Exprs, ch.rules[i]) {
				return fmt.Errorf("rule %d of %s is not what was asked for", i+1, ch.name)
			}
		}
	}
	return nil
}

// rule joins the parts of a rule.
func rule(parts ...[]expr.Any) []expr.Any {
	var all []expr.Any
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// The parts of rules. Each comparison loads into register 1 first.
var (
	accept      = []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	marked      = meta(expr.MetaKeyMARK, binaryutil.NativeEndian.PutUint32(ownMark))
	ipv4        = meta(expr.MetaKeyNFPROTO, []byte{unix.NFPROTO_IPV4})
	ipv6        = meta(expr.MetaKeyNFPROTO, []byte{unix.NFPROTO_IPV6})
	reset       = []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}
	refuse      = []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED}}
	established = []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
	reply = []expr.Any{&expr.Ct{Key: expr.CtKeyDIRECTION, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{1}}}
)

func meta(key expr.MetaKey, value []byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: value}}
}

func onLoopback(key expr.MetaKey) []expr.Any {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, "lo")
	return meta(key, name)
}

func protocol(number byte) []expr.Any { return meta(expr.MetaKeyL4PROTO, []byte{number}) }

func fromPort(port uint16) []expr.Any { return portAt(0, port) }
func toPort(port uint16) []expr.Any   { return portAt(2, port) }

func portAt(offset uint32, port uint16) []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
	}
}

// to compares the destination address. The rule must have looked at the family.
func to(network netip.Prefix) []expr.Any {
	offset, length := uint32(16), uint32(4)
	if network.Addr().Is6() {
		offset, length = 24, 16
	}
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: length, Mask: net.CIDRMask(network.Bits(), int(length)*8), Xor: make([]byte, length)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: network.Addr().AsSlice()},
	}
}

func redirect(port uint16) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(port)},
		&expr.Redir{RegisterProtoMin: 1, RegisterProtoMax: 1, Flags: unix.NF_NAT_RANGE_PROTO_SPECIFIED},
	}
}

var errNoOriginal = errors.New("the kernel does not say where it was going")

// originalDestination is where a redirected connection was going.
func originalDestination(conn *net.TCPConn) (netip.AddrPort, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var to netip.AddrPort
	err2 := errNoOriginal
	err = raw.Control(func(fd uintptr) {
		// A sockaddr_in fits into what this call reads, of which nothing is looked at.
		const soOriginalDst = 80
		m, err := unix.GetsockoptIPv6Mreq(int(fd), unix.IPPROTO_IP, soOriginalDst)
		if err != nil {
			err2 = err
			return
		}
		b := m.Multiaddr
		to, err2 = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), uint16(b[2])<<8|uint16(b[3])), nil
	})
	return to, errors.Join(err, err2)
}
