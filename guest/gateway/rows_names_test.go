package gateway

import (
	"fmt"
	"strings"
)

// The servers of the world, by the last number of their address.
func server(host, port int) string { return fmt.Sprintf("198.51.100.%d:%d", host, port) }

func https(host string, w want) try {
	return try{what: "https://" + host + "/", want: w, do: func(a *attempt) error { return a.https(host) }}
}

func http80(host string, w want) try {
	return try{what: "http://" + host + "/", want: w, do: func(a *attempt) error { return a.http(host) }}
}

func tcp(address string, w want) try {
	return try{what: "TCP to " + address, want: w, do: func(a *attempt) error { return a.raw(address, "") }}
}

func udp(address string, w want) try {
	return try{what: "UDP to " + address, want: w, do: func(a *attempt) error { return a.udp(address) }}
}

func fetch(what string, w want, r request) try {
	return try{what: what, want: w, do: func(a *attempt) error { return a.fetch(r) }}
}

// head is a request, as it stands on the wire, to allowed.test's port 80.
func head(what string, w want, text string) try {
	return try{what: what, want: w, do: func(a *attempt) error { return a.raw80("allowed.test:80", text) }}
}

// nameRows are the rows A: names and ordinary traffic.
func nameRows() []row {
	return []row{
		{id: "A01", title: "a declared name, with the server's own certificate", tries: []try{https("allowed.test", reaches(server(10, 443)))}},
		{id: "A02", title: "a declared name over plain HTTP", tries: []try{http80("allowed.test", reaches(server(10, 80)))}},
		{id: "A03", title: "names below a wildcard, at any depth", tries: []try{https("api.wild.test", reaches(server(11, 443))), https("a.b.wild.test", reaches(server(11, 443)))}},
		{id: "A04", title: "the name above a wildcard", tries: []try{https("wild.test", denied())}},
		{id: "A05", title: "an undeclared name", tries: []try{https("evil.test", denied()), http80("evil.test", denied())}},
		{id: "A06", title: "names that look like a declared one", tries: []try{
			https("notallowed.test", denied()), https("xallowed.test", denied()), https("allowed.test.evil.test", denied()), https("allowed.test-evil.test", denied())}},
		{id: "A07", title: "a declared name in capitals, and with a dot at its end", tries: []try{
			https("ALLOWED.TEST", reaches(server(10, 443))), https("allowed.test.", reaches(server(10, 443))), http80("Allowed.Test.", reaches(server(10, 80)))}},
		{id: "A08", title: "what is no name, said to a declared host", tries: []try{
			head("Host: allowed..test", denied("40"), "GET /TOKEN HTTP/1.1\r\nHost: allowed..test\r\n\r\n"),
			head("Host: .allowed.test", denied("40"), "GET /TOKEN HTTP/1.1\r\nHost: .allowed.test\r\n\r\n"),
			head("a label of 64", denied("40"), "GET /TOKEN HTTP/1.1\r\nHost: "+strings.Repeat("a", 64)+".wild.test\r\n\r\n"),
			head("a name of 254", denied("40"), "GET /TOKEN HTTP/1.1\r\nHost: "+strings.Repeat("a.", 122)+"wild.test\r\n\r\n")}},
		{id: "A10", title: "a name with other letters, and one that looks the same", tries: []try{https("xn--bcher-kva.test", reaches(server(12, 443))), https("xn--bucher-9ya.test", denied())}},
		{id: "A11", title: "a policy without rules", place: "empty", tries: []try{https("allowed.test", denied()), tcp(server(10, 443), denied()), tcp("git.test:22", denied())}},
		{id: "A13", title: "the port selects what of a host is open", tries: []try{tcp("git.test:22", reaches(server(22, 22))), https("git.test", denied())}},
	}
}

// The addresses that the world has in other networks than the public ones.
var elsewhere = []string{"169.254.169.254", "169.254.170.2", "10.20.0.5", "100.64.0.5", "192.0.2.1", "198.18.0.1", "198.19.255.254"}

// networkRows are the rows B: addresses, ports and protocols.
func networkRows() []row {
	list := []row{
		{id: "B01", title: "an address in place of a name, also a declared host's own", tries: []try{
			fetch("https to 198.51.100.66", denied(), request{url: "https://198.51.100.66/"}), fetch("https to 198.51.100.10", denied(), request{url: "https://198.51.100.10/"}),
			fetch("http to 198.51.100.66", denied(), request{url: "http://198.51.100.66/"}), fetch("http to 198.51.100.10", denied(), request{url: "http://198.51.100.10/"})}},
		{id: "B05", title: "IPv6, in a place that has an address and a route", tries: []try{
			tcp("[2001:db8:1::66]:443", denied()), tcp("[2001:db8:1::10]:443", denied()), udp("[2001:db8:1::66]:443", denied()), tcp("[::ffff:198.51.100.66]:443", denied()),
			{what: "a ping over IPv6", want: denied(), do: func(a *attempt) error { return a.ping("2001:db8:1::66") }},
			udp("[ff02::fb%eth0]:5353", denied())}},
		{id: "B06", title: "every port of an undeclared address"},
		{id: "B07", title: "the other ports of a declared host"},
		{id: "B08", title: "UDP, also QUIC", tries: []try{udp(server(66, 443), denied()), udp(server(66, 123), denied()), udp(server(66, 4433), denied()), udp("allowed.test:443", denied()), udp("224.0.0.251:5353", denied())}},
		{id: "B10", title: "ICMP", tries: []try{{what: "a ping", want: denied(), do: func(a *attempt) error { return a.ping("198.51.100.66") }}}},
		{id: "B11", title: "raw and packet sockets, other protocols", tries: []try{
			socketTry("a raw socket", afInet, sockRaw, 255), socketTry("a raw ICMP socket", afInet, sockRaw, 1), socketTry("a packet socket", afPacket, sockRaw, 0x0300), socketTry("an XDP socket", afXDP, sockRaw, 0),
			protocolTry("UDP-Lite", sockDgram, 136), protocolTry("MPTCP", sockStream, 262),
			{what: "SCTP, from the raw socket of somebody with every capability", want: denied(), who: []string{"root"}, do: func(a *attempt) error { return a.rawProtocol(132) }}}},
		{id: "B13", title: "the gateway's mark", tries: []try{{what: "SO_MARK", want: refusedByKernel, do: func(a *attempt) error { return setOwnMark() }}}},
		{id: "B15", title: "routes, links, namespaces and kernel settings", tries: []try{
			command("a route", "ip", "route", "add", "203.0.113.200/32", "dev", "eth0"), command("a link", "ip", "link", "set", "eth0", "mtu", "1400"), command("an address", "ip", "addr", "add", "203.0.113.201/32", "dev", "eth0"),
			writeTry("/proc/sys/net/ipv4/ip_forward", "0"), writeTry("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0"), writeTry("/proc/sys/net/ipv4/tcp_fwmark_accept", "0")}},
		{id: "B16", title: "IP options, fragments, data in the first packet", tries: []try{
			{what: "TCP fast open", want: denied(), do: func(a *attempt) error { return a.fastOpen([4]byte{198, 51, 100, 66}, 8080) }},
			{what: "a source route by a declared host", want: refusedByKernel, do: func(a *attempt) error { return a.sourceRoute([4]byte{198, 51, 100, 10}, [4]byte{198, 51, 100, 66}) }},
			{what: "fragments", want: denied(), do: func(a *attempt) error { return a.fragments(server(66, 443)) }}}},
	}
	for _, port := range []int{21, 22, 25, 53, 80, 443, 853, 1080, 2375, 3128, 3129, 3306, 5432, 6379, 8080, 8443, 9050, tcpPort, dnsPort} {
		if port != 53 { // C05
			list[2].tries = append(list[2].tries, tcp(server(66, port), denied()))
		}
		if port != 443 && port != 80 && port != 53 && port != 853 {
			list[3].tries = append(list[3].tries, tcp(fmt.Sprintf("allowed.test:%d", port), denied()))
		}
	}
	return list
}
