package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agent-container/agent-container/panes"
	"github.com/agent-container/agent-container/process"
)

// panesPopup opens a popup with itself in it.
func (a *app) panesPopup(ctx context.Context, c *ucli.Context) (any, error) {
	if a.json {
		return nil, refuse("run: agent-container panes list --json", "a popup is for a terminal: it has no JSON to print")
	}
	if c.Bool("inside") {
		return a.choosePane(ctx, c.String("client"))
	}
	client, err := a.tmux().Client(ctx, c.String("client"))
	if err != nil {
		return nil, tmuxFailure(err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	err = a.tmux().Popup(ctx, client, []string{self, "panes", "popup", "--inside", "--client=" + client.Name})
	var exit *process.ExitError
	switch {
	case errors.As(err, &exit) && exit.Stderr == "":
		return nil, childExit(exit.Code, "the popup", nil) // it has shown why
	case err != nil:
		return nil, tmuxFailure(err)
	}
	return nil, nil
}

// The list has a screen of its own, without a cursor; whatever ends it, the terminal is
// left as it was.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// choosePane lets somebody choose on this terminal, which may be a popup's.
func (a *app) choosePane(ctx context.Context, client string) (any, error) {
	in, isFile := a.in.(*os.File)
	out, ok := a.out.(*os.File)
	if !a.terminal || !isFile || !ok {
		return nil, refuse("run: agent-container panes list", "to choose a pane needs a terminal")
	}
	former, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = term.Restore(int(in.Fd()), former) }()
	_, _ = io.WriteString(out, enterScreen)
	defer func() { _, _ = io.WriteString(out, leaveScreen) }()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)

	c := &chooser{
		out: out, size: func() (int, int, error) { return term.GetSize(int(out.Fd())) },
		keys: keyPresses(ctx, in), resized: resized,
		load: func() ([]panes.Pane, bool, error) { return a.markedPanes(ctx) },
		jump: func(p panes.Pane) error { return a.jump(ctx, client, p) },
	}
	chosen, err := c.choose(ctx)
	if err != nil {
		return nil, err
	}
	return wentAnswer{chosen}, nil
}

func (a *app) jump(ctx context.Context, client string, p panes.Pane) error {
	c, err := a.tmux().Client(ctx, client)
	if err == nil {
		err = a.tmux().Jump(ctx, c, p.ID)
	}
	return tmuxFailure(err)
}

type keyPress int

const (
	keyOther keyPress = iota
	keyUp
	keyDown
	keyEnter
	keyQuit
)

// keyPresses reads the keys of a terminal in raw mode until ctx ends, or until a signal
// ends us while it waits for one.
func keyPresses(ctx context.Context, in io.Reader) <-chan keyPress {
	keys := make(chan keyPress)
	go func() {
		for buffered := bufio.NewReader(in); ; {
			select {
			case keys <- readKey(buffered):
			case <-ctx.Done():
				return
			}
		}
	}()
	return keys
}

// readKey reads one key. A lone Escape has nothing behind it; the end of the input
// closes.
func readKey(in *bufio.Reader) keyPress {
	b, err := in.ReadByte()
	if err != nil {
		return keyQuit
	}
	switch b {
	case '\r', '\n':
		return keyEnter
	case 'q', 3, 4:
		return keyQuit
	case 'k', 16:
		return keyUp
	case 'j', 14:
		return keyDown
	case 0x1b:
		if in.Buffered() < 2 {
			return keyQuit
		}
		arrow := make([]byte, 2)
		_, _ = io.ReadFull(in, arrow)
		switch string(arrow) {
		case "[A", "OA":
			return keyUp
		case "[B", "OB":
			return keyDown
		}
	}
	return keyOther
}
