package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The environment that these tests set: bytes that shells, Compose and tmux
// would each treat in a way of their own.
var oddEnvironment = map[string]string{
	"PLAIN":    "value",
	"EMPTY":    "",
	"SPACES":   "  a  b ",
	"DOLLARS":  "$HOME ${PATH} $$ $(id)",
	"QUOTES":   `"double" 'single' \backslash`,
	"NEWLINES": "one\ntwo\n",
	"UNICODE":  "žluťoučký kůň 🐎",
	"EQUALS":   "a=b=c",
}

// A job, an exec, a session over ssh and a tmux window must all have the same
// environment: the container's own, the agent's and the user's. Nothing of the
// client's counts, not even its locale.
func TestOneEnvironmentEverywhere(t *testing.T) {
	flags := []string{"--env", "STUB_RUN=sleep 600"}
	for name, value := range oddEnvironment {
		flags = append(flags, "--env", name+"="+value)
	}
	for _, mode := range []string{"headless", "interactive"} {
		t.Run(mode, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			args := append([]string{"up", u.name, "--mode", mode, "--ssh"}, flags...)
			if mode == "headless" {
				args = append(args, "--task", "wait")
			}
			u.must(args...)
			exec := environmentOf(u.must("exec", u.name, "--", "env", "-0").stdout)
			for name, value := range oddEnvironment {
				if !slices.Contains(exec, name+"="+value) {
					t.Errorf("exec does not have %s=%q", name, value)
				}
			}

			var agent []string
			eventually(t, 10*time.Second, func() string {
				r := u.run("exec", u.name, "--", "sh", "-c", `cat "/proc/$(pgrep -o -f '/opt/agent/bin/claude')/environ"`)
				if r.code != 0 {
					return r.String()
				}
				agent = environmentOf(r.stdout)
				return ""
			})
			sameEnvironment(t, "the agent", agent, exec)
			client := []string{"LANG=de_DE.UTF-8", "LC_ALL=cs_CZ.ISO-8859-2", "PATH=" + os.Getenv("PATH")}
			for where, r := range map[string]result{
				"attach":          u.runWith(nil, client, "attach", u.name, "--", "env", "-0"),
				"attach via exec": u.runWith(nil, client, "attach", u.name, "--via", "exec", "--", "env", "-0"),
				"ssh by hand":     u.ssh([]string{"-o", "SendEnv=*", "-o", "SetEnv=LANG=de_DE.UTF-8 LC_ALL=C"}, "env -0"),
			} {
				if r.code != 0 {
					t.Errorf("%s: %s", where, r)
				}
				sameEnvironment(t, where, environmentOf(r.stdout), exec)
			}
			if mode == "headless" {
				return
			}

			// A window that somebody opens, with a command and with a login shell.
			u.must("exec", u.name, "--", "tmux", "new-window", "-d", "-t", "=main:", "env -0 >/tmp/window && mv /tmp/window /tmp/window-env")
			u.must("exec", u.name, "--", "tmux", "send-keys", "-t", "=main:shell", "env -0 >/tmp/shell && mv /tmp/shell /tmp/shell-env", "Enter")
			for _, file := range []string{"/tmp/window-env", "/tmp/shell-env"} {
				eventually(t, 10*time.Second, func() string {
					r := u.run("exec", u.name, "--", "cat", file)
					if r.code != 0 {
						return r.String()
					}
					sameEnvironment(t, file, environmentOf(r.stdout), exec)
					return ""
				})
			}
		})
	}
}

// environmentOf sorts the output of env -0, without what a shell, tmux or sshd
// says of itself.
func environmentOf(text string) []string {
	var list []string
	for _, entry := range strings.Split(strings.TrimSuffix(text, "\x00"), "\x00") {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "_", "LS_COLORS", "OLDPWD", "PWD", "SHLVL", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TMUX", "TMUX_PANE",
			"SSH_CLIENT", "SSH_CONNECTION", "SSH_ORIGINAL_COMMAND":
			continue
		}
		list = append(list, entry)
	}
	slices.Sort(list)
	return list
}

func sameEnvironment(t *testing.T, where string, got, want []string) {
	t.Helper()
	for _, e := range got {
		if !slices.Contains(want, e) {
			t.Errorf("%s has %q, exec has not", where, e)
		}
	}
	for _, e := range want {
		if !slices.Contains(got, e) {
			t.Errorf("exec has %q, %s has not", e, where)
		}
	}
}
