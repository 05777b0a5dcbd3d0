package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The demo must work from a path with a space and again and again, show the
// agent's answer, its file and its record, and leave nothing behind.
func TestDemo(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "a folder", "with spaces")
	for _, part := range []string{"tests/modelserver", "go.mod", "go.sum", "build/agent-container", "tests/demo.sh"} {
		if out, err := exec.Command("mkdir", "-p", filepath.Join(root, filepath.Dir(part))).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if out, err := exec.Command("cp", "-r", filepath.Join("../..", part), filepath.Join(root, filepath.Dir(part))).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for range 2 {
		cmd := exec.Command(filepath.Join(root, "tests", "demo.sh"))
		// Without a key the scripted server answers, whoever runs the tests.
		cmd.Env = append(outerEnvironment(), "ANTHROPIC_API_KEY=")
		r := finish(t, cmd)
		for _, part := range []string{"a scripted model server answers", "I wrote GREETING.md and committed it.", "exit code: 0",
			"Hello from an agent in a container.", "Add a greeting", `"outcome": "finished"`} {
			if r.code != 0 || !contains(r.stdout, part) {
				t.Fatalf("want exit 0 and %q: %s", part, r)
			}
		}
	}
	if left := docker(t, "ps", "--all", "--quiet", "--filter", "name=^agent-container-demo-"); left != "" {
		t.Errorf("the demo left containers: %s", left)
	}
	if _, err := os.Stat(filepath.Join(root, "build", "demo")); err != nil {
		t.Error(err)
	}
}
