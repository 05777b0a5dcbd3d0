package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"syscall"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

func logsCommand() command {
	return command{
		name: "logs", group: groupWork, args: "NAME", usage: "print what a deployment's agent container has said",
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the container ends"},
			&ucli.StringFlag{Name: "tail", Usage: "only the last `N` lines"},
			&ucli.StringFlag{Name: "since", Usage: "only since `T`: 10m, or 2026-01-02T15:04:05Z"},
			&ucli.BoolFlag{Name: "egress", Usage: "print what its gateway has decided instead"},
		},
		min: 1, max: 1, run: (*app).logs,
	}
}

// logsAnswer names whose output went to stderr, with --json.
type logsAnswer struct {
	Name      string `json:"name"`
	Container string `json:"container"`
}

func (a *app) logs(ctx context.Context, c *ucli.Context) (any, error) {
	tail, since := c.String("tail"), c.String("since")
	if _, err := strconv.ParseUint(tail, 10, 31); tail != "" && tail != "all" && err != nil {
		return nil, refuse("use a number of lines", "--tail: %q is not a number", tail)
	}
	if since != "" && !validSince(since) {
		return nil, refuse("use 10m, 2h30m or 2026-01-02T15:04:05Z", "--since: %q is neither a duration nor a time", since)
	}
	e, found, s, err := a.named(ctx, c)
	if err != nil {
		return nil, err
	}
	if _, err := a.settle(ctx, e, found, s); err != nil {
		a.say("warning: %s", oneLine(err.Error()))
	}
	if c.Bool("egress") {
		return a.journal(ctx, e, s, c.Bool("follow"), since, tail)
	}
	container := compose.ProjectName(s.Name)
	err = e.Logs(ctx, container, c.Bool("follow"), since, tail, a.streams())
	var exit *process.ExitError
	if errors.As(err, &exit) && exit.Code == 128+int(syscall.SIGPIPE) {
		// Whoever read it has had enough, as with "| head".
		return nil, childExit(exit.Code, "logs", logsAnswer{s.Name, container})
	}
	if err != nil {
		// The container's own words went to the same place, so the engine is
		// asked rather than the text read.
		if _, lost := e.Inspect(ctx, found.ID); lost != nil {
			return nil, lost
		}
		return nil, err
	}
	return logsAnswer{s.Name, container}, nil
}

// journal prints what the gateway of a deployment has decided.
func (a *app) journal(ctx context.Context, e *engine.Engine, s spec.Spec, follow bool, since, tail string) (any, error) {
	if s.Egress == nil {
		return nil, fail(exitFailed, "declare what may leave it: agent-container redeploy "+s.Name+" --egress-allow ENTRY", "%s is unrestricted: nothing is watched, and there is no journal", s.Name)
	}
	container, p := compose.GatewayContainer(s.Name), newJournalPrinter(a.streams().Out, a.json)
	err := e.Logs(ctx, container, follow, since, tail, engine.Streams{Out: p})
	if p.unreadable > 0 {
		a.say("%d lines of the journal cannot be read", p.unreadable)
	}
	switch {
	case errors.Is(p.failed, syscall.EPIPE):
		return nil, childExit(128+int(syscall.SIGPIPE), "logs", logsAnswer{s.Name, container})
	case err == nil:
		return logsAnswer{s.Name, container}, nil
	}
	if _, lost := e.Inspect(ctx, container); lost != nil {
		return nil, lost
	}
	return nil, unreadableJournal(s.Name, err)
}

// journalPrinter prints a journal as it comes: a readable line of each decision,
// or JSON of it.
type journalPrinter struct {
	journalReader
	failed error // of what it prints to
}

func newJournalPrinter(w io.Writer, asJSON bool) *journalPrinter {
	p := &journalPrinter{journalReader: journalReader{left: endless}}
	p.each = func(d spec.Decision) error {
		line := []byte(decisionLine(d) + "\n")
		if asJSON {
			var err error
			if line, err = encodeJSON(d, ""); err != nil {
				return err
			}
		}
		_, p.failed = w.Write(line)
		return p.failed
	}
	return p
}

// decisionLine is a decision for people.
func decisionLine(d spec.Decision) string {
	at := d.Time.Format(time.RFC3339)
	if d.Stage == spec.StageJournal {
		return fmt.Sprintf("%s %d lines were left out here: there were too many", at, d.Left)
	}
	host := spec.Refusal{Name: d.Name, Address: d.Address}.Host()
	if d.Port != 0 {
		host = fmt.Sprintf("%s port %d", host, d.Port)
	}
	text := fmt.Sprintf("%s %s %s %s", at, d.Verdict, d.Stage, host)
	switch {
	case d.Reason != "":
		text += ": " + d.Reason
	case d.Rule != "":
		text += " by " + d.Rule
	}
	return text
}

// validSince accepts what every engine does: a Go duration or an RFC 3339 time.
func validSince(text string) bool {
	if d, err := time.ParseDuration(text); err == nil {
		return d >= 0
	}
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}
