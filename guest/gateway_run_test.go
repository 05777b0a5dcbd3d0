package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-container/agent-container/spec"
)

func TestKeptResolvers(t *testing.T) {
	// What the gateway has read once must stay over its starts, whatever somebody has written into the engine's file since; an emptied copy is made anew.
	dir := t.TempDir()
	engines := filepath.Join(dir, "engines")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(want string) {
		t.Helper()
		path, err := keptResolvers(dir, engines)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := keptResolvers(dir, engines); err == nil {
		t.Error("no resolv.conf was taken for one")
	}
	write(engines, "first")
	read("first")
	write(engines, "second")
	read("first")
	write(filepath.Join(dir, spec.FileResolvers), "")
	read("second")
}
