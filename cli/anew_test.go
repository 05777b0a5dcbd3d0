package cli

import (
	"archive/tar"
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

func TestKeptFill(t *testing.T) {
	// Of what an agent left in the run directory only regular files may be kept, at their own place and the agent's own; the status of the last start may not.
	var from bytes.Buffer
	w := tar.NewWriter(&from)
	for _, h := range []tar.Header{
		{Name: "agent-container/", Typeflag: tar.TypeDir, Mode: 0o777},
		{Name: "agent-container/task", Mode: 0o600},
		{Name: "agent-container/" + spec.FileConsumed, Mode: 0o644},
		{Name: "agent-container/config/run", Mode: 0o6755, Uid: 0, Gid: 0},
		{Name: "agent-container/" + spec.FileStatus, Mode: 0o600},
		{Name: "agent-container/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		{Name: "agent-container/hard", Typeflag: tar.TypeLink, Linkname: "agent-container/task"},
		{Name: "agent-container/fifo", Typeflag: tar.TypeFifo},
		{Name: "agent-container/device", Typeflag: tar.TypeChar},
		{Name: "agent-container/../etc/passwd", Mode: 0o600},
		{Name: "agent-container/../../etc/passwd", Mode: 0o600},
		{Name: "/agent-container/absolute", Mode: 0o600},
		{Name: "agent-container-secrets/environment", Mode: 0o600},
	} {
		content := ""
		if h.Typeflag == 0 {
			content = "of " + h.Name
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var k keptFill
	if err := k.read(tar.NewReader(&from)); err != nil {
		t.Fatal(err)
	}
	var to bytes.Buffer
	w = tar.NewWriter(&to)
	if err := k.write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, name := range []string{"task", spec.FileConsumed, "config/run"} {
		want["run/agent-container/"+name] = "of agent-container/" + name
	}
	if d := cmp.Diff(want, contents(t, &to)); d != "" {
		t.Error(d)
	}
}
