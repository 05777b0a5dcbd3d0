// Package cli is the command line: one file a command, one list of commands,
// one table of exit codes. It turns words into calls of the packages below and
// their answers into text or JSON.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"
	ucli "github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/runs"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// app is what every command needs. It is made once, by Main.
type app struct {
	in       io.Reader
	out      io.Writer // the answer
	err      io.Writer // the conversation
	env      func(string) string
	cwd      string
	dirs     settings.Directories
	settings *settings.Settings
	runner   *process.Runner
	signals  *signalRelay

	json        bool
	inTerminal  bool     // stdin is a terminal
	terminal    bool     // stdin and stdout are terminals and nobody said --no-input
	errTerminal bool     // stderr is a terminal: progress may redraw its line
	typed       []string // the command line after the program's name
	openEngine  *engine.Engine
	warned      bool            // of credentials in a URL
	alarmed     map[string]bool // ids of runs of which alarm has spoken
	operating   *flock.Flock    // held while this command is an operation, else nil
	noted       []byte          // the note of the operation that this command is, else nil
	ends        bool            // the command stops or removes: what a killed one has left at work does not keep it
	orphaned    bool            // such a thing was waited for long enough
	over        bool            // whether the job that this command followed is over, its record settled
}

// Main runs the program with argv and returns its exit code.
func Main(argv []string, in, out, errOut *os.File) int {
	a := &app{in: in, out: out, err: errOut, env: os.Getenv, runner: &process.Runner{Env: childEnvironment()}}
	a.inTerminal = isTerminal(in)
	a.terminal = a.inTerminal && isTerminal(out)
	a.errTerminal = isTerminal(errOut)
	ctx := a.watchSignals()
	err := a.run(ctx, argv)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return a.report(err)
}

// childEnvironment is ours without Compose's own variables: a COMPOSE_FILE or
// COMPOSE_REMOVE_ORPHANS of the user's would change what our project is.
func childEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "COMPOSE_") })
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// run parses argv and runs its command.
func (a *app) run(ctx context.Context, argv []string) error {
	commands := commands()
	if len(argv) > 2 && argv[1] == completionFlag {
		a.complete(ctx, commands, argv[2], argv[3:])
		return nil
	}
	a.typed = argv[min(1, len(argv)):]
	swallowed := checkValues(commands, argv)
	argv, globals := splitGlobals(commands, argv)
	a.json = globals["--json"]
	if globals["--no-input"] {
		a.terminal = false
	}
	if globals["--verbose"] || globals["-v"] {
		a.runner.Trace = a.err
	}
	if swallowed != nil {
		return swallowed
	}
	return a.program(commands).RunContext(ctx, reorder(commands, argv))
}

// program builds the urfave application. Its traps are closed here: it must
// neither exit by itself, nor print errors, nor split values at commas, nor
// take an unknown command for success.
func (a *app) program(list []command) *ucli.App {
	p := &ucli.App{
		Name:                      "agent-container",
		Usage:                     "deploy coding agents into containers",
		UsageText:                 "agent-container COMMAND [NAME] [flags]",
		Version:                   version(),
		HideVersion:               true, // a command says more
		HideHelpCommand:           true,
		DisableSliceFlagSeparator: true,
		Writer:                    a.out,
		ErrWriter:                 a.err,
		ExitErrHandler:            func(*ucli.Context, error) {},
		OnUsageError:              usageError,
		Flags:                     globalFlags(),
		CustomAppHelpTemplate:     appHelp(),
		Action: func(c *ucli.Context) error {
			if c.Args().Present() {
				return unknownCommand(list, c.Args().First())
			}
			if a.json {
				return refuse("run: agent-container --help", "no command")
			}
			return ucli.ShowAppHelp(c)
		},
	}
	for _, c := range list {
		p.Commands = append(p.Commands, a.urfave("", c))
	}
	return p
}

// usageError makes a bad flag an error of ours; urfave would print the help to
// stdout.
func usageError(c *ucli.Context, err error, _ bool) error {
	text := err.Error()
	hint := "run: agent-container " + strings.TrimSpace(strings.TrimPrefix(c.Command.HelpName, c.App.Name)) + " --help"
	if typed, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		var known []string
		for _, f := range append(globalFlags(), c.Command.Flags...) {
			known = append(known, f.Names()[0])
		}
		if near := spec.Nearest(typed, known); near != "" {
			hint = fmt.Sprintf("did you mean \"--%s\"?", near)
		}
	}
	return refuse(strings.Join(strings.Fields(hint), " "), "%s", strings.TrimSpace(text))
}

// places finds the directories. It is all that a command needs which only looks
// at or stops what is there: a mistake in a settings file must not keep anybody
// from stopping an agent that is billed.
func (a *app) places() error {
	var err error
	a.dirs, err = settings.FindDirectories(a.env)
	return err
}

// config reads directories and settings, once.
func (a *app) config() error {
	if a.settings != nil {
		return nil
	}
	err := a.places()
	if err != nil {
		return err
	}
	if a.cwd, err = os.Getwd(); err != nil {
		return err
	}
	a.settings, err = settings.Load(a.dirs.Config, a.cwd, a.settingVariable)
	return err
}

// inherited are variables that a container of ours sets for its own use: there
// they say what the container is, not what the user wants.
var inherited = []string{"AGENT_CONTAINER_MODE", "AGENT_CONTAINER_AGENT", "AGENT_CONTAINER_NAME"}

func (a *app) settingVariable(name string) string {
	if a.env("AGENT_CONTAINER_NAME") != "" && slices.Contains(inherited, name) {
		return ""
	}
	return a.env(name)
}

// engine finds the container engine, once. What is asked of it first does not
// wait for the answer to who it is; an engine that cannot be used is the error
// of both.
func (a *app) engine(ctx context.Context, meanwhile ...func(context.Context, *engine.Engine) error) (*engine.Engine, error) {
	e, asks := a.openEngine, []func(context.Context) error{}
	if e == nil {
		e = engine.New(a.runner)
		asks = append(asks, e.Answer)
	}
	for _, ask := range meanwhile {
		asks = append(asks, func(ctx context.Context) error { return ask(ctx, e) })
	}
	if err := together(ctx, asks...); err != nil {
		return nil, err
	}
	a.openEngine = e
	if a.settings != nil && a.settings.Get("runtime").Text == "" {
		a.settings.Set("runtime", e.Runtime, "detected")
	}
	return e, nil
}

func (a *app) runs() runs.Store { return runs.Store{Dir: a.dirs.Data + "/runs"} }

// maxSaid bounds a line of the conversation.
const maxSaid = 16 << 10

// say prints a line of the conversation: one line, and none that steers a
// terminal, whatever a file's name, a child or a container has put into it.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.err, spec.Printable("agent-container: "+fmt.Sprintf(format, args...), maxSaid))
}

// streams are where a child's output goes: with --json stdout is the
// envelope's alone.
func (a *app) streams() engine.Streams {
	s := engine.Streams{In: a.in, Out: a.out, Err: a.err, Terminal: a.terminal && !a.json, Foreground: a.inTerminal}
	if a.json {
		s.Out = a.err
	}
	return s
}

// signalRelay hands signals to whoever is responsible for them now.
type signalRelay struct {
	mu      sync.Mutex
	handler func(os.Signal)
}

func (r *signalRelay) set(handler func(os.Signal)) (former func(os.Signal)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	former, r.handler = r.handler, handler
	return former
}

func (r *signalRelay) deliver(s os.Signal) {
	r.mu.Lock()
	handler := r.handler
	r.mu.Unlock()
	handler(s)
}

// watchSignals returns a context that INT, TERM and HUP cancel. PIPE is caught
// so that a closed stdout is an error that a command can answer.
func (a *app) watchSignals() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	a.signals = &signalRelay{handler: func(s os.Signal) {
		switch s {
		case syscall.SIGINT:
			cancel(errInterrupted)
		case syscall.SIGHUP:
			cancel(errHungUp)
		default:
			cancel(errTerminated)
		}
	}}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	received := make(chan os.Signal, 4)
	signal.Notify(received, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		for s := range received {
			a.signals.deliver(s)
		}
	}()
	return ctx
}
