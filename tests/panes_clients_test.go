package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// secondClient attaches another client, to a session of its own, and returns the names
// of both.
func (d *desk) secondClient(session string) (one, two string) {
	d.t.Helper()
	d.must("tmux", "new-session", "-d", "-s", session, "-c", d.dir, "sh")
	d.must("tmux", "-L", "outer", "new-window", "-d", "tmux -L default attach -t "+session)
	d.until(func() string {
		one, two = d.must("tmux", "list-clients", "-t", "work", "-F", "#{client_name}"), d.must("tmux", "list-clients", "-t", session, "-F", "#{client_name}")
		if one == "" || two == "" {
			return "the clients are " + one + " and " + two
		}
		return ""
	})
	return one, two
}

// fails runs agent-container, which has to end with a code and say these words.
func (d *desk) fails(code int, words string, argv ...string) {
	d.t.Helper()
	out, err := d.try(append([]string{"agent-container"}, argv...)...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code || !strings.Contains(out, words) {
		d.t.Errorf("%q: %v, want exit code %d and %q\n%s", argv, err, code, words, out)
	}
}

func TestPanesNextOfTwoClients(t *testing.T) {
	// next must move the client that it is for, within that one's session, and no other; without a client that can be moved, nothing.
	d := newDesk(t, "panes:\n  notify_command: [\"true\"]\n")
	pane := d.agent()
	d.marked(pane, "claude podman")
	d.fails(4, "hint: attach one: tmux attach", "panes", "next")
	d.fails(4, "hint: see: tmux list-clients", "panes", "next", "--client", "nope")
	d.fails(4, "error: tmux has no client nope", "panes", "popup", "--client", "nope")
	d.shows(pane, "Esc to cancel")
	d.marked(pane, "claude podman waiting")
	for range 2 { // the first must not have gone there
		d.fails(4, "error: no client is attached to the tmux server", "panes", "next")
	}
	if at := d.must("tmux", "display-message", "-p", "-t", "work:", "#{window_index}"); at != "0" {
		t.Errorf("without a client the session is at window %s", at)
	}

	d.client()
	one, two := d.secondClient("other")
	d.must("tmux", "link-window", "-d", "-s", "work:1", "-t", "other:5")
	at := func(first, second string) {
		t.Helper()
		if got := d.must("tmux", "list-clients", "-F", "#{client_name} #{session_name}:#{window_index}"); !strings.Contains(got, one+" "+first) || !strings.Contains(got, two+" "+second) {
			t.Errorf("the clients are at\n%s\nwant %s and %s", got, first, second)
		}
	}
	var went struct {
		Data struct {
			Pane map[string]any `json:"pane"`
		} `json:"data"`
	}
	said := d.must("agent-container", "panes", "next", "--client", one, "--json")
	if err := json.Unmarshal([]byte(said), &went); err != nil || went.Data.Pane["pane"] != pane {
		t.Errorf("next: %v\n%s", err, said)
	}
	at("work:1", "other:0")
	d.must("tmux", "select-window", "-t", "work:0")
	d.must("agent-container", "panes", "next", "--client", two)
	at("work:0", "other:5")
	if said := d.must("agent-container", "panes", "next", "--client", two); !strings.Contains(said, "no other pane waits") {
		t.Errorf("a second next says %q", said)
	}
	at("work:0", "other:5")
}

func TestPopupScrolls(t *testing.T) {
	// In a popup that is smaller than the list, header and choice must be seen, no line be broken, and a pane that is gone be said there.
	d := newDesk(t, "panes:\n  notify_command: [\"true\"]\n")
	d.must("tmux", "rename-session", "-t", "work", "a-name-of-a-session-that-is-longer-than-the-half-of-80")
	var all []string
	for range 30 {
		all = append(all, d.must("tmux", "new-window", "-d", "-P", "-F", "#{pane_id}", "-c", d.dir, "podman", "run", "img", "claude"))
	}
	d.shows(all[19], "Esc to cancel")
	d.marked(all[19], "claude podman waiting")
	d.marked(all[29], "claude podman")
	d.must("tmux", "-L", "outer", "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "tmux -L default attach")
	d.must("tmux", "-L", "outer", "set", "-g", "status", "off")
	client := ""
	d.until(func() string {
		if client = d.must("tmux", "list-clients", "-F", "#{client_name}"); client == "" {
			return "no client is attached"
		}
		return ""
	})
	popup := func() { d.must("tmux", "run-shell", "-b", "agent-container panes popup --client '"+client+"'") }
	key := func(name string) { d.must("tmux", "-L", "outer", "send-keys", name) }

	popup()
	d.screenHas("│> " + all[19])
	screen := d.screen()
	for _, want := range []string{"│  PANE  WHERE ", "20 of 30   up, down: choose   Enter: go there   q: close", all[18], all[20], "…", ":20.0  claude  podman  waiting│"} {
		if !strings.Contains(screen, want) {
			t.Errorf("the popup does not show %q:\n%s", want, screen)
		}
	}
	for line := range strings.Lines(screen) {
		if strings.HasPrefix(strings.TrimSpace(line), "│") && !strings.Contains(line, "│  ") && !strings.Contains(line, "│> %") && !strings.Contains(line, "20 of 30") {
			t.Errorf("a line is broken: %q\n%s", line, screen)
		}
	}
	for range 15 {
		key("k")
	}
	d.screenHas("│> " + all[4])
	d.must("tmux", "kill-pane", "-t", all[4])
	key("Enter")
	d.screenHas("error: tmux has no pane " + all[4])
	d.screenHas("│> " + all[5])
	key("Enter")
	d.until(func() string {
		if at := d.must("tmux", "display-message", "-p", "-c", client, "#{pane_id}"); at != all[5] {
			return "the client is at " + at + ", want " + all[5]
		}
		return ""
	})

	d.must("tmux", "-L", "outer", "set", "-g", "window-size", "manual")
	d.must("tmux", "-L", "outer", "resize-window", "-x", "20", "-y", "6")
	d.until(func() string {
		if size := d.must("tmux", "list-clients", "-F", "#{client_width}x#{client_height}"); size != "20x6" {
			return "the client is " + size
		}
		return ""
	})
	popup()
	d.screenHas("│> " + all[19] + "   …80:20.0  │")
	if screen := d.screen(); !strings.Contains(screen, "│  PANE  WHERE") || !strings.Contains(screen, all[18]) {
		t.Errorf("in 20x6 the popup shows\n%s", screen)
	}
	d.must("tmux", "-L", "outer", "resize-window", "-x", "15", "-y", "6")
	d.until(func() string {
		if screen := d.screen(); !strings.Contains(screen, "│> "+all[19]+"   …80:2│") {
			return "in 15x6 the popup shows\n" + screen
		}
		return ""
	})
}

func TestPopupInside(t *testing.T) {
	// On a terminal the list must leave no trace, whatever ends it; it must say that nobody watches, and what went wrong, and wait for a key.
	d := newDesk(t, "# none\n")
	outer := func(argv ...string) string { return d.must(append([]string{"tmux", "-L", "outer"}, argv...)...) }
	outer("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "12", "-c", d.dir, "sh") // nobody watches this server
	begin := func() {
		t.Helper()
		outer("send-keys", "-l", "clear; echo here$((1+1)); sh -c 'echo $$ >pid; exec agent-container panes popup --inside'; echo end=$?\n")
		d.screenHas("q: close")
		if state := outer("display-message", "-p", "#{alternate_on} #{cursor_flag}"); state != "1 0" {
			t.Errorf("alternate screen and cursor are %s", state)
		}
	}
	over := func(code int) {
		t.Helper()
		d.screenHas(fmt.Sprintf("end=%d", code))
		if state, screen := outer("display-message", "-p", "#{alternate_on} #{cursor_flag}"), d.screen(); state != "0 1" || !strings.HasPrefix(screen, "here2\n") || strings.Contains(screen, "q: close") {
			t.Errorf("after the end alternate screen and cursor are %s, the screen\n%s", state, screen)
		}
	}
	begin()
	d.screenHas("no pane has an agent")
	d.screenHas("nobody watches this tmux server; run: tmux run-shell -b 'agent-container panes watch'")
	outer("set-option", "-g", "window-size", "manual")
	outer("resize-window", "-x", "100", "-y", "4")
	d.until(func() string {
		if screen := d.screen(); strings.Contains(screen, "q: close") || !strings.Contains(screen, "nobody watches") {
			return "in four lines the list is\n" + screen
		}
		return ""
	})
	outer("resize-window", "-x", "100", "-y", "12")
	d.screenHas("q: close")
	outer("send-keys", "q")
	over(0)
	for signal, code := range map[string]int{"TERM": 143, "INT": 130, "HUP": 143} {
		begin()
		pid, err := os.ReadFile(d.dir + "/pid")
		if err != nil {
			t.Fatal(err)
		}
		d.must("kill", "-"+signal, strings.TrimSpace(string(pid)))
		over(code)
	}
	outer("set-option", "-p", "@agent", "claude")
	begin()
	d.screenHas("> %0")
	outer("send-keys", "Enter")
	d.screenHas("error: no client is attached to the tmux server")
	d.screenHas("hint: attach one: tmux attach")
	outer("send-keys", "q")
	over(0)
}

func TestPopupTrouble(t *testing.T) {
	// A popup that cannot begin must show why until a key is pressed; its command must end with the same code, and not say it again.
	d := newDesk(t, "# none\n")
	d.client()
	d.must("tmux", "set-environment", "-g", "AGENT_CONTAINER_STATE_DIR", d.dir+"/run/none") // run is a file
	type end struct {
		said string
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		said, err := d.try("agent-container", "panes", "popup")
		ended <- end{said, err}
	}()
	d.screenHas("│error: ")
	d.must("tmux", "-L", "outer", "send-keys", "x")
	var exit *exec.ExitError
	if e := <-ended; !errors.As(e.err, &exit) || exit.ExitCode() != 1 || e.said != "" {
		t.Errorf("popup ends with %v and says %q", e.err, e.said)
	}
	d.until(func() string {
		if screen := d.screen(); strings.Contains(screen, "error: ") {
			return "the popup is still there:\n" + screen
		}
		return ""
	})
}
