package e2e

import (
	"testing"
)

// A headless agent must do its work with its own tools and end with exit 0:
// the defaults of some agents refuse every write, do nothing, and exit 0.
func TestEveryAgentDoesItsWorkHeadless(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "pi", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			u := newUser(t)
			task := "model: write /workspace/own-tool.txt from the workspace\n" +
				"model: write /home/agent/own-tool.txt from the home\n" +
				"model: run echo from the shell > /workspace/shell.txt; cp /home/agent/own-tool.txt /workspace/home-copy.txt\n" +
				"model: say all three are written"
			args := append([]string{"up", u.name, "--agent", agent, "--mode", "headless", "--foreground", "--task", task}, u.withModel(agent)...)
			r := u.must(args...)
			if want := "all three are written"; !contains(r.stdout, want) {
				t.Errorf("the agent's answer %q is not on stdout: %s", want, r)
			}
			record := u.record()
			if record["outcome"] != "finished" || record["exit_code"] != 0.0 || record["agent"] != agent || record["agent_version"] == "" {
				t.Errorf("record: %v", record)
			}
			u.must("redeploy", u.name, "--mode", "idle")
			for file, content := range map[string]string{
				"own-tool.txt": "from the workspace", "home-copy.txt": "from the home", "shell.txt": "from the shell",
			} {
				if got := u.must("exec", u.name, "--", "cat", "/workspace/"+file).stdout; got != content+"\n" {
					t.Errorf("%s holds %q, want %q", file, got, content)
				}
			}
		})
	}
}
