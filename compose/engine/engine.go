// Package engine runs compose models on a container engine and reads their
// state back. It starts the engine's own command line, so contexts, sockets
// and credentials are found as the user's own commands find them.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-container/agent-container/process"
)

// LocalHost is the name under which state and records of the engine that the
// user's command line reaches by itself are kept.
const LocalHost = "local"

// answerTime is how long an engine may take for its first answer. A socket
// that accepts and never answers must not hang a script.
const answerTime = 4 * time.Second

// Engine is a container engine.
type Engine struct {
	Runtime string // "docker"
	Version string // of the server, after Answer
	Arch    string // of the server, in Go's words, after Answer
	run     *process.Runner
}

// UnreachableError says that there is no usable engine, and what was tried.
type UnreachableError struct {
	Tried   string
	Problem string
	Hint    string
}

func (e *UnreachableError) Error() string { return e.Tried + ": " + e.Problem }

// minMajor is the oldest engine that is tested.
const minMajor = 20

// New is the engine that runner's command line reaches. Nothing is asked yet.
func New(runner *process.Runner) *Engine { return &Engine{Runtime: "docker", run: runner} }

// Answer asks the engine for its version and architecture. The error is an
// *UnreachableError, within answerTime.
func (e *Engine) Answer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	out, err := e.run.Output(ctx, process.Command{
		Argv:  []string{"docker", "version", "--format", "{{json .}}"},
		Grace: 500 * time.Millisecond, // a client that hangs may be deaf to TERM too
	})
	if err != nil {
		return unreachable(err)
	}
	var v struct {
		Server *struct{ Version, Arch string }
	}
	if err := json.Unmarshal(out, &v); err != nil || v.Server == nil {
		return &UnreachableError{Tried: endpoint(), Problem: "its version is unreadable", Hint: "run: docker version"}
	}
	e.Version, e.Arch = v.Server.Version, v.Server.Arch
	if e.Major() < minMajor {
		return &UnreachableError{Tried: endpoint(), Problem: fmt.Sprintf("engine %s is too old: %d or later is needed", e.Version, minMajor)}
	}
	return nil
}

// Major returns the major version of the engine, 0 where it is unreadable.
func (e *Engine) Major() int {
	major, _, _ := strings.Cut(e.Version, ".")
	n, _ := strconv.Atoi(major)
	return n
}

// endpoint names what the engine's command line was told to talk to.
func endpoint() string {
	switch {
	case os.Getenv("DOCKER_HOST") != "":
		return "docker at " + os.Getenv("DOCKER_HOST") + " (DOCKER_HOST)"
	case os.Getenv("DOCKER_CONTEXT") != "":
		return "docker context " + os.Getenv("DOCKER_CONTEXT") + " (DOCKER_CONTEXT)"
	}
	return "docker at the current context"
}

func unreachable(err error) *UnreachableError {
	e := &UnreachableError{Tried: endpoint(), Problem: err.Error(), Hint: "start the engine, then check with: docker version"}
	var exit *process.ExitError
	switch {
	case errors.Is(err, process.ErrNotFound):
		e.Problem, e.Hint = "no docker on PATH", "install Docker Engine with its compose and buildx plugins"
	case errors.Is(err, context.DeadlineExceeded):
		e.Problem = fmt.Sprintf("no answer within %s", answerTime)
	case errors.As(err, &exit):
		e.Problem = strings.TrimPrefix(lastLine(exit.Stderr), "ERROR: ")
		if strings.Contains(e.Problem, "permission denied") {
			e.Hint = "let this user reach the socket, for example by the group docker"
		}
	}
	return e
}

// docker runs one engine command and returns its stdout.
func (e *Engine) docker(ctx context.Context, args ...string) ([]byte, error) {
	return e.command(ctx, process.Command{Argv: append([]string{e.Runtime}, args...)})
}

// command runs c, an argv of the engine, and turns the loss of the engine into
// an *UnreachableError.
func (e *Engine) command(ctx context.Context, c process.Command) ([]byte, error) {
	if c.Stdout != nil {
		return nil, lost(e.run.Run(ctx, c))
	}
	out, err := e.run.Output(ctx, c)
	return out, lost(err)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// Streams are where a child's input and output go.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // In and Out are one terminal that the child takes over

	// Foreground is whether In is a terminal. A child that reads it from a
	// group of its own would be stopped by SIGTTIN, for ever.
	Foreground bool
}

// CPUs is how many processors the engine's host has: it refuses to give a
// container more, once the old one is gone.
func (e *Engine) CPUs(ctx context.Context) (int, error) {
	out, err := e.docker(ctx, "info", "--format", "{{.NCPU}}")
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || n < 1 {
		return 0, fmt.Errorf("docker info does not say how many processors there are: %q", out)
	}
	return n, nil
}

// sortedKeys returns the keys of m in order.
func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
