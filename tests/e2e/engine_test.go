package e2e

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// A socket that accepts and never answers must be given up within five seconds,
// by the real client too, and be named.
func TestSilentSocketIsGivenUp(t *testing.T) {
	u := newUser(t)
	socket := filepath.Join(u.path("home"), "docker.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close() // held open until the test ends
		}
	}()
	bounded(t, 5*time.Second, func() {
		r := u.runWith(nil, []string{"DOCKER_HOST=unix://" + socket}, "list")
		if r.code != 5 || !contains(r.stderr, socket) || !contains(r.stderr, "no answer within") {
			t.Errorf("want exit 5 and the socket named: %s", r)
		}
	})
}
