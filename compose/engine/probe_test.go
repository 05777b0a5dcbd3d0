package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-container/agent-container/process"
)

func TestProbeIsBounded(t *testing.T) {
	// A container that never stops talking must not fill the host's memory, and one that says little be read whole.
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for script, want := range map[string]error{"exec yes": ErrTooMuch, "echo ready": nil} {
		if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := New(&process.Runner{}).Probe(context.Background(), "web", "look")
		if !errors.Is(err, want) || len(out) > maxProbe || want == nil && out != "ready\n" {
			t.Errorf("%s: %d bytes, %v", script, len(out), err)
		}
	}
}
