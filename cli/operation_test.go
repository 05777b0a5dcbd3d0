package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func TestOperationEndsItsOwnNoteAlone(t *testing.T) {
	// The end of a command, or of the job that another one replaces, must not remove the note of a command that has begun since: killed, that one would run its task a second time.
	a, lock := lockingApp(t)
	note := filepath.Join(filepath.Dir(lock), operationFile)
	d := &deployment{spec: spec.Spec{Name: "web", Mode: spec.Headless}}
	job := &engine.Container{ID: "job"}
	job.Config.Labels = map[string]string{compose.LabelName: "web"}
	if err := a.beginOperation("up", d, nil); err != nil {
		t.Fatal(err)
	}
	other := &app{dirs: a.dirs, runner: a.runner}
	if err := other.beginOperation("redeploy", d, job); err != nil {
		t.Fatal(err)
	}
	if a.endOperation("web"); !other.hasOperation("web") {
		t.Error("the note of another command was removed")
	}
	if !other.isReplaced(job) || other.isReplaced(&engine.Container{ID: "another", Config: job.Config}) {
		t.Error("what is replaced is not told")
	}
	if other.endOperation("web"); other.hasOperation("web") {
		t.Error("its own note is still there")
	}
	if err := os.WriteFile(note, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop := &app{dirs: a.dirs, runner: a.runner}
	if stop.endOperation("web"); stop.hasOperation("web") {
		t.Error("a command that ends whatever was begun has left it")
	}
}
