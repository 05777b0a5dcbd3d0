package panes

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-container/agent-container/process"
)

// Message shows on every client which state the agent of a pane is in. The text is
// put together by tmux, from names that are not read again as formats.
func (t Tmux) Message(ctx context.Context, pane string) error {
	out, err := t.call(ctx, "list-clients", "-F", "#{client_name}")
	for client := range strings.Lines(out) {
		text := "#{" + MarkAgent + "} is #{" + MarkState + "}: #{session_name}:#{window_index}.#{pane_index}"
		_, one := t.call(ctx, "display-message", "-d", "4000", "-c", strings.TrimSpace(client), "-t", pane, text)
		err = errors.Join(err, one)
	}
	return err
}

// Current is the pane that a client shows, or, with client "", the one that tmux takes
// for the current one.
func (t Tmux) Current(ctx context.Context, client string) (string, error) {
	words := []string{"display-message", "-p"}
	if client != "" {
		words = append(words, "-c", client)
	}
	out, err := t.call(ctx, append(words, "#{pane_id}")...)
	return strings.TrimSpace(out), err
}

// Jump brings a pane in front of a client, or, with client "", of the current one.
func (t Tmux) Jump(ctx context.Context, client, pane string) error {
	words := []string{"select-window", "-t", pane, ";", "select-pane", "-t", pane}
	if _, err := t.call(ctx, words...); err != nil {
		return err
	}
	words = []string{"switch-client"}
	if client != "" {
		words = append(words, "-c", client)
	}
	_, err := t.call(ctx, append(words, "-t", pane)...)
	return err
}

// Popup runs argv in a popup of a client and returns when it is closed.
func (t Tmux) Popup(ctx context.Context, client string, argv []string) error {
	words := append(t.argv(), "display-popup", "-E", "-w", "80%", "-h", "60%")
	if client != "" {
		words = append(words, "-c", client)
	}
	// No shell: with more than one word tmux runs them as they are.
	err := t.Runner.Run(ctx, process.Command{Argv: append(append(words, "--"), argv...)})
	if err != nil {
		return tmuxError(err)
	}
	return nil
}
