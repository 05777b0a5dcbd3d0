package panes

import (
	"context"
	"os"
	"testing"
)

// BenchmarkProcess is one read of a process, of which a look has one or two a pane.
func BenchmarkProcess(b *testing.B) {
	s := slashProc{"/proc"}
	for b.Loop() {
		if _, err := s.process(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkList is one question to tmux, of a server with 50 panes.
func BenchmarkList(b *testing.B) {
	s := newServer(b)
	for range 49 {
		s.must("new-window", "-d", "sh")
	}
	for b.Loop() {
		if _, err := s.tmux.Panes(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
