package panes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/recognise"
	"github.com/agent-container/agent-container/spec"
)

// The marks: options of a pane, for a status line or a border.
const (
	MarkAgent   = "@agent"
	MarkRuntime = "@agent_container" // the runtime, where the agent runs in a container
	MarkState   = "@agent_state"
)

var marks = []string{MarkAgent, MarkRuntime, MarkState}

// NameOption is the user's own: the agent of a pane whose arguments do not tell, such as
// one that was started by hand in a shell in a container.
const NameOption = "@agent_is"

// Tmux asks the user's tmux server, the one of $TMUX or else the default one.
type Tmux struct {
	Runner *process.Runner
	Socket string // another server's, for tests; "" for the user's
}

// NoServerError says that no tmux server answers.
type NoServerError struct{ cause error }

func (e *NoServerError) Error() string { return "no tmux server answers: " + e.cause.Error() }
func (e *NoServerError) Unwrap() error { return e.cause }

// NoTmuxError says that there is no tmux to ask.
type NoTmuxError struct{ cause error }

func (e *NoTmuxError) Error() string { return "tmux is not on PATH" }
func (e *NoTmuxError) Unwrap() error { return e.cause }

// patience bounds a call of tmux.
const patience = 5 * time.Second

func (t Tmux) call(ctx context.Context, words ...string) (string, error) {
	argv := t.argv()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := t.Runner.Output(ctx, process.Command{Argv: append(argv, words...)})
	if err != nil {
		return string(out), tmuxError(err)
	}
	return string(out), nil
}

// argv is how tmux is called: with -u, for else it writes _ for what is not ASCII
// where no locale says UTF-8.
func (t Tmux) argv() []string {
	if t.Socket != "" {
		return []string{"tmux", "-u", "-S", t.Socket}
	}
	return []string{"tmux", "-u"}
}

// tmuxError finds out whether there is a tmux, and a server, at all.
func tmuxError(err error) error {
	var exit *process.ExitError
	if errors.Is(err, process.ErrNotFound) {
		return &NoTmuxError{err}
	}
	if errors.As(err, &exit) {
		for _, said := range []string{"no server running", "error connecting", "server exited", "lost server"} {
			if strings.Contains(exit.Stderr, said) {
				return &NoServerError{err}
			}
		}
	}
	return err
}

// Pane is a pane as tmux lists it, with its marks.
type Pane struct {
	ID      string           `json:"pane"`  // %N
	Where   string           `json:"where"` // SESSION:WINDOW.PANE
	Agent   string           `json:"agent"`
	Runtime string           `json:"runtime,omitempty"` // none on the host itself
	State   spec.ScreenState `json:"state,omitempty"`   // none where the screen has no rules
	InView  bool             `json:"in_view"`

	PID      int    `json:"-"` // of its first process
	Misnamed string `json:"-"` // what the user has named that is no agent

	server   int   // the process id of tmux's server
	dead     bool  // its program has ended, and tmux keeps it to be seen
	activity int64 // of its window, in seconds
	marks    shown
	named    string // by the user
	attached attached
}

// paneFormat is what parsePane reads. What a user or a program can name stands last.
var paneFormat = "#{pid} #{pane_id} #{pane_pid} #{pane_dead} #{pane_active}#{window_active}#{window_zoomed_flag} #{session_attached} #{window_activity} " +
	plain(MarkAgent) + plain(MarkRuntime) + plain(MarkState) + plain(NameOption) + plain(AttachedOption) + "#{session_name}:#{window_index}.#{pane_index}"

// plain is the format of an option in brackets: of one that holds anything but a
// plain word or path there is nothing between them. Somebody may use the same name.
func plain(option string) string {
	return "[#{?#{m/r:^[A-Za-z0-9/._-]+$,#{" + option + "}},#{" + option + "},}] "
}

// Panes returns all panes of the server, each once.
func (t Tmux) Panes(ctx context.Context) ([]Pane, error) {
	out, err := t.call(ctx, "list-panes", "-a", "-F", paneFormat)
	if err != nil {
		return nil, err
	}
	var panes []Pane
	at := map[string]int{}
	for line := range strings.Lines(out) {
		p, ok := parsePane(strings.TrimSuffix(line, "\n"))
		if !ok {
			continue
		}
		// A window that is linked into several sessions is listed with each.
		if i, twice := at[p.ID]; twice {
			panes[i].InView = panes[i].InView || p.InView
			continue
		}
		at[p.ID] = len(panes)
		panes = append(panes, p)
	}
	return panes, nil
}

// parsePane reads a line of paneFormat. A mark that is not one of ours is none: its
// name may be an option that somebody has set on a window for a purpose of his own.
func parsePane(line string) (Pane, bool) {
	server, line, _ := strings.Cut(line, " ")
	f := strings.SplitN(line, " ", 12)
	if len(f) < 12 || !paneID.MatchString(f[0]) || len(f[3]) != 3 {
		return Pane{}, false
	}
	p := Pane{ID: f[0], Where: spec.Printable(f[11], 200), dead: f[2] == "1"}
	p.server, _ = strconv.Atoi(server)
	p.PID, _ = strconv.Atoi(f[1])
	attached, _ := strconv.Atoi(f[4])
	p.activity, _ = strconv.ParseInt(f[5], 10, 64)
	p.InView = attached > 0 && f[3][1] == '1' && (f[3][0] == '1' || f[3][2] != '1')
	p.marks = parseMarks(strings.Trim(f[6], "[]"), strings.Trim(f[7], "[]"), spec.ScreenState(strings.Trim(f[8], "[]")))
	if p.marks.Agent != "" {
		p.Agent, p.Runtime, p.State = p.marks.Agent, p.marks.Runtime, p.marks.state
	}
	if named := strings.Trim(f[9], "[]"); slices.Contains(spec.AgentNames(), named) {
		p.named = named
	} else {
		p.Misnamed = named
	}
	p.attached = parseAttached(strings.Trim(f[10], "[]"))
	return p, p.PID > 0
}

// shown are the values of a pane's marks.
type shown struct {
	Found
	state spec.ScreenState
}

// parseMarks keeps the values that are of our making.
func parseMarks(agent, runtime string, state spec.ScreenState) (m shown) {
	if slices.Contains(spec.AgentNames(), agent) {
		m.Agent = agent
	}
	if _, ok := recognise.Runtime(runtime); ok {
		m.Runtime = runtime
	}
	if slices.Contains([]spec.ScreenState{spec.ScreenWorking, spec.ScreenWaiting, spec.ScreenIdle}, state) {
		m.state = state
	}
	return m
}

// mark sets the marks of a pane, and takes away those that are "". To hide is to set
// those to "", for a pane without an option has that of its window, session or server.
func (t Tmux) mark(ctx context.Context, pane string, m shown, hide bool) error {
	var words []string
	for i, value := range []string{m.Agent, m.Runtime, string(m.state)} {
		if i > 0 {
			words = append(words, ";")
		}
		words = append(words, "set-option", "-p")
		if value == "" && !hide {
			words = append(words, "-u", "-t", pane, marks[i])
		} else {
			words = append(words, "-t", pane, marks[i], value)
		}
	}
	_, err := t.call(ctx, words...)
	return err
}

// atOnce is of how many panes the screens are read in one call: tmux takes a command of
// 16 KB at most.
const atOnce = 50

// screens returns what is to be seen in panes.
func (t Tmux) screens(ctx context.Context, panes []string) map[string]string {
	seen := map[string]string{}
	for some := range slices.Chunk(panes, atOnce) {
		maps.Copy(seen, t.someScreens(ctx, some))
	}
	return seen
}

func (t Tmux) someScreens(ctx context.Context, panes []string) map[string]string {
	seen := map[string]string{}
	separator := rand.Text() + " " // no screen can have it
	var words []string
	for i, id := range panes {
		// Its number, for in "%3" tmux sees a time.
		words = append(words, "display-message", "-p", separator+strconv.Itoa(i), ";", "capture-pane", "-p", "-t", id, ";")
	}
	// Where a pane has gone meanwhile tmux stops: the others are read the next time.
	out, _ := t.call(ctx, words[:len(words)-1]...)
	for _, part := range strings.Split(out, separator)[min(1, strings.Count(out, separator)):] {
		number, screen, _ := strings.Cut(part, "\n")
		if i, err := strconv.Atoi(number); err == nil && i < len(panes) {
			seen[panes[i]] = screen
		}
	}
	return seen
}

var paneID = regexp.MustCompile(`^%[0-9]{1,9}$`)

// ValidID reports whether id is of the form of a pane's, %N.
func ValidID(id string) bool { return paneID.MatchString(id) }

// NoPaneError says that the server has no such pane.
type NoPaneError struct{ ID string }

func (e *NoPaneError) Error() string { return "tmux has no pane " + e.ID }

// Pane returns one pane.
func (t Tmux) Pane(ctx context.Context, id string) (Pane, error) {
	panes, err := t.Panes(ctx)
	if err != nil {
		return Pane{}, err
	}
	i := slices.IndexFunc(panes, func(p Pane) bool { return p.ID == id })
	if i < 0 {
		return Pane{}, &NoPaneError{id}
	}
	return panes[i], nil
}

// Server is the socket and the process of the server, or an error of the type
// *OldServerError.
func (t Tmux) Server(ctx context.Context) (socket string, pid int, err error) {
	out, err := t.call(ctx, "display-message", "-p", "#{version} #{pid} #{socket_path}")
	if err != nil {
		return "", 0, err
	}
	f := strings.SplitN(strings.TrimSuffix(out, "\n"), " ", 3)
	if len(f) < 3 {
		return "", 0, fmt.Errorf("tmux's answer is not understood: %q", spec.Printable(out, 100))
	}
	if tooOld(f[0]) {
		return "", 0, &OldServerError{f[0]}
	}
	pid, err = strconv.Atoi(f[1])
	return f[2], pid, err
}

// OldServerError says that the server has no popups, no messages that last, or not even
// options of panes.
type OldServerError struct{ Version string }

func (e *OldServerError) Error() string {
	return "tmux " + spec.Printable(e.Version, 20) + " is too old: 3.2 or later is needed"
}

// tooOld reports whether version is one before 3.2. What is no number is not released.
func tooOld(version string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 {
		return false
	}
	return major < 3 || major == 3 && minor < 2
}
