package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/panes"
)

// chooserOf is a chooser of 80 columns and 24 lines that is given keys and then nothing.
func chooserOf(t *testing.T, keys string, out io.Writer, list ...panes.Pane) *chooser {
	return &chooser{
		out: out, size: func() (int, int, error) { return 80, 24, nil }, keys: keyPresses(t.Context(), strings.NewReader(keys)),
		load: func() ([]panes.Pane, bool, error) { return list, true, nil },
		jump: func(panes.Pane) error { return nil },
	}
}

// The keys of the popup must choose a pane, stay within the list, begin at one that waits, and close without a choice.
func TestChoose(t *testing.T) {
	list := []panes.Pane{{ID: "%0", Agent: "claude"}, {ID: "%1", Agent: "codex", State: "waiting"}, {ID: "%2", Agent: "pi"}}
	for keys, want := range map[string]string{
		"\r": "%1", "k\r": "%0", "kkk\r": "%0", "j\r": "%2", "jjj\r": "%2", "jk\r": "%1",
		"\x1b[A\r": "%0", "\x1b[B\r": "%2", "\x1bOB\r": "%2", "x\x1b[C\r": "%1",
		"q": "", "\x03": "", "\x1b": "", "": "", "j": "",
	} {
		got, err := chooserOf(t, keys, io.Discard, list...).choose(t.Context())
		if err != nil || want == "" && got != nil || want != "" && (got == nil || got.ID != want) {
			t.Errorf("%q chooses %v, %v; want %q", keys, got, err, want)
		}
	}
	var drawn strings.Builder
	if got, err := chooserOf(t, "jk\r", &drawn).choose(t.Context()); got != nil || err != nil || !strings.Contains(drawn.String(), "no pane has an agent") {
		t.Errorf("of no panes %v is chosen, %v; drawn is %q", got, err, drawn.String())
	}
}

// A jump that fails must be drawn with its hint, over a list that is read anew, and the choice go on.
func TestChooseFailedJump(t *testing.T) {
	var drawn strings.Builder
	c := chooserOf(t, "\r\r", &drawn)
	lists := [][]panes.Pane{{{ID: "%0", Agent: "pi"}, {ID: "%1", Agent: "pi", State: "waiting"}}, {{ID: "%0", Agent: "pi"}}}
	c.load = func() ([]panes.Pane, bool, error) {
		list := lists[0]
		lists = lists[1:]
		return list, true, nil
	}
	var tried []string
	c.jump = func(p panes.Pane) error {
		if tried = append(tried, p.ID); p.ID == "%1" {
			return tmuxFailure(&panes.NoPaneError{ID: p.ID})
		}
		return nil
	}
	got, err := c.choose(t.Context())
	if err != nil || got == nil || got.ID != "%0" || !slices.Equal(tried, []string{"%1", "%0"}) {
		t.Errorf("chosen is %v, %v; tried %q", got, err, tried)
	}
	for _, text := range []string{"error: tmux has no pane %1", "hint: see: tmux list-panes -a"} {
		if !strings.Contains(drawn.String(), text) {
			t.Errorf("%q is not drawn:\n%q", text, drawn.String())
		}
	}
}

// A list that cannot be read must be drawn as an error until a key is pressed, and be the error; that nobody watches must be drawn.
func TestChooseTrouble(t *testing.T) {
	var drawn strings.Builder
	c := chooserOf(t, "x", &drawn)
	cause := errors.New("tmux: no\nanswer")
	c.load = func() ([]panes.Pane, bool, error) { return nil, false, cause }
	if _, err := c.choose(t.Context()); err != cause || !strings.Contains(drawn.String(), "error: tmux: no answer") {
		t.Errorf("the error is %v; drawn is %q", err, drawn.String())
	}
	drawn.Reset()
	c = chooserOf(t, "q", &drawn)
	c.load = func() ([]panes.Pane, bool, error) { return nil, false, nil }
	if _, err := c.choose(t.Context()); err != nil || !strings.Contains(drawn.String(), "nobody watches this tmux server; run: tmux run-shell") {
		t.Errorf("the error is %v; drawn is %q", err, drawn.String())
	}
}

// The list must be drawn again when the terminal has another size, and a signal must end the choice with its cause.
func TestChooseResizedAndEnded(t *testing.T) {
	in, typed := io.Pipe()
	defer typed.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	resized := make(chan os.Signal)
	var drawn strings.Builder
	c := chooserOf(t, "", &drawn, panes.Pane{ID: "%0", Agent: "claude"})
	c.keys, c.resized = keyPresses(ctx, in), resized
	columns := []int{80, 5}
	c.size = func() (int, int, error) { defer func() { columns = columns[1:] }(); return columns[0], 24, nil }
	go func() { resized <- nil; cancel(errTerminated) }()
	got, err := c.choose(ctx)
	if got != nil || err != errTerminated {
		t.Errorf("chosen is %v, %v", got, err)
	}
	if want := "\x1b[7m> %0 \x1b[0m"; !strings.Contains(drawn.String(), want) {
		t.Errorf("%q is not drawn: %q", want, drawn.String())
	}
}

// What is drawn must fit the terminal: places lose their beginning, the rest what is too much, and the list scrolls.
func TestChoiceLines(t *testing.T) {
	list := []panes.Pane{
		{ID: "%0", Where: "main:1.0", Agent: "claude", Runtime: "docker", State: "waiting"},
		{ID: "%1", Where: "a-session-with-a-long-name:12.0", Agent: "codex"},
		{ID: "%22", Where: "会議:1.0", Agent: "opencode", Runtime: "podman", State: "idle"},
	}
	for _, c := range []struct {
		at, columns, lines int
		note               string
		want               []string
	}{
		{0, 80, 24, "", []string{
			"  PANE  WHERE                            AGENT     IN      STATE",
			"> %0    main:1.0                         claude    docker  waiting",
			"  %1    a-session-with-a-long-name:12.0  codex     host    -",
			"  %22   会議:1.0                         opencode  podman  idle",
			"",
			"up, down: choose   Enter: go there   q: close",
		}},
		{2, 46, 4, "", []string{
			"  PANE  WHERE        AGENT     IN      STATE",
			"  %0    main:1.0     claude    docker  waiting",
			"  %1    …-name:12.0  codex     host    -",
			"> %22   会議:1.0     opencode  podman  idle",
		}},
		{2, 18, 2, "", []string{
			"  %1    …me:12.0  ",
			"> %22   会議:1.0  ",
		}},
		{1, 30, 7, "error: a b\nhint: see: tmux list-panes -a and more", []string{
			"  PANE  WHERE     AGENT     IN",
			"  %0    main:1.0  claude    do",
			"> %1    …me:12.0  codex     ho",
			"  %22   会議:1.0  opencode  po",
			"error: a b",
			"hint: see: tmux list-panes -a",
			"and more",
		}},
		{1, 80, 6, "why", []string{
			"  PANE  WHERE                            AGENT     IN      STATE",
			"  %0    main:1.0                         claude    docker  waiting",
			"> %1    a-session-with-a-long-name:12.0  codex     host    -",
			"  %22   会議:1.0                         opencode  podman  idle",
			"why",
		}},
	} {
		got, _ := choiceLines(list, c.at, c.note, c.columns, c.lines)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%d of %dx%d (-want +got):\n%s", c.at, c.columns, c.lines, diff)
		}
	}
}

// Whatever the terminal's size, nothing may be drawn beyond it, and the chosen pane be there.
func TestChoiceLinesFit(t *testing.T) {
	var list []panes.Pane
	for _, id := range strings.Fields("%0 %1 %2 %3 %4 %5 %6 %7 %8 %9") {
		list = append(list, panes.Pane{ID: id, Where: "会議と長い名前:1.0", Agent: "claude", State: "idle"})
	}
	for _, note := range []string{"", nobodyWatches, "error: one\nhint: two"} {
		for columns := 1; columns < 70; columns += 3 {
			for lines := 1; lines < 20; lines++ {
				for at, p := range list {
					drawn, chosen := choiceLines(list, at, note, columns, lines)
					if len(drawn) > lines || chosen < 0 || columns > 4 && !strings.HasPrefix(drawn[chosen], "> "+p.ID) {
						t.Fatalf("%dx%d, %d of %d lines, chosen is %d:\n%s", columns, lines, len(drawn), lines, chosen, strings.Join(drawn, "\n"))
					}
					for _, line := range drawn {
						if textWidth(line) > columns {
							t.Fatalf("%dx%d: %q is %d wide", columns, lines, line, textWidth(line))
						}
					}
				}
			}
		}
	}
}
