package panes

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/agent-container/agent-container/process"
)

// Client is a client of the server: a terminal that shows a session.
type Client struct {
	Name          string
	Pane          string // that it shows
	Width, Height int
	session       string // $N
}

// NoClientError says that the server has no such client, or, with Name "", none at all.
type NoClientError struct{ Name string }

func (e *NoClientError) Error() string {
	if e.Name == "" {
		return "no client is attached to the tmux server"
	}
	return "tmux has no client " + e.Name
}

// Client returns a client by its name, or, with name "", the one that tmux takes for
// the current one. It has to be asked for: given the name of none, some commands of
// tmux take another one, and others take none, in silence.
func (t Tmux) Client(ctx context.Context, name string) (Client, error) {
	clients, err := t.clients(ctx)
	if err != nil {
		return Client{}, err
	}
	if len(clients) == 0 {
		return Client{}, &NoClientError{name}
	}
	wanted := name
	if name == "" {
		out, err := t.call(ctx, "display-message", "-p", "#{client_name}")
		if err != nil {
			return Client{}, err
		}
		wanted = strings.TrimSuffix(out, "\n")
	}
	for _, c := range clients {
		if c.Name == wanted || c.Name == "/dev/"+wanted { // as tmux reads it
			return c, nil
		}
	}
	return Client{}, &NoClientError{name}
}

// clients returns all clients that show a session.
func (t Tmux) clients(ctx context.Context) (list []Client, err error) {
	out, err := t.call(ctx, "list-clients", "-F", "#{session_id} #{pane_id} #{client_width} #{client_height} #{client_name}")
	var exit *process.ExitError
	if errors.As(err, &exit) && strings.Contains(exit.Stderr, "no current target") {
		return nil, nil // without a session, as while tmux.conf is read
	}
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)
		if len(f) < 5 {
			continue
		}
		c := Client{Name: f[4], Pane: f[1], session: f[0]}
		c.Width, _ = strconv.Atoi(f[2])
		c.Height, _ = strconv.Atoi(f[3])
		list = append(list, c)
	}
	return list, err
}

// places are the targets of one pane, by session: its window may be linked into
// several, and a target that names none means any of them.
type places struct {
	first string // of the session that is listed first, as in Panes
	in    map[string]string
}

func (t Tmux) places(ctx context.Context, pane string) (places, error) {
	p := places{in: map[string]string{}}
	out, err := t.call(ctx, "list-panes", "-a", "-F", "#{pane_id} #{session_id} #{window_id}")
	if err != nil {
		return p, err
	}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != pane {
			continue
		}
		p.in[f[1]] = f[1] + ":" + f[2] + "." + f[0]
		if p.first == "" {
			p.first = p.in[f[1]]
		}
	}
	if p.first == "" {
		return p, &NoPaneError{pane}
	}
	return p, nil
}

// seenBy is the target in a client's own session, if that has the pane.
func (p places) seenBy(c Client) string {
	if own, ok := p.in[c.session]; ok {
		return own
	}
	return p.first
}

// Message shows on every client which state the agent of a pane is in, and where it is
// for that client. The place is put in by tmux, which reads no name again as a format.
func (t Tmux) Message(ctx context.Context, pane Pane) error {
	clients, err := t.clients(ctx)
	if err != nil || len(clients) == 0 {
		return err
	}
	p, err := t.places(ctx, pane.ID)
	if err != nil {
		return err
	}
	text := pane.Agent + " is " + string(pane.State) + ": #{session_name}:#{window_index}.#{pane_index}"
	for _, c := range clients {
		_, one := t.call(ctx, "display-message", "-d", "4000", "-c", c.Name, "-t", p.seenBy(c), text)
		err = errors.Join(err, one)
	}
	return err
}

// Jump brings a pane in front of a client: in the client's own session if that has it,
// and else in the one that Panes lists it with. Clients of other sessions stay where
// they are. It is one command, so that all of it is done, or nothing.
func (t Tmux) Jump(ctx context.Context, c Client, pane string) error {
	p, err := t.places(ctx, pane)
	if err != nil {
		return err
	}
	_, err = t.call(ctx, "switch-client", "-c", c.Name, "-t", p.seenBy(c))
	return err
}

// A client of fewer columns or lines gives a popup all of them.
const (
	roomyWidth  = 60
	roomyHeight = 20
)

// Popup runs argv in a popup of a client and returns when it is closed. The end of argv
// with another status than 0 is an *process.ExitError without Stderr: what argv has
// written went to the popup.
func (t Tmux) Popup(ctx context.Context, c Client, argv []string) error {
	width, height := "80%", "60%"
	if c.Width < roomyWidth {
		width = "100%"
	}
	if c.Height < roomyHeight {
		height = "100%"
	}
	words := append(t.argv(), "display-popup", "-E", "-w", width, "-h", height, "-c", c.Name, "--")
	// No shell: with more than one word tmux runs them as they are.
	err := t.Runner.Run(ctx, process.Command{Argv: append(words, argv...)})
	if err != nil {
		return tmuxError(err)
	}
	return nil
}
