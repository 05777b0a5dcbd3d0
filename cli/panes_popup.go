package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agent-container/agent-container/panes"
)

// panesPopup opens a popup with itself in it.
func (a *app) panesPopup(ctx context.Context, c *ucli.Context) (any, error) {
	client := c.String("client")
	if c.Bool("inside") {
		return a.choosePane(ctx, client)
	}
	if a.json {
		return nil, refuse("run: agent-container panes list --json", "a popup is for a terminal: it has no JSON to print")
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	argv := []string{self, "panes", "popup", "--inside"}
	if client != "" {
		argv = append(argv, "--client="+client)
	}
	if err := a.tmux().Popup(ctx, client, argv); err != nil {
		return nil, tmuxFailure(err)
	}
	return nil, nil
}

// choosePane lets somebody choose on the terminal of the popup.
func (a *app) choosePane(ctx context.Context, client string) (any, error) {
	in, ok := a.in.(*os.File)
	if !a.terminal || !ok {
		return nil, refuse("run: agent-container panes list", "to choose a pane needs a terminal")
	}
	list, err := a.markedPanes(ctx)
	if err != nil {
		return nil, err
	}
	former, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	chosen, ok := choose(in, a.out, list)
	_ = term.Restore(int(in.Fd()), former)
	if !ok {
		return wentAnswer{}, nil
	}
	if err := a.tmux().Jump(ctx, client, chosen.ID); err != nil {
		return nil, tmuxFailure(err)
	}
	return nil, nil
}

// choose shows panes and follows keys until one is chosen with Enter, or none with q,
// Escape or Ctrl-C.
func choose(in io.Reader, out io.Writer, list []panes.Pane) (panes.Pane, bool) {
	at := 0
	for i, p := range list {
		if p.State == "waiting" {
			at = i
			break
		}
	}
	keys := bufio.NewReader(in)
	for {
		drawChoice(out, list, at)
		switch readKey(keys) {
		case keyUp:
			at = max(at-1, 0)
		case keyDown:
			at = min(at+1, max(len(list)-1, 0))
		case keyEnter:
			if len(list) == 0 {
				return panes.Pane{}, false
			}
			return list[at], true
		case keyQuit:
			return panes.Pane{}, false
		}
	}
}

// drawChoice draws the list over the whole terminal, which is in raw mode.
func drawChoice(out io.Writer, list []panes.Pane, at int) {
	var b, t bytes.Buffer
	b.WriteString("\x1b[H\x1b[2J\x1b[?25l")
	if len(list) == 0 {
		b.WriteString("no pane has an agent\r\n")
	} else {
		table(&t, []string{"PANE", "WHERE", "AGENT", "IN", "STATE"}, paneRows(list))
		for i, line := range strings.Split(strings.TrimSuffix(t.String(), "\n"), "\n") {
			if i-1 == at {
				fmt.Fprintf(&b, "\x1b[7m> %s\x1b[0m\r\n", line)
				continue
			}
			fmt.Fprintf(&b, "  %s\r\n", line)
		}
	}
	b.WriteString("\r\nup, down: choose   Enter: go there   q: close\r\n")
	_, _ = out.Write(b.Bytes())
}

type keyPress int

const (
	keyOther keyPress = iota
	keyUp
	keyDown
	keyEnter
	keyQuit
)

// readKey reads one key of a terminal in raw mode. A lone Escape has nothing behind
// it; the end of the input closes.
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
