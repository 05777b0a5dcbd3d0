package gateway

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// webRows are the rows D: tricks with HTTP and TLS.
func webRows() []row {
	const host = "Host: allowed.test\r\n"
	return []row{
		{id: "D01", title: "a declared name in the hello, to another address", tries: []try{
			fetch("hello for allowed.test, to evil.test's address", denied(), request{url: "https://allowed.test/", to: server(66, 443)}),
			fetch("hello for evil.test, to allowed.test", denied(), request{url: "https://allowed.test/", sni: "evil.test", host: "evil.test"}),
			fetch("hello for another declared name", denied(), request{url: "https://allowed.test/", sni: "api.wild.test"})}},
		{id: "D02", title: "a declared name in the request, to another address", tries: []try{
			fetch("Host: allowed.test, to evil.test's address", denied(), request{url: "http://198.51.100.66/", host: "allowed.test"})}},
		{id: "D03", title: "requests that two programs read differently", tries: []try{
			{what: "GET http://allowed.test/ with another Host, to evil.test's address", want: denied(), do: func(a *attempt) error {
				return a.raw80(server(66, 80), "GET http://allowed.test/TOKEN HTTP/1.1\r\nHost: evil.test\r\n\r\n")
			}},
			head("GET http://evil.test/", denied("403"), "GET http://evil.test/TOKEN HTTP/1.1\r\n"+host+"\r\n"),
			head("two Hosts", denied("400"), "GET /TOKEN HTTP/1.1\r\n"+host+"Host: evil.test\r\n\r\n").controlled(toEvil),
			head("a folded Host", denied("40"), "GET /TOKEN HTTP/1.1\r\nHost: allowed.test\r\n evil.test\r\n\r\n").controlled(toEvil),
			head("a zero byte in Host", denied("400"), "GET /TOKEN HTTP/1.1\r\nHost: evil.test\x00.allowed.test\r\n\r\n").controlled(toEvil),
			head("an empty Host", denied("403"), "GET /TOKEN HTTP/1.1\r\nHost:\r\n\r\n"),
			head("no Host", denied("403"), "GET /TOKEN HTTP/1.0\r\n\r\n"),
			head("a Host with another port", denied("403"), "GET /TOKEN HTTP/1.1\r\nHost: allowed.test:8080\r\n\r\n"),
			head("a Host with a user", denied("40"), "GET /TOKEN HTTP/1.1\r\nHost: allowed.test@evil.test\r\n\r\n"),
			second("the second request of a connection", denied("403"), "GET / HTTP/1.1\r\n"+host+"\r\nGET /TOKEN HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
			second("a request behind a body with two lengths", denied(), "POST / HTTP/1.1\r\n"+host+"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /TOKEN HTTP/1.1\r\nHost: evil.test\r\n\r\n")}},
		{id: "D05", title: "a hello without a name", tries: []try{
			fetch("to allowed.test", denied(), request{url: "https://allowed.test/", sni: "-"}), fetch("to evil.test's address", denied(), request{url: "https://allowed.test/", to: server(66, 443), sni: "-"})}},
		{id: "D06", title: "odd hellos", tries: []try{
			oddHello("an address as a name", hello{names: []string{"198.51.100.10"}}), oddHello("two names", hello{names: []string{"allowed.test", "evil.test"}}), oddHello("an empty name", hello{names: []string{""}}),
			oddHello("a dot at the end of the name", hello{names: []string{"allowed.test."}}), oddHello("a zero byte in the name", hello{names: []string{"evil.test\x00.allowed.test"}}),
			oddHello("a name of 70 KB", hello{names: []string{strings.Repeat("a", 60_000)}}), oddHello("40 KB of padding before the name", hello{names: []string{"allowed.test"}, padding: 40_000}), oddHello("SSLv2", hello{ssl2: true})}},
		{id: "D08", title: "an encrypted hello: the outer name counts", tries: []try{
			{what: "outer name allowed.test, inner evil.test", want: reaches(server(10, 443)), do: func(a *attempt) error { return a.encrypted("allowed.test", "allowed.test", "evil.test") }},
			{what: "outer name evil-front.test, inner allowed.test", want: denied(), do: func(a *attempt) error { return a.encrypted("allowed.test", "evil-front.test", "allowed.test") }}}},
		{id: "D09", title: "something else than TLS on 443", tries: []try{
			{what: "an SSH banner to allowed.test:443", want: denied(), do: func(a *attempt) error { return a.raw("allowed.test:443", "SSH-2.0-") }},
			{what: "a request to allowed.test:443", want: denied(), do: func(a *attempt) error { return a.raw("allowed.test:443", "GET / HTTP/1.1\r\nX: ") }},
			tcp(server(66, 443), denied())}},
		{id: "D11", title: "another site of the same server, inside of TLS: a limit that remains", tries: []try{
			fetch("hello for good-cdn.test, Host: bad-cdn.test", reaches(server(80, 443)), request{url: "https://good-cdn.test/", host: "bad-cdn.test"})}},
		{id: "D14", title: "WebSocket", tries: []try{
			{what: "ws://allowed.test", want: reaches(server(10, 80)), do: func(a *attempt) error { return a.webSocket("allowed.test", false) }},
			{what: "wss://allowed.test", want: reaches(server(10, 443)), do: func(a *attempt) error { return a.webSocket("allowed.test", true) }},
			{what: "ws://evil.test", want: denied(), do: func(a *attempt) error { return a.webSocket("evil.test", false) }},
			{what: "ws to evil.test's address", want: denied(), do: func(a *attempt) error { return a.webSocket("198.51.100.66", false) }}}},
		{id: "D15", title: "HTTP/2", tries: []try{
			fetch("https://allowed.test/", reaches(server(10, 443)), request{url: "https://allowed.test/", h2: true}),
			fetch("without TLS, to evil.test's address", denied(), request{url: "http://198.51.100.66/", h2: true}),
			fetch("without TLS, to allowed.test", denied(), request{url: "http://allowed.test/", h2: true})}},
		{id: "D17", title: "a declared host that sends the client elsewhere", tries: []try{redirected("evil.test"), redirected("169.254.169.254"), redirected("198.51.100.66")}},
		{id: "D20", title: "odd requests to a declared host", tries: []try{
			head("CONNECT", denied("403"), "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\nX: TOKEN\r\n\r\n"),
			head("CONNECT to itself", denied("403"), "CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\nX: TOKEN\r\n\r\n"),
			head("GET ftp://", denied("403"), "GET ftp://allowed.test/TOKEN HTTP/1.1\r\n"+host+"\r\n"),
			head("GET file://", denied("403"), "GET file:///TOKEN HTTP/1.1\r\n"+host+"\r\n"),
			head("GET gopher://evil.test", denied("403"), "GET gopher://evil.test/TOKEN HTTP/1.1\r\n"+host+"\r\n"),
			head("GET http:evil.test/", denied("403"), "GET http:evil.test/TOKEN HTTP/1.1\r\n"+host+"\r\n"),
			head("OPTIONS *", reaches(server(10, 80)), "OPTIONS * HTTP/1.1\r\n"+host+"X: TOKEN\r\n\r\n"),
			head("TRACE", reaches(server(10, 80)), "TRACE /TOKEN HTTP/1.1\r\n"+host+"\r\n"),
			head("Upgrade: TLS/1.0 and a proxy's header", reaches(server(10, 80)), "GET /TOKEN HTTP/1.1\r\n"+host+"Connection: Upgrade\r\nUpgrade: TLS/1.0\r\nProxy-Connection: keep-alive\r\n\r\n"),
			head("GET http://allowed.test/ with another Host", reaches(server(10, 80)), "GET http://allowed.test/TOKEN HTTP/1.1\r\nHost: evil.test\r\n\r\n")}},
		{id: "F14", title: "heads of requests that are too large", tries: []try{
			head("a path of 1 MB", denied(), "GET /TOKEN"+strings.Repeat("a", 1<<20)+" HTTP/1.1\r\n"+host+"\r\n"),
			head("a path of 70 KB", denied(), "GET /TOKEN"+strings.Repeat("a", 70<<10)+" HTTP/1.1\r\n"+host+"\r\n"),
			head("a header of 1 MB", denied(), "GET /TOKEN HTTP/1.1\r\n"+host+"X: "+strings.Repeat("a", 1<<20)+"\r\n\r\n"),
			head("10,000 headers", denied(), "GET /TOKEN HTTP/1.1\r\n"+host+manyHeaders(10_000)+"\r\n")}},
	}
}

func manyHeaders(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "X-%d: a\r\n", i)
	}
	return b.String()
}

// toEvil is a plain request, for the control of one that no server takes.
func toEvil(a *attempt) error { return a.http("evil.test") }

// second is a try whose second answer counts.
func second(what string, w want, text string) try {
	return try{what: what, want: w, do: func(a *attempt) error { return a.raw80("allowed.test:80", text, "the first answer is read") }}
}

func redirected(to string) try {
	return try{what: "to " + to, want: denied(), do: func(a *attempt) error {
		return a.fetch(request{url: "http://allowed.test/redirect?host=" + to + "&rest=" + a.token[len("tk"):], follow: true})
	}}
}

// webSocket upgrades a connection and has the token sent back over it, twice.
func (a *attempt) webSocket(host string, secure bool) error {
	conn, err := new(net.Dialer).DialContext(a.ctx, "tcp", net.JoinHostPort(host, map[bool]string{false: "80", true: "443"}[secure]))
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := a.ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if secure {
		c := a.tlsConfig(host, request{})
		conn = tls.Client(conn, c)
	}
	fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", a.token, host)
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	for range 2 {
		if _, err := io.WriteString(conn, a.token); err != nil {
			return err
		}
		if _, err := io.ReadFull(r, make([]byte, len(a.token))); err != nil {
			return fmt.Errorf("the upgraded connection: %w", err)
		}
	}
	return nil
}

// encrypted makes a request whose hello says one name in the open and another one
// encrypted.
func (a *attempt) encrypted(host, outer, inner string) error {
	conn, err := new(net.Dialer).DialContext(a.ctx, "tcp", host+":443")
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := a.ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	config := echConfig(a.shared.ECHConfig, outer)
	c := a.tlsConfig(inner, request{})
	c.InsecureSkipVerify, c.MinVersion = true, tls.VersionTLS13
	c.EncryptedClientHelloConfigList = append([]byte{byte(len(config) >> 8), byte(len(config))}, config...)
	secure := tls.Client(conn, c)
	fmt.Fprintf(secure, "GET /%s HTTP/1.1\r\nHost: %s\r\n\r\n", a.token, inner)
	return a.response(bufio.NewReader(secure))
}

// oddHello sends a hello that is made by hand to allowed.test, with the token in
// it.
func oddHello(what string, h hello) try {
	return try{what: what, want: denied(), do: func(a *attempt) error {
		conn, err := new(net.Dialer).DialContext(a.ctx, "tcp", "allowed.test:443")
		if err != nil {
			return err
		}
		defer conn.Close()
		deadline, _ := a.ctx.Deadline()
		_ = conn.SetDeadline(deadline)
		if _, err := conn.Write(h.bytes(a.token)); err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 1))
		return err
	}}
}
