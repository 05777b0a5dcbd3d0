package panes

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// client attaches a client to a session and returns its name.
func (s *server) client(session string) string {
	s.t.Helper()
	cmd := exec.Command("tmux", "-u", "-S", s.tmux.Socket, "attach", "-t", session)
	cmd.Env = append(slices.Clone(s.tmux.Runner.Env), "TERM=screen")
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		s.t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, screen) }()
	s.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = screen.Close() })
	var name string
	s.until(func() string {
		if name = s.must("list-clients", "-t", session, "-F", "#{client_name}"); name == "" {
			return "no client is attached to " + session
		}
		return ""
	})
	return name
}

// linked is a pane whose window is work:1 and other:5, and a client of each of these
// sessions; each shows another window.
func (s *server) linked() (pane, one, two string) {
	s.t.Helper()
	pane = s.pane()
	s.must("new-session", "-d", "-s", "other", "-x", "80", "-y", "24", "sh")
	s.must("link-window", "-d", "-s", "work:1", "-t", "other:5")
	return pane, s.client("work"), s.client("other")
}

// at is what a client shows.
func (s *server) at(client string) string {
	for line := range strings.Lines(s.must("list-clients", "-F", "#{session_name}:#{window_index} #{client_name}")) {
		if where, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == client {
			return where
		}
	}
	return "nowhere"
}

func (s *server) jump(client, pane string) {
	s.t.Helper()
	c, err := s.tmux.Client(context.Background(), client)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.tmux.Jump(context.Background(), c, pane); err != nil {
		s.t.Fatal(err)
	}
}

// A jump must go to the pane in the client's own session where that has it, else to the session that has it, and leave clients of other sessions where they are.
func TestJumpOfTwoClients(t *testing.T) {
	s := newServer(t)
	pane, one, two := s.linked()
	for _, c := range []struct{ client, one, two string }{{one, "work:1", "other:0"}, {two, "work:1", "other:5"}} {
		s.jump(c.client, pane)
		if s.at(one) != c.one || s.at(two) != c.two {
			t.Errorf("after a jump of %s the clients are at %s and %s, want %s and %s", c.client, s.at(one), s.at(two), c.one, c.two)
		}
	}
	s.must("split-window", "-d", "-t", "work:0", "sh")
	behind := s.must("display-message", "-p", "-t", "work:0.1", "#{pane_id}")
	s.jump(strings.TrimPrefix(two, "/dev/"), behind)
	if c, err := s.tmux.Client(context.Background(), two); err != nil || s.at(two) != "work:0" || c.Pane != behind {
		t.Errorf("the client is at %s, pane %s, %v; want work:0, pane %s", s.at(two), c.Pane, err, behind)
	}
}

// A jump that cannot be made must move nothing: the pane is gone, or the client is.
func TestJumpToNothing(t *testing.T) {
	s := newServer(t)
	pane, one, two := s.linked()
	ctx := context.Background()
	c, err := s.tmux.Client(ctx, one)
	if err != nil {
		t.Fatal(err)
	}
	var noPane *NoPaneError
	if err := s.tmux.Jump(ctx, c, "%99"); !errors.As(err, &noPane) {
		t.Errorf("to a pane that is gone: %v", err)
	}
	var noClient *NoClientError
	if c, err := s.tmux.Client(ctx, "nope"); !errors.As(err, &noClient) || noClient.Name != "nope" {
		t.Errorf("there is a client %v, %v", c, err)
	}
	gone := c
	gone.Name = "/dev/pts/nope"
	if err := s.tmux.Jump(ctx, gone, pane); err == nil {
		t.Error("a client that is gone jumps")
	}
	if s.at(one) != "work:0" || s.at(two) != "other:0" {
		t.Errorf("the clients are at %s and %s", s.at(one), s.at(two))
	}
}

// Without a name the client must be the one that tmux takes for the current one, and an error where there is none.
func TestCurrentClient(t *testing.T) {
	s := newServer(t)
	ctx := context.Background()
	var none *NoClientError
	if c, err := s.tmux.Client(ctx, ""); !errors.As(err, &none) || none.Name != "" {
		t.Errorf("there is a client %v, %v", c, err)
	}
	pane, one, _ := s.linked()
	s.must("switch-client", "-c", one, "-t", pane)
	current := s.must("display-message", "-p", "#{client_name} #{pane_id} #{client_width}x#{client_height}")
	c, err := s.tmux.Client(ctx, "")
	if err != nil || !strings.HasPrefix(current, c.Name+" "+c.Pane+" ") || c.Width != 80 || c.Height != 24 {
		t.Errorf("the client is %+v, %v; tmux says %s", c, err, current)
	}
}

// Every client must get the message, with the place of the pane in its own session.
func TestMessageOfTwoClients(t *testing.T) {
	s := newServer(t)
	pane, one, two := s.linked()
	if err := s.tmux.Message(context.Background(), Pane{ID: pane, Agent: "claude", State: "waiting"}); err != nil {
		t.Fatal(err)
	}
	log := s.must("show-messages", "-t", one)
	for _, want := range []string{one + " message: claude is waiting: work:1.0", two + " message: claude is waiting: other:5.0"} {
		if !strings.Contains(log, want) {
			t.Errorf("tmux has no message %q:\n%s", want, log)
		}
	}
}

// A pane of a linked window must be listed once, and be in view where any of its sessions shows it.
func TestLinkedPaneInView(t *testing.T) {
	s := newServer(t)
	pane, one, two := s.linked()
	for _, c := range []struct {
		client, window string
		want           bool
	}{{one, "work:0", false}, {two, "other:5", true}, {one, "work:1", true}, {two, "other:0", true}, {one, "work:0", false}} {
		s.must("switch-client", "-c", c.client, "-t", c.window)
		all, err := s.tmux.Panes(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var found []Pane
		for _, p := range all {
			if p.ID == pane {
				found = append(found, p)
			}
		}
		if len(found) != 1 || found[0].InView != c.want {
			t.Errorf("with %s shown %s is listed as %+v, want in view %v", c.window, pane, found, c.want)
		}
	}
}

// On a server without a session, as there is one while it reads its configuration, there must be no client, and no error of tmux.
func TestNoClientWithoutSessions(t *testing.T) {
	s := newServer(t)
	s.must("set-option", "-s", "exit-empty", "off", ";", "kill-session", "-t", "work")
	var none *NoClientError
	if c, err := s.tmux.Client(context.Background(), ""); !errors.As(err, &none) {
		t.Errorf("there is a client %v, %v", c, err)
	}
	if err := s.tmux.Message(context.Background(), Pane{ID: "%0"}); err != nil {
		t.Errorf("a message to nobody: %v", err)
	}
}

// A server without popups must be told, also one of a letter, and what is no release must pass.
func TestTooOld(t *testing.T) {
	for version, want := range map[string]bool{
		"2.9a": true, "3.0": true, "3.1c": true, "1.8": true, "3.2": false, "3.3a": false, "3.10": false, "4.0": false,
		"next-3.6": false, "master": false, "openbsd-7.6": false, "": false,
	} {
		if got := tooOld(version); got != want {
			t.Errorf("%q is too old: %v, want %v", version, got, want)
		}
	}
}
