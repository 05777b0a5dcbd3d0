package gateway

import (
	"bytes"
	"crypto/tls"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// A hello must be read whole in however many records it comes, and not a byte of
// what was read may be lost.
func TestReadHello(t *testing.T) {
	for about, c := range map[string]struct {
		hello hello
		want  string // "": an error, or no name
	}{
		"one record": {hello{names: []string{"allowed.test"}}, "allowed.test"}, "records of a byte": {hello{names: []string{"allowed.test"}, pieces: 1}, "allowed.test"}, "records of 20 bytes": {hello{names: []string{"allowed.test"}, pieces: 20}, "allowed.test"},
		"a long one": {hello{names: []string{"allowed.test"}, padding: 15_000}, "allowed.test"}, "one that is too long": {hello{names: []string{"allowed.test"}, padding: 40_000}, ""},
		"no name": {hello{}, ""}, "two names": {hello{names: []string{"allowed.test", "evil.test"}}, ""}, "SSLv2": {hello{ssl2: true}, ""},
	} {
		sent := append(c.hello.bytes("tk0123456789abcdef"), "more"...)
		for _, slow := range []bool{false, true} {
			in := bytes.NewReader(sent)
			from := io.Reader(in)
			if slow {
				from = iotest.OneByteReader(in)
			}
			read, server, err := readHello(from)
			if server != c.want || (err == nil) != (c.want != "") && about != "no name" {
				t.Errorf("%s, slow %t: %q, %v", about, slow, server, err)
			}
			if rest := sent[len(sent)-in.Len():]; !bytes.Equal(append(read, rest...), sent) {
				t.Errorf("%s, slow %t: %d bytes of %d were read and %d are left", about, slow, len(read), len(sent), len(rest))
			}
		}
	}
}

// Whatever a client sends must be kept as it came, within the bound; what follows a
// hello must not change what the hello says; and the server that it names must be
// the one that crypto/tls reads from the bytes as they come.
func FuzzReadHello(f *testing.F) {
	for _, h := range []hello{{names: []string{"allowed.test"}}, {names: []string{"allowed.test"}, pieces: 20}, {names: []string{"a", "b"}}, {}, {ssl2: true}, {names: []string{strings.Repeat("a", 300)}}} {
		f.Add(h.bytes("tk0123456789abcdef"))
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{22, 3, 1, 0, 0, 22, 3, 1, 0, 1, 1})
	f.Add([]byte{22, 3, 1, 0, 1, 1, 21, 3, 1, 0, 2, 1, 0})
	f.Fuzz(func(t *testing.T, sent []byte) {
		read, server, err := readHello(bytes.NewReader(sent))
		if len(read) > maxHello || !bytes.HasPrefix(sent, read) {
			t.Fatalf("%d bytes were kept of %d", len(read), len(sent))
		}
		if _, slow, slowErr := readHello(iotest.OneByteReader(bytes.NewReader(sent))); slow != server || (slowErr == nil) != (err == nil) {
			t.Errorf("%q, %v; byte by byte %q, %v", server, err, slow, slowErr)
		}
		if want, found := plainHello(sent); found != (err == nil) || server != want {
			t.Errorf("%q, %v; crypto/tls reads %q, %t", server, err, want, found)
		}
		if err != nil {
			return
		}
		if _, again, err := readHello(bytes.NewReader(append(bytes.Clone(sent), "more"...))); err != nil || again != server {
			t.Errorf("%q is %q with more behind it: %v", server, again, err)
		}
	})
}

// plainHello reads a hello with nothing but crypto/tls.
func plainHello(sent []byte) (server string, found bool) {
	_ = tls.Server(listening{io.LimitReader(bytes.NewReader(sent), maxHello)}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			server, found = h.ServerName, true
			return nil, errHelloRead
		},
	}).Handshake()
	return server, found
}
