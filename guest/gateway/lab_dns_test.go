package gateway

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// The names of the world and where they lead.
var worldNames = map[string][]string{
	"allowed.test": {"198.51.100.10", "2001:db8:1::10"}, "xallowed.test": {"198.51.100.66"}, "notallowed.test": {"198.51.100.66"}, "allowed.test-evil.test": {"198.51.100.66"},
	"wild.test": {"198.51.100.11"}, "git.test": {"198.51.100.22"}, "good-cdn.test": {"198.51.100.80"}, "bad-cdn.test": {"198.51.100.80"}, "evil-front.test": {"198.51.100.66"},
	"evil.test": {"198.51.100.66", "2001:db8:1::66"}, "owner.test": {"198.51.100.67"}, "internal.test": {"10.20.0.5"}, "metadata.google.internal": {"169.254.169.254"},
	"private.wild.test": {"10.20.0.5"}, "shared.wild.test": {"100.64.0.5"}, "meta.wild.test": {"169.254.169.254"}, "loop.wild.test": {"127.0.0.1"}, "pool.wild.test": {"198.18.0.1"},
	"mixed.wild.test": {"10.20.0.5", "198.51.100.11"}, "db": {"10.20.0.5"}, "cache": {"10.20.0.5"}, "private.test": {"10.20.0.5"}, "loop.test": {"127.0.0.1"}, "meta.test": {"169.254.169.254"},
	"xn--bcher-kva.test": {"198.51.100.12"}, "xn--bucher-9ya.test": {"198.51.100.66"}, "only6.wild.test": {"2001:db8:1::10"}, "dead.wild.test": {"192.0.2.99"},
}

// The names that are others' names.
var worldAliases = map[string]string{"cname.wild.test": "owner.test", "cname-private.wild.test": "internal.test", "circle.wild.test": "circle2.wild.test", "circle2.wild.test": "circle.wild.test"}

// serveWorldDNS answers at the world's resolver and at the attacker's, to whom
// every name leads to .66.
func serveWorldDNS(port int) {
	for _, address := range []string{"198.51.100.53", "198.51.100.66", "2001:db8:1::66"} {
		for _, network := range []string{"udp", "tcp"} {
			started := make(chan struct{})
			s := &dns.Server{Addr: net.JoinHostPort(address, strconv.Itoa(port)), Net: network, Handler: dns.HandlerFunc(answerWorld), NotifyStartedFunc: func() { close(started) }}
			go func() { must(s.ListenAndServe()) }()
			<-started
		}
	}
}

func answerWorld(w dns.ResponseWriter, q *dns.Msg) {
	local, _ := netip.ParseAddrPort(w.LocalAddr().String())
	if len(q.Question) == 0 {
		return
	}
	name := strings.ToLower(strings.TrimSuffix(q.Question[0].Name, "."))
	report.event(event{Kind: "dns", Server: addrOf(local) + "/" + w.LocalAddr().Network(), Text: name + " " + dns.TypeToString[q.Question[0].Qtype]})
	m := new(dns.Msg).SetReply(q)
	switch label, _, _ := strings.Cut(name, "."); {
	case local.Addr().String() != "198.51.100.53":
		m.Answer = records(name, q.Question[0].Qtype, "198.51.100.66")
	case strings.HasSuffix(name, ".wild.test") && hostile[label] != nil:
		_, udp := w.LocalAddr().(*net.UDPAddr)
		if m = hostile[label](m, udp); m == nil {
			return
		}
	default:
		answerName(m, name, q.Question[0].Qtype)
	}
	_ = w.WriteMsg(m)
}

func answerName(m *dns.Msg, name string, qtype uint16) {
	for range 8 {
		target, ok := worldAliases[name]
		if !ok {
			break
		}
		m.Answer = append(m.Answer, &dns.CNAME{Hdr: header(name, dns.TypeCNAME), Target: dns.Fqdn(target)})
		name = target
	}
	addresses, ok := worldNames[name]
	switch {
	case ok || worldAliases[name] != "": // or there is no end to it
	case strings.HasSuffix(name, ".wild.test"):
		addresses = []string{"198.51.100.11"}
	case strings.HasSuffix(name, ".evil.test"):
		addresses = []string{"198.51.100.66"}
	case len(m.Answer) == 0:
		m.Rcode = dns.RcodeNameError
	}
	m.Answer = append(m.Answer, records(name, qtype, addresses...)...)
}

func header(name string, qtype uint16) dns.RR_Header {
	return dns.RR_Header{Name: dns.Fqdn(name), Rrtype: qtype, Class: dns.ClassINET, Ttl: 1}
}

func records(name string, qtype uint16, addresses ...string) []dns.RR {
	var list []dns.RR
	for _, a := range addresses {
		switch addr := netip.MustParseAddr(a); {
		case addr.Is4() && qtype == dns.TypeA:
			list = append(list, &dns.A{Hdr: header(name, qtype), A: addr.AsSlice()})
		case addr.Is6() && qtype == dns.TypeAAAA:
			list = append(list, &dns.AAAA{Hdr: header(name, qtype), AAAA: addr.AsSlice()})
		}
	}
	return list
}

// turns are where a name leads in turn, a second each: its answers are kept no longer.
var turns = []string{"198.51.100.11", "10.20.0.5", "198.51.100.12"}

func turn() string { return turns[time.Now().Unix()%int64(len(turns))] }

// hostile are answers that no honest server gives, by the first label of a name
// below wild.test; nil is none at all.
var hostile = map[string]func(m *dns.Msg, udp bool) *dns.Msg{
	"silent": func(*dns.Msg, bool) *dns.Msg { return nil },
	"truncated": func(m *dns.Msg, _ bool) *dns.Msg {
		m.Truncated = true
		return m
	},
	"many": func(m *dns.Msg, udp bool) *dns.Msg { // 500 addresses, which fit into TCP alone
		for range 500 {
			m.Answer = append(m.Answer, records(m.Question[0].Name, dns.TypeA, "198.51.100.11")...)
		}
		if udp {
			m.Answer, m.Truncated = nil, true
		}
		return m
	},
	"wrong-id": func(m *dns.Msg, _ bool) *dns.Msg {
		m.Id++
		m.Answer = records(m.Question[0].Name, dns.TypeA, "198.51.100.66")
		return m
	},
	"wrong-question": func(m *dns.Msg, _ bool) *dns.Msg {
		m.Question[0].Name = "allowed.test."
		m.Answer = records("allowed.test.", dns.TypeA, "198.51.100.66")
		return m
	},
	"wrong-owner": func(m *dns.Msg, _ bool) *dns.Msg { // an address of a name that was not asked for
		m.Answer = records("evil.test.", dns.TypeA, "198.51.100.66")
		return m
	},
	"rotating": func(m *dns.Msg, _ bool) *dns.Msg {
		m.Answer = records(m.Question[0].Name, dns.TypeA, turn())
		return m
	},
	"servfail": func(m *dns.Msg, _ bool) *dns.Msg { m.Rcode = dns.RcodeServerFailure; return m },
	"long-chain": func(m *dns.Msg, _ bool) *dns.Msg {
		name := m.Question[0].Name
		for i := range 60 {
			target := fmt.Sprintf("c%d.wild.test.", i)
			m.Answer = append(m.Answer, &dns.CNAME{Hdr: header(name, dns.TypeCNAME), Target: target})
			name = target
		}
		m.Answer = append(m.Answer, records(name, dns.TypeA, "198.51.100.66")...)
		return m
	},
}
