package recognise

import "testing"

// An agent on the host must be known by its own executable, or as the script of its interpreter, and by nothing else.
func TestHost(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"claude"}, "claude"},
		{[]string{"/usr/local/bin/claude", "--resume", "x"}, "claude"},
		{[]string{"node", "/usr/lib/node_modules/.bin/pi"}, "pi"},
		{[]string{"/bin/sh", "/opt/bin/codex", "exec"}, "codex"},
		{[]string{"node", "--inspect", "claude"}, ""},
		{[]string{"bash", "-c", "claude"}, ""},
		{[]string{"node", "server.js", "claude"}, ""},
		{[]string{"vim", "claude"}, ""},
		{[]string{"claude-code"}, ""},
		{[]string{"Claude"}, ""},
		{[]string{"cat", "/usr/bin/claude"}, ""},
		{[]string{"docker", "run", "img", "claude"}, ""},
		{[]string{"node"}, ""},
		{[]string{""}, ""},
		{nil, ""},
	} {
		if got, ok := Host(c.argv); got != c.want || ok != (c.want != "") {
			t.Errorf("Host(%q) = %q, %v; want %q", c.argv, got, ok, c.want)
		}
	}
}
