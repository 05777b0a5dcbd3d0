package e2e

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// hardTasks are texts that a command line, a shell, Compose or an agent's own
// option parser would change.
var hardTasks = map[string]string{
	"option":     "--version",
	"dash":       "- fix it",
	"at":         "@x",
	"empty":      "",
	"not UTF-8":  "\r\n \xff\xfe \x01\x1b[31m\n\n",
	"a megabyte": megabyte("$HOME ${X} $$ \"q\" 'q' \\ `id` %s\r\n\U0001F433 é\n"),
}

// megabyte repeats text to a mebibyte, which is the longest task claude takes.
func megabyte(text string) string {
	whole := strings.Repeat(text, 1<<20/len(text))
	return whole + strings.Repeat("x", 1<<20-len(whole))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// A task must reach the agent's standard input byte for byte, whatever it
// holds, and its record must describe what was given.
func TestTaskReachesTheAgentByteForByte(t *testing.T) {
	u := newUser(t)
	u.withStub()
	verb := []string{"up", u.name, "--mode", "headless", "--env", "STUB_RUN=exit 9"}
	for name, task := range hardTasks {
		r := u.runWith(strings.NewReader(task), nil, append(verb, "--foreground", "--task", "-")...)
		verb = []string{"redeploy", u.name}
		if r.code != 9 {
			t.Fatalf("%s: %s", name, r)
		}
		got, ok := u.file("/home/agent/.claude/stub-stdin")
		if !ok || got != task {
			t.Errorf("%s: the agent got %d bytes %q, not %d bytes %q", name, len(got), clip(got), len(task), clip(task))
		}
		if argv, _ := u.file("/home/agent/.claude/stub-argv"); argv != "--permission-mode\nbypassPermissions\n-p\n" {
			t.Errorf("%s: the agent's arguments are %q", name, argv)
		}
		record := u.record()
		if record["task_sha256"] != digest(task) || record["task_bytes"] != float64(len(task)) {
			t.Errorf("%s: the record says %v bytes, digest %v", name, record["task_bytes"], record["task_sha256"])
		}
		// JSON holds text; a byte that is none is replaced there.
		if record["task"] != strings.ToValidUTF8(task, "\uFFFD") && name != "not UTF-8" {
			t.Errorf("%s: the record's task is %q", name, clip(fmt.Sprint(record["task"])))
		}
	}
}

// A task from a file and one typed as text must arrive as well, and a file's
// last line end must not be taken off.
func TestTaskFromFileAndText(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.write("project/task.md", "from a file\n")
	u.must("up", u.name, "--mode", "headless", "--foreground", "--task", "@task.md")
	if got, _ := u.file("/home/agent/.claude/stub-stdin"); got != "from a file\n" {
		t.Errorf("the agent got %q", got)
	}
	u.must("redeploy", u.name, "--foreground", "--task=--help")
	if got, _ := u.file("/home/agent/.claude/stub-stdin"); got != "--help" {
		t.Errorf("the agent got %q", got)
	}
}

// The real agent must take a task that looks like its option, and one of a
// mebibyte, for what they are: the text of the user, once.
func TestRealAgentGetsHardTasks(t *testing.T) {
	u := newUser(t)
	args := append([]string{"up", u.name, "--mode", "headless", "--foreground", "--task", "-"}, u.withModel("claude")...)
	for _, name := range []string{"option", "a megabyte"} {
		task := hardTasks[name]
		r := u.runWith(strings.NewReader(task), nil, args...)
		args = []string{"redeploy", u.name, "--foreground", "--task", "-"}
		if r.code != 0 || !contains(r.stdout, "done") {
			t.Fatalf("%s: %s", name, r)
		}
		var digests []string
		log := bufio.NewScanner(strings.NewReader(docker(t, "logs", u.container()+".model")))
		for log.Scan() {
			var request struct {
				API    string `json:"api"`
				Answer string `json:"answer"`
				Digest string `json:"text_sha256"`
			}
			if json.Unmarshal(log.Bytes(), &request) == nil && request.API == "anthropic" && request.Answer == "text" {
				digests = append(digests, request.Digest)
			}
		}
		if len(digests) != 1 || digests[0] != digest(task) {
			t.Errorf("%s: the model was sent %v, want once %s", name, digests, digest(task))
		}
		version, _ := u.record()["agent_version"].(string)
		if lock, err := os.ReadFile("../../images/agents/claude/package-lock.json"); err != nil || !contains(string(lock), `"version": "`+version+`"`) {
			t.Errorf("the record's agent_version %q is not in the lock: %v", version, err)
		}
	}
}
