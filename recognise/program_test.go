package recognise

import "testing"

func TestProgram(t *testing.T) {
	// A container's program must be the agent that the words after an image would be, and its arguments none.
	for _, c := range []struct {
		argv []string
		want string
	}{
		{args("claude --resume x"), "claude"},
		{args("/usr/bin/tini -- env A=b /opt/bin/codex"), "codex"},
		{[]string{"bash", "-lc", "sleep 1; exec pi"}, "pi"},
		{args("docker run img claude"), ""}, // in a container of its own
		{args("docker-entrypoint.sh claude"), ""},
		{args("sleep claude"), ""},
		{[]string{"sh", "-c", "echo claude"}, ""},
		{[]string{""}, ""},
		{nil, ""},
	} {
		agent, ok := Program(c.argv)
		if agent != c.want || ok != (c.want != "") {
			t.Errorf("%q: %q %t, want %q", c.argv, agent, ok, c.want)
		}
	}
}
