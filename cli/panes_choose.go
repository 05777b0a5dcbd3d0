package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/agent-container/agent-container/panes"
	"github.com/agent-container/agent-container/spec"
)

// chooser is the list of panes on a terminal in raw mode.
type chooser struct {
	out     io.Writer
	size    func() (width, height int, err error)
	keys    <-chan keyPress
	resized <-chan os.Signal
	load    func() (list []panes.Pane, watched bool, err error)
	jump    func(panes.Pane) error

	list []panes.Pane
	at   int
	note string // below the list
}

// choose follows keys until there was a jump to the pane that Enter chose, or none is
// wanted, with q, Escape or Ctrl-C. A jump that fails says so, and the choice goes on.
func (c *chooser) choose(ctx context.Context) (*panes.Pane, error) {
	if err := c.reload(); err != nil {
		c.note = complaint(err)
		_, _ = c.press(ctx)
		return nil, err
	}
	c.at = max(0, slices.IndexFunc(c.list, func(p panes.Pane) bool { return p.State == spec.ScreenWaiting }))
	for {
		key, err := c.press(ctx)
		if err != nil {
			return nil, err
		}
		switch key {
		case keyUp:
			c.at = max(c.at-1, 0)
		case keyDown:
			c.at = min(c.at+1, max(len(c.list)-1, 0))
		case keyQuit:
			return nil, nil
		case keyEnter:
			if len(c.list) == 0 {
				return nil, nil
			}
			chosen := c.list[c.at]
			if err = c.jump(chosen); err == nil {
				return &chosen, nil
			}
			_ = c.reload() // the pane may be gone
			c.note = complaint(err)
		}
	}
}

// reload reads the list anew.
func (c *chooser) reload() error {
	list, watched, err := c.load()
	if err != nil {
		return err
	}
	c.list, c.at, c.note = list, min(c.at, max(len(list)-1, 0)), ""
	if !watched {
		c.note = nobodyWatches
	}
	return nil
}

// complaint is an error as it is drawn.
func complaint(err error) string {
	f := asFailure(err)
	text := "error: " + spec.Printable(oneLine(f.message), maxSaid)
	if f.hint != "" {
		text += "\nhint: " + f.hint
	}
	return text
}

// press draws the list until a key is pressed.
func (c *chooser) press(ctx context.Context) (keyPress, error) {
	for {
		c.draw()
		select {
		case k := <-c.keys:
			return k, nil
		case <-c.resized:
		case <-ctx.Done():
			return keyQuit, context.Cause(ctx)
		}
	}
}

// draw draws over the whole terminal.
func (c *chooser) draw() {
	columns, lines, err := c.size()
	if err != nil || columns <= 0 || lines <= 0 {
		columns, lines = 80, 24
	}
	drawn, chosen := choiceLines(c.list, c.at, c.note, columns, lines)
	if chosen >= 0 {
		drawn[chosen] = "\x1b[7m" + drawn[chosen] + "\x1b[0m"
	}
	_, _ = io.WriteString(c.out, "\x1b[H\x1b[2J"+strings.Join(drawn, "\r\n"))
}

const choiceKeys = "up, down: choose   Enter: go there   q: close"

// choiceLines are the lines of the list in so many columns and lines, and which of them
// is the chosen pane's. That one is always there; where it is tight the keys go first,
// and then the header.
func choiceLines(list []panes.Pane, at int, note string, columns, lines int) (drawn []string, chosen int) {
	under := wrapText(note, columns)
	under = under[:min(len(under), lines-1)]
	keys := lines-len(under) >= 6
	if keys {
		under = append(append([]string{""}, under...), choiceKeys)
	}
	rows := max(lines-len(under), 1)
	chosen = -1
	if len(list) == 0 {
		drawn = []string{"no pane has an agent"}
	} else {
		table := choiceTable(list, columns)
		if rows >= 3 {
			drawn = append(drawn, "  "+table[0])
			rows--
		}
		first := max(0, min(at-rows/2, len(list)-rows))
		for i := first; i < min(first+rows, len(list)); i++ {
			mark := "  "
			if i == at {
				mark, chosen = "> ", len(drawn)
			}
			drawn = append(drawn, mark+table[i+1])
		}
		if keys && len(list) > rows {
			under[len(under)-1] = fmt.Sprintf("%d of %d   %s", at+1, len(list), choiceKeys)
		}
	}
	drawn = append(drawn, under...)
	for i, line := range drawn {
		drawn[i] = cutText(line, columns)
	}
	return drawn, chosen
}

// leastWhere is what a pane's place keeps at least where the columns are few: its
// window and pane, which stand at the end.
const leastWhere = 8

// choiceTable are the header and the panes, in columns. A place that is too long for
// the rest to stand beside it loses its beginning.
func choiceTable(list []panes.Pane, columns int) []string {
	rows := append([][]string{{"PANE", "WHERE", "AGENT", "IN", "STATE"}}, paneRows(list)...)
	wide := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			if cell == "" {
				r[i] = "-"
			}
			wide[i] = max(wide[i], textWidth(r[i]))
		}
	}
	others := 2 // the mark of the chosen one
	for i, w := range wide {
		if i != 1 {
			others += w + 2
		}
	}
	wide[1] = min(wide[1], max(columns-others, leastWhere))
	table := make([]string, len(rows))
	for i, r := range rows {
		r[1] = cutStart(r[1], wide[1])
		for j, cell := range r {
			r[j] = cell + strings.Repeat(" ", wide[j]-textWidth(cell))
		}
		table[i] = strings.TrimRight(strings.Join(r, "  "), " ")
	}
	return table
}

// runeWidth is how many columns a terminal gives a character.
func runeWidth(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

func textWidth(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

// cutText keeps what fits of the beginning.
func cutText(text string, columns int) string {
	for i, r := range text {
		if columns -= runeWidth(r); columns < 0 {
			return text[:i]
		}
	}
	return text
}

// cutStart keeps what fits of the end.
func cutStart(text string, columns int) string {
	if textWidth(text) <= columns {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && textWidth(string(runes))+1 > columns {
		runes = runes[1:]
	}
	return "…" + string(runes)
}

// wrapText breaks lines between words.
func wrapText(text string, columns int) []string {
	var lines []string
	for line := range strings.Lines(text) {
		begun := ""
		for _, word := range strings.Fields(line) {
			if begun != "" && textWidth(begun)+1+textWidth(word) > columns {
				lines = append(lines, begun)
				begun = ""
			}
			begun = strings.TrimSpace(begun + " " + word)
		}
		lines = append(lines, begun)
	}
	return lines
}
