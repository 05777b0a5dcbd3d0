package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/google/nftables"
	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// localRows are the rows E and F that are one attempt each: the environment,
// channels inside of the place, and changing what holds it.
func localRows() []row {
	return []row{
		{id: "E01", title: "a client without an environment", tries: []try{
			https("evil.test", denied()), {what: "a process with no variables, to evil.test's address", want: denied(), do: func(a *attempt) error { return a.elsewhere(0) }}}},
		{id: "E02", title: "a proxy of the client's own choice", tries: []try{
			fetch("http by 198.51.100.66:8080", denied(), request{url: "http://allowed.test/", proxy: "http://198.51.100.66:8080"}),
			fetch("https by allowed.test:80", denied(), request{url: "https://evil.test/", proxy: "http://allowed.test:80"}).controlled(func(a *attempt) error { return a.https("evil.test") }),
			fetch("http by allowed.test:80", denied("403"), request{url: "http://evil.test/", proxy: "http://allowed.test:80"})}},
		{id: "E04", title: "what a cloud tells its machines", tries: []try{
			fetch("169.254.169.254", denied(), request{url: "http://169.254.169.254/latest/meta-data/"}), fetch("169.254.170.2", denied(), request{url: "http://169.254.170.2/"}),
			fetch("[fd00:ec2::254]", denied(), request{url: "http://[fd00:ec2::254]/"}), fetch("metadata.google.internal", denied(), request{url: "http://metadata.google.internal/", header: http.Header{"Metadata-Flavor": {"Google"}}}),
			fetch("a PUT for a session", denied(), request{url: "http://169.254.169.254/latest/api/token/", method: http.MethodPut, header: http.Header{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": {"60"}}})}},
		{id: "E08", title: "what listens inside", tries: []try{{what: "127.0.0.1 has the two ports of the gateway, 53 which leads to one of them, and no other", want: holds.slow(time.Minute), who: []string{"uid 1000"}, do: func(a *attempt) error {
			return a.onlyOpen(1, 65535, 53, tcpPort, dnsPort)
		}, control: func(a *attempt) error { return a.onlyOpen(tcpPort, dnsPort, tcpPort, dnsPort) }}}},
		{id: "F01", title: "the kernel's rules", tries: []try{
			netfilter("add a table", func(c *nftables.Conn) { c.AddTable(&nftables.Table{Name: "a", Family: nftables.TableFamilyINet}) }),
			netfilter("delete the gateway's table", func(c *nftables.Conn) {
				t := c.AddTable(&nftables.Table{Name: tableName, Family: nftables.TableFamilyINet})
				c.DelTable(t)
			}),
			command("a link of its own", "ip", "link", "add", "x0", "type", "veth", "peer", "name", "x1")}},
		{id: "F02", title: "other namespaces", tries: []try{
			{what: "a connection from a new one", want: denied(), do: func(a *attempt) error { return a.elsewhere(unix.CLONE_NEWUSER | unix.CLONE_NEWNET) }, control: func(a *attempt) error { return a.elsewhere(0) }},
			{what: "unshare", want: refusedByKernel, do: func(*attempt) error { return onThread(func() error { return unix.Unshare(unix.CLONE_NEWNET) }) }},
			{what: "the namespace of the machine", want: refusedByKernel, do: func(*attempt) error { return onThread(enterFirst) }}}},
	}
}

// onlyOpen looks for other ports that are open, and for some that must be.
func (a *attempt) onlyOpen(from, to int, want ...int) error {
	open, err := a.open("127.0.0.1", from, to)
	if err == nil && !slices.Equal(open, want) {
		err = fmt.Errorf("open: %v", open)
	}
	return err
}

// onThread does what changes a thread on one that ends with it.
func onThread(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- do()
	}()
	return <-done
}

func enterFirst() error {
	fd, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", os.Getppid()))
	if err != nil {
		return err
	}
	defer fd.Close()
	return unix.Setns(int(fd.Fd()), unix.CLONE_NEWNET)
}

func netfilter(what string, change func(*nftables.Conn)) try {
	return try{what: what, want: refusedByKernel, do: func(*attempt) error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		change(c)
		return c.Flush()
	}}
}

// ownRows are cases that came up here, and those of other policies.
func ownRows() []row {
	mark := askedAt("udp", server(66, 53), denied())
	return []row{
		{id: "G01", title: "a socket that is bound to the way out", tries: []try{
			bound("udp4", "127.0.0.1:49053"), bound("udp4", server(66, 53)), bound("udp4", server(66, 443)), bound("udp4", "127.0.0.1:9999"),
			bound("tcp4", server(66, 8080)), bound("tcp4", server(10, 8080))}},
		{id: "G06", title: "from the port that people come in by", tries: []try{
			{what: "TCP from 2222", want: denied(), do: func(a *attempt) error {
				conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{Port: 2222}}).DialContext(a.ctx, "tcp4", server(66, 8080))
				if err != nil {
					return err
				}
				return a.echo(conn, "")
			}}}},
		{id: "G02", title: "the gateway's own ports", tries: []try{
			tcp("127.0.0.1:49001", denied()).controlled(func(a *attempt) error { return a.raw(server(66, 49001), "") }),
			askedAt("tcp", "127.0.0.1:49053", denied("REFUSED")).controlled(toEvil), askedAt("udp", "127.0.0.1:49053", denied("REFUSED")).controlled(toEvil),
			fetch("http to 127.0.0.1:49001", denied(), request{url: "http://127.0.0.1:49001/", host: "allowed.test"}).controlled(toEvil)}},
		{id: "G03", title: "addresses of other networks", tries: privateTries()},
		{id: "G04", title: "other kinds of questions about a declared name", tries: []try{
			{what: "over TCP", want: holds, do: func(a *attempt) error { return a.ownAddress("tcp", "allowed.test") }},
			{what: "AAAA has no answer", want: holds, do: func(a *attempt) error { return a.empty("allowed.test", dns.TypeAAAA) }},
			{what: "HTTPS has no answer", want: holds, do: func(a *attempt) error { return a.empty("allowed.test", dns.TypeHTTPS) }},
			{what: "in capitals", want: holds, do: func(a *attempt) error { return a.ownAddress("udp", "aLLoWed.TeSt") }}}},
		{id: "G05", title: "the packets of another resolver that are no question", tries: []try{mark,
			{what: "a datagram to port 53 that is no question", want: denied(), do: func(a *attempt) error {
				if err := a.udp(server(66, 53)); err != nil {
					return err
				}
				return errors.New("no answer")
			}}}},
		{id: "G08", title: "an agent that answers in place of the engine's resolver", place: "private", tries: []try{
			{what: "TCP to cache:5432, whose address it would say", want: reaches("10.20.0.5:5432"), who: []string{"uid 1000"}, do: func(a *attempt) error { return a.impersonate("cache") }}}},
		{id: "G09", title: "the answer to a packet over the loopback, by the way out", tries: []try{
			{what: "over IPv6", want: denied(), do: func(a *attempt) error { return a.answerOut("udp6", "::1") }}}},
		{id: "G10", title: "the engine's resolver asks from outside of the namespace", place: "outside", tries: []try{https("allowed.test", reaches(server(10, 443))), https("evil.test", denied())}},
		{id: "G11", title: "advisory: what strict would refuse is let through", place: "advisory", tries: []try{
			https("allowed.test", reaches(server(10, 443))), https("evil.test", reaches(server(66, 443))), http80("evil.test", reaches(server(66, 80))), tcp("evil.test:22", reaches(server(66, 22))),
			tcp(server(66, 8080), reaches(server(66, 8080))), fetch("a hello for another name", reaches(server(10, 443)), request{url: "https://allowed.test/", sni: "evil.test"}),
			head("a request for another host", reaches(server(10, 80)), "GET /TOKEN HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
			tcp("allowed.test:8080", reaches(server(10, 8080))), tcp("10.20.0.5:8080", reaches("10.20.0.5:8080"))}},
		{id: "G12", title: "advisory: what no gateway lets through", place: "advisory", tries: []try{
			udp(server(66, 443), denied()), tcp("[2001:db8:1::66]:443", denied()), fetch("metadata", denied(), request{url: "http://169.254.169.254/"}), tcp("127.0.0.1:49001", denied()).controlled(func(a *attempt) error { return a.raw(server(66, 49001), "") }),
			http80("private.wild.test", denied())}},
		{id: "G13", title: "declared private names and addresses", place: "private", tries: []try{
			https("private.test", reaches("10.20.0.5:443")), http80("private.test", reaches("10.20.0.5:80")), tcp("private.test:6379", reaches("10.20.0.5:6379")), tcp("db:5432", reaches("10.20.0.5:5432")), tcp("10.20.0.5:3306", reaches("10.20.0.5:3306")),
			tcp("10.20.0.5:6379", denied()), tcp("10.20.0.5:5432", denied()), tcp("10.20.0.6:3306", denied())}},
		{id: "G14", title: "a declared private name that leads to the gateway or to the machine", place: "private", tries: []try{
			tcp("loop.test:49001", denied()).controlled(func(a *attempt) error { return a.raw(server(66, 49001), "") }), tcp("loop.test:8080", denied()).controlled(func(a *attempt) error { return a.raw(server(66, 8080), "") }), http80("meta.test", denied())}},
	}
}

func privateTries() []try {
	var list []try
	for _, address := range elsewhere {
		list = append(list, tcp(address+":8080", denied()), fetch("http://"+address+"/", denied(), request{url: "http://" + address + "/"}))
	}
	return list
}

func bound(network, address string) try {
	return try{what: network + " to " + address, want: denied().slow(3 * time.Second), do: func(a *attempt) error { return a.bound(network, address) }}
}
