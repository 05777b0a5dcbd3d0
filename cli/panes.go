package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/panes"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

func panesCommand() command {
	client := &ucli.StringFlag{Name: "client", Usage: "for the tmux client `NAME`, as #{client_name} in a key binding"}
	return command{
		name: "panes", group: groupLook, usage: "tmux panes that know which agent is where, and which waits for you",
		sub: []command{
			{name: "watch", usage: "keep @agent, @agent_container and @agent_state on the panes of the tmux server, until it ends", run: (*app).panesWatch},
			{name: "list", usage: "the panes that have an agent", run: (*app).panesList},
			{name: "next", usage: "go to the next pane whose agent waits for an answer", flags: []ucli.Flag{client}, run: (*app).panesNext},
			{name: "popup", usage: "choose a pane in a popup of tmux; Enter goes there", flags: []ucli.Flag{client, &ucli.BoolFlag{Name: "inside", Usage: "choose on this terminal, without a popup"}}, run: (*app).panesPopup},
		},
	}
}

// panesWatch keeps the marks. What is written to stdout would cover a pane of whoever
// starts it from tmux.conf, and stderr goes nowhere there: tmux shows why it fails.
func (a *app) panesWatch(ctx context.Context, _ *ucli.Context) (any, error) {
	err := a.watchPanes(ctx)
	if err != nil && context.Cause(ctx) == nil {
		a.showIn(ctx, "", "agent-container panes watch: "+err.Error())
	}
	return nil, err
}

// showIn shows a line on a client of tmux, or on all with "", where tmux has started us:
// what such a program writes to stderr nobody sees.
func (a *app) showIn(ctx context.Context, client, text string) {
	if a.errTerminal || a.env("TMUX") == "" {
		return
	}
	if err := a.tmux().Say(ctx, client, text); err != nil {
		a.say("warning: cannot show it in tmux: %v", err)
	}
}

func (a *app) watchPanes(ctx context.Context) error {
	if err := a.userConfig(); err != nil {
		return err
	}
	socket, _, err := a.tmux().Server(ctx)
	if err != nil {
		return tmuxFailure(err)
	}
	path, err := a.watchLock(socket)
	if err != nil {
		return err
	}
	l := lockFile(path)
	// "panes list" holds it for a moment, and the watcher of a server that has just
	// ended for some more.
	within, cancel := context.WithTimeout(ctx, watchLockTime)
	defer cancel()
	held, err := l.TryLockContext(within, 100*time.Millisecond)
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case within.Err() == nil && lockError(l, err) != nil:
		return lockError(l, err)
	case !held:
		a.say("this tmux server is watched already, by %s", lockHolder(ctx, path))
		return nil
	}
	defer func() { _ = l.Unlock() }()
	note := fmt.Sprintf("pid %d since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	_ = os.WriteFile(path, []byte(note), 0o600) // for a message only
	w := &panes.Watcher{Tmux: a.tmux(), Processes: panes.NewProcesses(a.runner), Tell: a.tellOfPane}
	if err := w.Watch(ctx); err != nil {
		return tmuxFailure(err)
	}
	return nil
}

const watchLockTime = 3 * time.Second

// userConfig reads directories and the user's own settings: what watches all panes must
// not depend on the project in whose directory the tmux server was started.
func (a *app) userConfig() error {
	err := a.places()
	if err == nil {
		a.settings, err = settings.Load(a.dirs.Config, "", a.settingVariable)
	}
	return err
}

// watchLock is the file that one watcher of a tmux server holds.
func (a *app) watchLock(socket string) (string, error) {
	dir := filepath.Join(a.dirs.State, engine.LocalHost, ".locks")
	sum := sha256.Sum256([]byte(socket))
	return filepath.Join(dir, fmt.Sprintf("panes-%x", sum[:8])), settings.MakePrivate(dir)
}

// notifyTime bounds the user's own command: the next one waits for it.
const notifyTime = 5 * time.Second

// tellOfPane runs the user's command, which gets names in its environment, or shows a
// message, in which a command that fails is named.
func (a *app) tellOfPane(ctx context.Context, p panes.Pane) {
	argv := strings.Fields(a.settings.Get("panes.notify_command").Text)
	if len(argv) == 0 {
		if err := a.tmux().Message(ctx, p); err != nil {
			a.say("warning: cannot show a message: %v", err)
		}
		return
	}
	within, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	err := a.runner.With(notifyEnvironment(p)...).Run(within, process.Command{Argv: argv})
	switch {
	case err == nil || ctx.Err() != nil:
		return
	case within.Err() != nil:
		err = fmt.Errorf("%s was ended: it took longer than %s", argv[0], notifyTime)
	}
	a.say("warning: panes.notify_command: %v", err)
	text := fmt.Sprintf("%s is %s: %s; panes.notify_command: %v", p.Agent, p.State, p.Where, err)
	if err := a.tmux().Say(ctx, "", text); err != nil {
		a.say("warning: cannot show a message: %v", err)
	}
}

// notifyEnvironment is what panes.notify_command gets.
func notifyEnvironment(e panes.Pane) []string {
	return []string{
		"AGENT_CONTAINER_PANE=" + e.ID, "AGENT_CONTAINER_PANE_WHERE=" + e.Where, "AGENT_CONTAINER_PANE_AGENT=" + e.Agent,
		"AGENT_CONTAINER_PANE_RUNTIME=" + e.Runtime, "AGENT_CONTAINER_PANE_STATE=" + string(e.State),
	}
}

// panesAnswer is every pane that has an agent.
type panesAnswer struct {
	Panes   []panes.Pane `json:"panes"`
	Watched bool         `json:"watched"` // otherwise the marks may be stale
}

func (p panesAnswer) text(w io.Writer) {
	if len(p.Panes) == 0 {
		return
	}
	table(w, []string{"PANE", "WHERE", "AGENT", "IN", "STATE"}, paneRows(p.Panes))
}

// paneRows are the cells of a table of panes.
func paneRows(list []panes.Pane) [][]string {
	rows := make([][]string, len(list))
	for i, p := range list {
		in := p.Runtime
		if in == "" {
			in = "host"
		}
		rows[i] = []string{p.ID, p.Where, p.Agent, in, string(p.State)}
	}
	return rows
}

// nobodyWatches is why there may be no marks.
const nobodyWatches = "nobody watches this tmux server; run: tmux run-shell -b 'agent-container panes watch'"

// markedPanes are the panes with an agent, and whether somebody watches the server.
func (a *app) markedPanes(ctx context.Context) (list []panes.Pane, watched bool, err error) {
	if err := a.places(); err != nil {
		return nil, false, err
	}
	all, err := a.tmux().Panes(ctx)
	if err != nil {
		return nil, false, tmuxFailure(err)
	}
	socket, _, err := a.tmux().Server(ctx)
	if err != nil {
		return nil, false, tmuxFailure(err)
	}
	path, err := a.watchLock(socket)
	if err != nil {
		return nil, false, err
	}
	for _, p := range all {
		if p.Misnamed != "" {
			a.say("warning: %s: %s is %q, which is no agent: %s", p.ID, panes.NameOption, p.Misnamed, strings.Join(spec.AgentNames(), ", "))
		}
	}
	l := lockFile(path)
	free, err := l.TryRLock() // not in the way of another that looks
	if free {
		_ = l.Unlock()
	}
	return panes.Marked(all), err != nil || !free, nil
}

func (a *app) panesList(ctx context.Context, _ *ucli.Context) (any, error) {
	list, watched, err := a.markedPanes(ctx)
	if err != nil {
		return nil, err
	}
	if !watched {
		a.say(nobodyWatches)
	}
	if len(list) == 0 {
		a.say("no pane has an agent")
	}
	return panesAnswer{list, watched}, nil
}

// wentAnswer is the pane that somebody was brought to, if any.
type wentAnswer struct {
	Pane *panes.Pane `json:"pane"`
}

func (a *app) panesNext(ctx context.Context, c *ucli.Context) (any, error) {
	client, err := a.tmux().Client(ctx, c.String("client"))
	if err != nil {
		return nil, tmuxFailure(err)
	}
	list, watched, err := a.markedPanes(ctx)
	if err != nil {
		return nil, err
	}
	why := "no other pane waits"
	if !watched {
		a.say(nobodyWatches)
		why += "; " + nobodyWatches
	}
	next, ok := panes.Next(list, client.Pane)
	if !ok {
		a.say("no other pane waits")
		a.showIn(ctx, client.Name, why)
		return wentAnswer{}, nil
	}
	if err := a.tmux().Jump(ctx, client, next.ID); err != nil {
		return nil, tmuxFailure(err)
	}
	return wentAnswer{&next}, nil
}
