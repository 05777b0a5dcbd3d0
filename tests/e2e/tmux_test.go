package e2e

import (
	"encoding/base64"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hangUp ends a seat as a closed laptop does.
func (s *seat) hangUp() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	s.ended(10 * time.Second)
}

// Text beyond ASCII, true colour, the clipboard and keys with modifiers must pass
// between a program in a window and the terminal outside, whatever locale the
// client has or has not.
func TestSessionPassesTextColourAndClipboard(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	for _, locale := range [][]string{{"LANG=", "LC_ALL=", "LC_CTYPE="}, {"LANG=de_DE.UTF-8", "LC_ALL=cs_CZ.ISO-8859-2"}} {
		s := u.sit(100, 30, locale, "attach", u.name, "-w", "shell")
		const text = "žluťoučký kůň 日本語 🐎 ─┼─"
		s.types("printf '<%s|%d>\\n' '" + text + "' $(printf %s 'kůň日🐎' | wc -m)\r")
		s.shows("<" + text + "|5>")
		s.types("printf '\\033[38;2;17;34;51mcolour\\033[m\\n'\r")
		s.shows("\x1b[38;2;17;34;51mcolour")
		s.types("printf '\\033]52;c;%s\\a' $(printf nightjar | base64)\r")
		s.shows("\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte("nightjar")))
		s.types("printf '\\033[>4;1mready\\n'; IFS= read -rsn 7 key; printf 'key %q\\n' \"$key\"\r")
		s.shows("\nready")
		s.types("\x1b[13;2u") // Shift-Enter
		s.shows(`key $'\E[13;2u'`)
		if bad := s.out.String(); contains(bad, "\uFFFD") || contains(bad, "cannot change locale") {
			t.Errorf("with %v the terminal got %q", locale, bad)
		}
		s.hangUp()
	}
	if r := u.runWith(nil, []string{"LANG=de_DE.UTF-8", "LC_ALL=de_DE.UTF-8"}, "attach", u.name, "--", "sh", "-c", `echo "$LANG ${LC_ALL-unset} $PWD"; printf kůň | wc -m`); r.stdout != "C.UTF-8 unset /workspace\n3\n" {
		t.Errorf("a command has another locale or place: %s", r)
	}
}

// Every common terminal must be attached as what it is, one that the image does
// not know as xterm-256color, said once, and one without a screen be refused.
func TestTerminals(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	colour, clipboard := "RGB", "clipboard"
	for name, c := range map[string]struct {
		is   string
		does []string
	}{
		"xterm-256color":  {"xterm-256color", []string{colour, clipboard}},
		"xterm-kitty":     {"xterm-kitty", []string{colour, clipboard}},
		"xterm-ghostty":   {"xterm-ghostty", []string{colour, clipboard}},
		"alacritty":       {"alacritty", []string{colour, clipboard}},
		"foot":            {"foot", []string{colour, clipboard}},
		"wezterm":         {"wezterm", []string{colour, clipboard}},
		"tmux-256color":   {"tmux-256color", []string{colour, clipboard}},
		"screen-256color": {"screen-256color", nil}, "rxvt-unicode-256color": {"rxvt-unicode-256color", nil}, "linux": {"linux", nil},
		"vt100":            {"vt100", nil},
		"no-such-terminal": {"xterm-256color", []string{colour, clipboard}},
		"../../etc/passwd": {"xterm-256color", []string{colour, clipboard}},
		"":                 {"xterm-256color", []string{colour, clipboard}},
	} {
		s := u.sit(80, 24, []string{"TERM=" + name}, "attach", u.name, "-w", "shell")
		eventually(t, 20*time.Second, func() string {
			features := docker(t, "exec", u.container(), "tmux", "list-clients", "-F", "#{client_termname} #{client_termfeatures}")
			if !strings.HasPrefix(features, c.is+" ") || strings.Contains(features, "\n") {
				return fmt.Sprintf("%q is attached as %q; the terminal got %q", name, features, s.out.String())
			}
			for _, f := range c.does {
				if !contains(features, f) {
					return fmt.Sprintf("%q has no %s: %s", name, f, features)
				}
			}
			return ""
		})
		said := 0
		if name != c.is {
			said = 1
			s.shows(": using xterm-256color")
		}
		if got := strings.Count(s.out.String(), ": using xterm-256color"); got != said {
			t.Errorf("%q: it was said %d times, want %d: %q", name, got, said, s.out.String())
		}
		s.hangUp()
	}
	for _, via := range []string{"ssh", "exec"} {
		s := u.sit(80, 24, []string{"TERM=dumb"}, "attach", u.name, "--via", via)
		if r := s.wait(20 * time.Second); r.code != 2 || !contains(r.stdout, "dumb") || !contains(r.stdout, "hint: ") {
			t.Errorf("a dumb terminal over %s: %s", via, r)
		}
	}
}

var cursorMove = regexp.MustCompile("\x1b\\[([0-9]*)(?:;([0-9]*))?([HGdr])")

// beyond is the first place outside a screen of columns and rows that is
// addressed in what a terminal got, or "".
func beyond(got string, columns, rows int) string {
	for _, m := range cursorMove.FindAllStringSubmatch(got, -1) {
		first, _ := strconv.Atoi(m[1])
		second, _ := strconv.Atoi(m[2])
		row, column := first, second
		switch m[3] {
		case "G":
			row, column = 0, first
		case "r":
			row, column = second, 0
		}
		if row > rows || column > columns {
			return fmt.Sprintf("%q", m[0])
		}
	}
	return ""
}

// A session must have the size of the terminal that is attached, from the first
// byte, however small that is, and follow it.
func TestSessionHasTheTerminalsSize(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name)
	for i, size := range [][2]int{{132, 43}, {20, 6}, {250, 80}} {
		columns, rows := size[0], size[1]
		s := u.sit(columns, rows, nil, "attach", u.name, "-w", "shell")
		s.types(fmt.Sprintf("echo $((%d + 40)) $(stty size)\r", i))
		s.shows(fmt.Sprintf("%d %d %d", i+40, rows-1, columns)) // a row is tmux's own
		if place := beyond(s.out.String(), columns, rows); place != "" {
			t.Errorf("a terminal of %dx%d was sent to %s: %q", columns, rows, place, s.out.String())
		}
		if i == 2 {
			s.resize(90, 30)
			eventually(t, 10*time.Second, func() string {
				if now := u.display("=main:shell", "#{pane_width}x#{pane_height}"); now != "90x29" {
					return "the pane is " + now
				}
				return ""
			})
		}
		s.hangUp()
	}
}

// The session must have the agent's window and a shell's. When the agent quits,
// its window must say so and become a shell; a crash of the container must make
// the session anew, and not send the task again.
func TestSessionOverSSH(t *testing.T) {
	u := newUser(t)
	u.withStub()
	u.must("up", u.name, "--env", "STUB_RUN=exit 3", "--task", "the task")
	first := u.sit(120, 40, nil, "attach", u.name)
	first.shows("0:agent* 1:shell")
	first.types("\x04") // the stub reads its input to the end
	first.shows("claude ended (exit status 3); this window is now a shell")
	first.types("echo still $((40 + 2)) in $PWD\r")
	first.shows("still 42 in /workspace")
	argv := func() string { return u.run("exec", u.name, "--", "cat", "/home/agent/.claude/stub-argv").stdout }
	if got := argv(); got != "--\nthe task\n" {
		t.Fatalf("the agent got %q", got)
	}

	first.hangUp()
	if out, err := exec.Command("kill", "-KILL", u.inspect("{{.State.Pid}}")).CombinedOutput(); err != nil {
		t.Skipf("skipped: a process of the engine cannot be killed from here: %v: %s", err, out)
	}
	eventually(t, 60*time.Second, func() string {
		if now := u.inspect("{{.RestartCount}} {{.State.Status}}"); now != "1 running" {
			return "the container is " + now
		}
		return ""
	})
	second := u.sit(120, 40, nil, "attach", u.name)
	second.shows("0:agent* 1:shell")
	eventually(t, 10*time.Second, func() string {
		if got := argv(); got != "\n" {
			return fmt.Sprintf("the new agent got %q", got)
		}
		return ""
	})
	if screen := u.screen(); strings.TrimSpace(screen) != "" || contains(second.out.String(), "still 42") {
		t.Errorf("the new session shows the old one:\n%s", screen)
	}
}
