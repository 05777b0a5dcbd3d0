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
	took := time.Hour
	for tries := 0; tries < 3 && took > 5*time.Second; tries++ { // the machine may have other work meanwhile
		began := time.Now()
		r := u.runWith(nil, []string{"DOCKER_HOST=unix://" + socket}, "list")
		took = min(took, time.Since(began))
		if r.code != 5 || !contains(r.stderr, socket) || !contains(r.stderr, "no answer within") {
			t.Errorf("want exit 5 and the socket named: %s", r)
		}
	}
	if took > 5*time.Second {
		t.Errorf("it took %s at least", took)
	}
}
