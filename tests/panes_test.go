package tests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// desk is a tmux server with a watcher that its configuration has started, and a
// client of it that stands in a pane of a second server, where its screen can be read.
type desk struct {
	t   *testing.T
	dir string
	env []string
}

// hidden is a secret in the arguments of what runs in the panes.
const hidden = "hunter2"

func newDesk(t *testing.T, settings string) *desk {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	dir, err := os.MkdirTemp("", "desk") // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	// "podman run ..." is then a shell that runs the script "run".
	if err := os.Symlink("/bin/sh", filepath.Join(dir, "podman")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"run":                  "while read -r line && test \"$line\" != end; do :; done\n",
		"tmux.conf":            "run-shell -b 'agent-container -v panes watch 2>" + dir + "/log'\n",
		"notify":               "#!/bin/sh\nenv | grep ^AGENT_CONTAINER_PANE | sort >>" + dir + "/told\n",
		"config/settings.yaml": strings.ReplaceAll(settings, "DIR", dir),
		// What a project says must not matter to what watches all panes.
		".agent-container/settings.yaml": "panes:\n  notify_command: [touch, mark]\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := &desk{t: t, dir: dir}
	d.env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir, "TMUX=", "TMUX_PANE=", "TMUX_TMPDIR="+dir, "PS1=$ ", "ENV=", "TERM=screen",
		"AGENT_CONTAINER_CONFIG_DIR="+dir+"/config", "AGENT_CONTAINER_STATE_DIR="+dir+"/state", "AGENT_CONTAINER_DATA_DIR="+dir+"/data", "GORACE=atexit_sleep_ms=0", "LC_ALL=C.UTF-8")
	t.Cleanup(func() { d.try("tmux", "kill-server"); d.try("tmux", "-L", "outer", "kill-server") })
	d.must("tmux", "-f", dir+"/tmux.conf", "new-session", "-d", "-s", "work", "-x", "100", "-y", "30", "-c", dir, "sh")
	return d
}

func (d *desk) try(argv ...string) (string, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = d.env, d.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (d *desk) must(argv ...string) string {
	d.t.Helper()
	out, err := d.try(argv...)
	if err != nil {
		d.t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return strings.TrimSpace(out)
}

// agent makes a pane in which claude runs in a container of podman.
func (d *desk) agent() string {
	d.t.Helper()
	return d.must("tmux", "new-window", "-d", "-P", "-F", "#{pane_id}", "-c", d.dir, "podman", "run", "-e", "TOKEN="+hidden, "img", "claude")
}

// shows puts lines on a pane's screen, as if its agent had drawn them.
func (d *desk) shows(pane string, lines ...string) {
	d.t.Helper()
	for _, line := range lines {
		d.must("tmux", "send-keys", "-t", pane, "-l", line, ";", "send-keys", "-t", pane, "Enter")
	}
}

// until waits until what says no complaint.
func (d *desk) until(complaint func() string) {
	d.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		said := complaint()
		if said == "" {
			return
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(d.dir + "/log")
			d.t.Fatalf("%s\nthe watcher's log: %s", said, log)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// marked waits for the marks of a pane.
func (d *desk) marked(pane, want string) {
	d.t.Helper()
	d.until(func() string {
		if got := d.must("tmux", "display-message", "-p", "-t", pane, "#{@agent} #{@agent_container} #{@agent_state}"); got != want {
			return pane + " is marked " + got + ", want " + want
		}
		return ""
	})
}

// client attaches a client, whose screen is the pane of the outer server.
func (d *desk) client() {
	d.t.Helper()
	d.must("tmux", "-L", "outer", "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", "tmux -L default attach -t work")
	d.until(func() string {
		if d.must("tmux", "list-clients") == "" {
			return "no client is attached"
		}
		return ""
	})
}

func (d *desk) screen() string { return d.must("tmux", "-L", "outer", "capture-pane", "-p") }

func (d *desk) screenHas(text string) {
	d.t.Helper()
	d.until(func() string {
		if screen := d.screen(); !strings.Contains(screen, text) {
			return "the client does not show " + text + ":\n" + screen
		}
		return ""
	})
}

// keepsWritten keeps what the client writes to its screen from now on, as a message that
// lasts some seconds.
func (d *desk) keepsWritten() {
	d.t.Helper()
	d.must("tmux", "-L", "outer", "pipe-pane", "cat >"+d.dir+"/written")
}

// unwritten is a complaint where the client has not written a text since keepsWritten.
func (d *desk) unwritten(text string) string {
	written, _ := os.ReadFile(d.dir + "/written")
	if strings.Contains(string(written), text) {
		return ""
	}
	return "the client has not shown " + text + ": " + strconv.Quote(string(written))
}

func TestPanes(t *testing.T) {
	// The one line in tmux.conf must mark panes, tell of one that waits, list it, go to it and offer it in a popup; nothing may hold a secret of the arguments.
	d := newDesk(t, "panes:\n  notify_command: [DIR/notify]\n")
	d.client()
	one, two := d.agent(), d.agent()
	d.marked(one, "claude podman")
	d.shows(two, "esc to interrupt")
	d.marked(two, "claude podman working")
	d.shows(two, "-", "-", "-", "Esc to cancel")
	d.marked(two, "claude podman waiting")
	d.until(func() string {
		told, _ := os.ReadFile(d.dir + "/told")
		want := "AGENT_CONTAINER_PANE=" + two + "\nAGENT_CONTAINER_PANE_AGENT=claude\nAGENT_CONTAINER_PANE_RUNTIME=podman\nAGENT_CONTAINER_PANE_STATE=waiting\nAGENT_CONTAINER_PANE_WHERE=work:2.0\n"
		if string(told) != want {
			return "told was " + string(told)
		}
		return ""
	})

	var list struct {
		Data struct {
			Panes []map[string]any `json:"panes"`
		} `json:"data"`
	}
	said := d.must("agent-container", "panes", "list", "--json")
	if err := json.Unmarshal([]byte(said), &list); err != nil || len(list.Data.Panes) != 2 || list.Data.Panes[1]["state"] != "waiting" || list.Data.Panes[1]["runtime"] != "podman" {
		t.Errorf("panes list: %v\n%s", err, said)
	}
	said = d.must("agent-container", "-v", "panes", "list")
	if !regexp.MustCompile(`(?m)^` + two + ` +work:2\.0 +claude +podman +waiting$`).MatchString(said) {
		t.Errorf("panes list:\n%s", said)
	}
	everything := said + d.must("agent-container", "-v", "detect", "--pane", one) + d.must("tmux", "show-options", "-p", "-t", two)

	d.must("tmux", "run-shell", "agent-container panes next")
	d.until(func() string {
		if at := d.must("tmux", "display-message", "-p", "#{pane_id}"); at != two {
			return "the client is at " + at
		}
		return ""
	})
	d.must("tmux", "select-window", "-t", "work:0")
	client := d.must("tmux", "list-clients", "-F", "#{client_name}")
	d.must("tmux", "run-shell", "-b", "agent-container panes popup --client '"+client+"'")
	d.screenHas("> " + two)
	everything += d.screen()
	d.must("tmux", "-L", "outer", "send-keys", "k")
	d.screenHas("> " + one)
	d.must("tmux", "-L", "outer", "send-keys", "Enter")
	d.until(func() string {
		if at := d.must("tmux", "display-message", "-p", "#{pane_id}"); at != one {
			return "the client is at " + at
		}
		return ""
	})

	d.must("agent-container", "panes", "next", "--client", client)
	if at := d.must("tmux", "display-message", "-p", "-c", client, "#{pane_id}"); at != two {
		t.Errorf("with --client the client is at %s", at)
	}

	again := d.must("agent-container", "panes", "watch")
	if !strings.Contains(again, "this tmux server is watched already, by pid ") {
		t.Errorf("a second watcher says %q", again)
	}
	log, _ := os.ReadFile(d.dir + "/log")
	if everything += again + string(log); strings.Contains(everything, hidden) {
		t.Errorf("a secret of the arguments is shown:\n%s", everything)
	}
	d.shows(one, "end")
	d.shows(two, "end")
	d.until(func() string {
		if said := d.must("agent-container", "panes", "list"); !strings.Contains(said, "no pane has an agent") {
			return "after the ends of the agents there are\n" + said
		}
		return ""
	})
}

func TestPaneMessage(t *testing.T) {
	// Without a command of the user's, the client must show a message of a pane that waits.
	d := newDesk(t, "# none\n")
	d.client()
	d.keepsWritten()
	pane := d.agent()
	d.shows(pane, "Esc to cancel")
	d.until(func() string {
		if log := d.must("tmux", "show-messages"); !strings.Contains(log, " message: claude is waiting: work:1.0") {
			return "tmux has not given the message:\n" + log
		}
		return d.unwritten("claude is waiting: work:1.0")
	})
}
