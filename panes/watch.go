package panes

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// How often is looked. A look at the processes in front is some reads of /proc. Every
// fourth one asks tmux for its panes and for screens, and every one whose server has
// started or lost a process, as it does for a pane, asks for the panes.
const (
	lookEvery = 450 * time.Millisecond
	askEvery  = 4
)

// maxFailures is how often in a row a server that is there may not answer.
const maxFailures = 20

// Watcher keeps the marks of a tmux server's panes.
type Watcher struct {
	Tmux      Tmux
	Processes *Processes
	// Tell is called, for one pane at a time, when the agent of one that is not in view
	// waits or is idle. It may take its time: the marks do not wait for it.
	Tell func(context.Context, Pane)

	panes    []Pane
	watched  map[string]*watched
	server   int
	children []int // of the server
	looks    int
	failures int
	calls    calls
}

// watched is what is kept of a pane from look to look.
type watched struct {
	life
	marks    shown // as tmux has them
	listed   bool  // marks have been read before
	hidden   bool  // it would show the marks of its window, its session or the server
	read     int64 // the activity after which its screen was read; 0 if it was not
	at       int64 // when it was read, in seconds as activity is
	settling bool  // it has become idle, and is told of if it stays so
}

func (w *Watcher) of(id string) *watched {
	if w.watched[id] == nil {
		w.watched[id] = &watched{}
	}
	return w.watched[id]
}

// Watch keeps the marks until ctx ends, and then removes them, or until the server
// has ended, which is no error.
func (w *Watcher) Watch(ctx context.Context) error {
	_, server, err := w.Tmux.Server(ctx)
	if err != nil {
		return err
	}
	w.begin(server)
	if err := w.clear(ctx); err != nil {
		return w.over(ctx, err)
	}
	defer w.calls.answer(ctx, w.Tell)()
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_ = w.clear(last) // of a server that has ended there are none
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		err := w.look(ctx, time.Now())
		if ctx.Err() != nil {
			return context.Cause(ctx) // not one more look, for which a tick may be there
		}
		if err != nil {
			if w.failures++; w.failures > maxFailures || w.ended(ctx, err) {
				return w.over(ctx, err)
			}
		} else {
			w.failures = 0
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// begin forgets everything, for a server of which nothing is known. Another one may
// have the socket a moment after the last has ended.
func (w *Watcher) begin(server int) {
	w.server, w.children, w.watched = server, nil, map[string]*watched{}
}

// ended reports whether err is the end of the server, and no other has its socket.
func (w *Watcher) ended(ctx context.Context, err error) bool {
	var none *NoServerError
	if !errors.As(err, &none) {
		return false
	}
	_, _, err = w.Tmux.Server(ctx)
	return errors.As(err, &none)
}

func (w *Watcher) over(ctx context.Context, err error) error {
	if ctx.Err() == nil && w.ended(ctx, err) {
		return nil
	}
	return err
}

// clear removes every mark, also those that another watcher has left. A pane that
// closes meanwhile takes its own with it.
func (w *Watcher) clear(ctx context.Context) error {
	panes, err := w.Tmux.Panes(ctx)
	if err != nil {
		return err
	}
	for _, p := range panes {
		if p.marks != (shown{}) || w.of(p.ID).hidden {
			_ = w.Tmux.mark(ctx, p.ID, shown{}, false) // the first look finds what is left
		}
	}
	return nil
}

// look is one round: panes, processes in front, marks, screens.
func (w *Watcher) look(ctx context.Context, now time.Time) error {
	if err := w.Processes.begin(ctx); err != nil {
		return err
	}
	asks := w.looks%askEvery == 0
	children := w.Processes.source.children(proc{pid: w.server})
	if asks || !slices.Equal(children, w.children) {
		if err := w.ask(ctx, children); err != nil {
			return err
		}
	}
	w.looks++
	var failed error
	var ending []Pane
	for _, p := range w.panes {
		f, ok := w.Processes.inPane(p)
		if f.Shell && !p.dead && w.of(p.ID).Agent != "" {
			ending = append(ending, p)
			continue
		}
		failed = errors.Join(failed, w.judge(ctx, p, f, ok, now))
	}
	failed = errors.Join(failed, w.judgeAgain(ctx, ending, now))
	if asks {
		failed = errors.Join(failed, w.readScreens(ctx, now))
	}
	return failed
}

// judge takes what is in front of a pane, if ok, into its life.
func (w *Watcher) judge(ctx context.Context, p Pane, f Front, ok bool, now time.Time) error {
	seen := w.of(p.ID)
	if !ok && seen.unseen < askEvery {
		seen.unseen++ // between two programs there may be none; the next look sees
		return nil
	}
	return w.set(ctx, p.ID, seen.next(f, now))
}

// shellStays is after what time a shell that has come in front of an agent is looked at
// again. Between two programs of one line, or two commands of a script, it is there for
// some milliseconds, and what it starts has its name until it becomes the program.
const shellStays = 100 * time.Millisecond

// judgeAgain judges panes with an agent in front of which a shell was seen, if it was,
// by a second look at them.
func (w *Watcher) judgeAgain(ctx context.Context, panes []Pane, now time.Time) error {
	if len(panes) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(shellStays):
	}
	// The same round: another would forget what other panes have said.
	if err := w.Processes.source.refresh(ctx); err != nil {
		return err
	}
	var failed error
	for _, p := range panes {
		f, ok := w.Processes.inPane(p)
		failed = errors.Join(failed, w.judge(ctx, p, f, ok, now))
	}
	return failed
}

// ask reads panes and marks from tmux. What somebody has made of the marks meanwhile
// is seen, and set right by this look.
func (w *Watcher) ask(ctx context.Context, children []int) error {
	panes, err := w.Tmux.Panes(ctx)
	if err != nil {
		return err
	}
	if len(panes) > 0 && panes[0].server != w.server {
		w.begin(panes[0].server)
		children = nil
	}
	w.panes, w.children = panes, children
	w.forget()
	for _, p := range panes {
		seen := w.of(p.ID)
		seen.hidden = seen.hidden || seen.listed && seen.marks == (shown{}) && p.marks != seen.marks
		seen.marks, seen.listed = p.marks, true
		if p.InView {
			w.calls.drop(p.ID)
		}
	}
	return nil
}

// set keeps the life of a pane, and its marks where they differ from those that tmux has.
func (w *Watcher) set(ctx context.Context, id string, is life) error {
	seen := w.of(id)
	if marks := (shown{is.Found, is.State}); marks != seen.marks {
		if err := w.Tmux.mark(ctx, id, marks, seen.hidden); err != nil {
			return err // tried again at the next look, from the same life
		}
		seen.marks = marks
		w.calls.drop(id)
	}
	if is.key != seen.key || is.inFront != seen.inFront {
		seen.read = 0
	}
	seen.life = is
	return nil
}

// forget drops what is known of panes that are gone.
func (w *Watcher) forget() {
	there := map[string]bool{}
	for _, p := range w.panes {
		there[p.ID] = true
	}
	for id := range w.watched {
		if !there[id] {
			delete(w.watched, id)
			w.calls.drop(id)
		}
	}
}

// tell has somebody told of a pane that waits, and of one that is idle if it still is
// at the next reading: a screen that is being drawn can look so. It was in the state was.
func (w *Watcher) tell(p Pane, was spec.ScreenState) {
	seen := w.of(p.ID)
	settled := seen.settling && seen.State == spec.ScreenIdle
	news := calling(was, seen.State, p.InView)
	seen.settling = news && seen.State == spec.ScreenIdle && !settled
	if w.Tell == nil || p.InView || !settled && (!news || seen.settling) {
		return
	}
	p.Agent, p.Runtime, p.State = seen.Agent, seen.Runtime, seen.State
	w.calls.put(p)
}

// Next is the pane after current, in order and around, whose agent waits for an
// answer; ok is false when none does.
func Next(panes []Pane, current string) (next Pane, ok bool) {
	at := 0
	for i, p := range panes {
		if p.ID == current {
			at = i + 1
		}
	}
	for i := range panes {
		if p := panes[(at+i)%len(panes)]; p.State == spec.ScreenWaiting && p.ID != current {
			return p, true
		}
	}
	return Pane{}, false
}

// Marked are the panes that have an agent.
func Marked(panes []Pane) []Pane {
	list := []Pane{}
	for _, p := range panes {
		if p.Agent != "" && !p.dead {
			list = append(list, p)
		}
	}
	return list
}
