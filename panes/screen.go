package panes

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/agent-container/agent-container/spec"
)

type screenRule struct {
	spec.ScreenRule
	pattern *regexp.Regexp
}

// screenRules are the rules of the agent table, ready to be used.
var screenRules = func() map[string][]screenRule {
	all := map[string][]screenRule{}
	for _, a := range spec.Agents {
		for _, r := range a.Screen {
			all[a.Name] = append(all[a.Name], screenRule{r, regexp.MustCompile("(?m)" + r.Pattern)})
		}
	}
	return all
}()

// stateOf is what an agent's screen says of it: the first of its rules that matches,
// and else what was known before. A screen that no rule knows may be half drawn. ""
// is for an agent without rules.
func stateOf(agent, screen string, before spec.ScreenState) spec.ScreenState {
	var lines []string
	for line := range strings.Lines(screen) {
		if line = strings.TrimRightFunc(line, unicode.IsSpace); line != "" {
			lines = append(lines, line)
		}
	}
	for _, r := range screenRules[agent] {
		if r.pattern.MatchString(strings.Join(lines[max(0, len(lines)-r.Lines):], "\n")) {
			return r.State
		}
	}
	return before
}

// readScreens reads the states of agents in front, where anything has been written in
// the window since the last time. Activity is told in whole seconds: what is written in
// the same one, after its screen was read, shows only in a reading well after that second.
func (w *Watcher) readScreens(ctx context.Context, now time.Time) error {
	var ids []string
	for _, p := range w.panes {
		seen := w.of(p.ID)
		if !seen.inFront || screenRules[seen.Agent] == nil {
			continue
		}
		if p.activity != seen.read || seen.at-p.activity <= 2 {
			ids = append(ids, p.ID)
		}
	}
	screens := w.Tmux.screens(ctx, ids)
	var failed error
	for _, p := range w.panes {
		seen := w.of(p.ID)
		is, was := seen.life, seen.State
		if screen, ok := screens[p.ID]; ok {
			if is.nested {
				screen = withoutStatus(screen)
			}
			is.State = stateOf(is.Agent, screen, was)
			seen.read, seen.at = p.activity, now.Unix()
		}
		if err := w.set(ctx, p.ID, is); err != nil {
			seen.read = 0
			failed = errors.Join(failed, err)
			continue
		}
		w.tell(p, was)
	}
	return failed
}
