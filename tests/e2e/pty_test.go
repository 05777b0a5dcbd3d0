package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/creack/pty"
)

// seat is a terminal with the program on it, and somebody who types.
type seat struct {
	*running
	keyboard *os.File
}

// sit starts the program on a new terminal of columns and rows. env says TERM,
// among others; "NAME=" takes NAME away.
func (u *user) sit(columns, rows int, env []string, args ...string) *seat {
	u.t.Helper()
	return u.sitAt(columns, rows, env, exec.Command(program, args...))
}

func (u *user) sitAt(columns, rows int, env []string, cmd *exec.Cmd) *seat {
	u.t.Helper()
	r := &running{t: u.t, cmd: cmd, done: make(chan struct{})}
	r.cmd.Dir = u.path("project")
	for _, e := range append(append(append(outerEnvironment(), "TERM=xterm-256color"), u.env...), env...) {
		if name, value, _ := strings.Cut(e, "="); value == "" {
			r.cmd.Env = without(r.cmd.Env, name)
		} else {
			r.cmd.Env = append(r.cmd.Env, e)
		}
	}
	file, err := pty.StartWithSize(r.cmd, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)})
	if err != nil {
		u.t.Fatal(err)
	}
	go func() {
		_, _ = io.Copy(&r.out, file) // ends with an error when nobody has the terminal any more
		r.waitErr = r.cmd.Wait()
		close(r.done)
	}()
	u.t.Cleanup(func() { _ = r.cmd.Process.Kill(); <-r.done; file.Close() })
	return &seat{r, file}
}

func without(env []string, name string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// resize changes the terminal's size, as a window manager does.
func (s *seat) resize(columns, rows int) {
	s.t.Helper()
	if err := pty.Setsize(s.keyboard, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}); err != nil {
		s.t.Fatal(err)
	}
}

// types types text, byte by byte as it stands.
func (s *seat) types(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.keyboard, text); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits until the terminal has got text, as it stands, since it was sat at.
func (s *seat) shows(text string) {
	s.t.Helper()
	eventually(s.t, 30*time.Second, func() string {
		if !contains(s.out.String(), text) {
			return fmt.Sprintf("the terminal has not got %q: %q", text, clip(s.out.String()))
		}
		return ""
	})
}

// ended waits until nobody has the terminal any more, for the limit or patience,
// whichever is longer.
func (s *seat) ended(limit time.Duration) {
	s.t.Helper()
	limit = max(limit, patience)
	select {
	case <-s.done:
	case <-time.After(limit):
		s.t.Fatalf("somebody still has the terminal after %s: %q", limit, clip(s.out.String()))
	}
}
