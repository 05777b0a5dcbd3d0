package engine

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/process"
)

// Create makes the containers, networks and volumes of a project from its
// Compose file and starts nothing. Existing containers are replaced: after a
// fill, no container is ever handed to Compose again.
func (e *Engine) Create(ctx context.Context, project, file string) error {
	_, err := e.docker(ctx, "compose",
		"--project-name", project,
		"--file", file,
		"--progress", "plain", // lines for the error, no redrawing
		"up", "--no-start",
		"--force-recreate") // a container found in "created" may hold half a fill
	return err
}

// PullServices pulls the images of services of a project.
func (e *Engine) PullServices(ctx context.Context, project, file string, services []string) error {
	return e.prepare(ctx, project, file, "pull", services)
}

// BuildServices builds services of a project.
func (e *Engine) BuildServices(ctx context.Context, project, file string, services []string) error {
	return e.prepare(ctx, project, file, "build", services)
}

// prepare has Compose get images. It may take very long, and does nothing that could
// be in the way of another command.
func (e *Engine) prepare(ctx context.Context, project, file, verb string, services []string) error {
	argv := []string{e.Runtime, "compose", "--project-name", project, "--file", file, "--progress", "plain", verb}
	_, err := e.command(ctx, process.Command{Argv: append(argv, services...), Apart: true})
	return err
}

// Fill copies a tar into a created container. The tar crosses into named
// volumes; owner and mode survive. It may hold regular files, and directories
// that are ours alone: a directory entry resets the owner of what exists.
func (e *Engine) Fill(ctx context.Context, container string, write func(*tar.Writer) error) error {
	r, w := io.Pipe()
	go func() {
		tw := tar.NewWriter(w)
		err := write(tw)
		if err == nil {
			err = tw.Close()
		}
		w.CloseWithError(err)
	}()
	_, err := e.command(ctx, process.Command{Argv: []string{e.Runtime, "cp", "-", container + ":/"}, Stdin: r})
	r.CloseWithError(err)
	return err
}

// CopyOut reads the tar of a path in a container, running or not. It returns
// false when the path does not exist. The content comes from the container and
// is not to be trusted: read is given at most limit bytes, then
// ErrTooMuch, and what it leaves unread is not asked for: a sparse file of
// exabytes costs an agent nothing.
func (e *Engine) CopyOut(ctx context.Context, container, path string, limit int64, read func(*tar.Reader) error) (bool, error) {
	r, w := io.Pipe()
	source := &bounded{from: r, left: limit}
	done := make(chan error, 1)
	go func() {
		err := read(tar.NewReader(source))
		r.CloseWithError(errEnough) // ends the engine's command
		done <- err
	}()
	_, err := e.command(ctx, process.Command{Argv: []string{e.Runtime, "cp", container + ":" + path, "-"}, Stdout: w})
	w.CloseWithError(io.EOF)
	readErr := <-done
	switch {
	case err == nil || !source.ended:
		// The reader's word counts; the command may have been cut short by it.
		return true, readErr
	case missingPath(err):
		return false, nil
	}
	return false, err
}

// ErrTooMuch says that a container has handed out more than it may.
var ErrTooMuch = errors.New("more than may be read from a container")

// errEnough ends a command whose output nobody reads any more.
var errEnough = errors.New("enough was read")

// bounded reads at most left bytes, and notes whether the source has ended.
type bounded struct {
	from  io.Reader
	left  int64
	ended bool
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooMuch
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

// Beside is what starts before an agent.
type Beside struct {
	Gateway  bool
	Services bool
}

// Any reports whether there is anything.
func (b Beside) Any() bool { return b.Gateway || b.Services }

// Start starts a container that was created and filled, after what is beside it:
// of services Compose knows order and health conditions from the labels it wrote.
func (e *Engine) Start(ctx context.Context, name string, beside Beside) error {
	args := []string{"start"}
	if beside.Gateway { // the engine starts them in this order; the agent waits for its proof
		args = append(args, compose.GatewayContainer(name))
	}
	args = append(args, compose.ProjectName(name))
	if beside.Services {
		args = []string{"compose", "--project-name", compose.ProjectName(name), "--progress", "plain", "start"}
	}
	// Without --file, Compose would read a .env of the working directory.
	_, err := e.command(ctx, process.Command{Argv: append([]string{e.Runtime}, args...), Dir: "/"})
	return err
}

// Stop sends TERM to containers, all at once, and KILL after the grace period
// that the model gave each.
func (e *Engine) Stop(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := e.docker(ctx, append([]string{"stop"}, ids...)...)
	if missing(err) {
		return nil // gone meanwhile: it does not run
	}
	return err
}

// Restart stops containers and starts them again.
func (e *Engine) Restart(ctx context.Context, ids ...string) error {
	_, err := e.docker(ctx, append([]string{"restart"}, ids...)...)
	return err
}

// unlessStopped is the restart policy of what is to run until it is stopped.
const unlessStopped = "unless-stopped"

// Stay notes on containers, which the model made to run until they are stopped,
// whether they are to stay stopped: so that what the engine has ended can be told
// from what the user has.
func (e *Engine) Stay(ctx context.Context, stopped bool, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	policy := unlessStopped
	if stopped {
		policy = "no"
	}
	_, err := e.docker(ctx, append([]string{"update", "--restart", policy}, ids...)...)
	if missing(err) {
		return nil
	}
	return err
}

// Kill sends KILL to a container.
func (e *Engine) Kill(ctx context.Context, id string) error {
	_, err := e.docker(ctx, "kill", id)
	return err
}

// Rename gives a container another name.
func (e *Engine) Rename(ctx context.Context, id, name string) error {
	_, err := e.docker(ctx, "rename", id, name)
	return err
}

// Remove removes stopped containers; one that is gone already is no error. One
// that the engine is removing, for a command that was killed say, is waited for.
func (e *Engine) Remove(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	for began := time.Now(); ; {
		_, err := e.docker(ctx, append([]string{"rm",
			"--force",   // a container may have been restarted meanwhile
			"--volumes", // the anonymous ones of a service, which nobody can name; named ones stay
		}, ids...)...)
		switch {
		case missing(err):
			return nil
		case !beingRemoved(err) || time.Since(began) > busyTime:
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// pause is the time between two looks at what the engine is still at.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}

// Logs copies a container's output to s; follow goes on until it ends. since
// and tail are in the engine's own words, empty for everything.
func (e *Engine) Logs(ctx context.Context, container string, follow bool, since, tail string, s Streams) error {
	argv := []string{e.Runtime, "logs"}
	if follow {
		argv = append(argv, "--follow")
	}
	if since != "" {
		argv = append(argv, "--since", since)
	}
	if tail != "" {
		argv = append(argv, "--tail", tail)
	}
	return lost(e.run.Run(ctx, process.Command{Argv: append(argv, container), Stdout: s.Out, Stderr: s.Err}))
}

// Exec runs a command in a running container with the agent's environment and
// returns its *process.ExitError unless it exits 0.
func (e *Engine) Exec(ctx context.Context, container string, argv []string, s Streams) error {
	// -i as ssh does; a TTY only on a terminal: it merges the streams and
	// rewrites line ends.
	full := []string{e.Runtime, "exec", "--interactive"}
	if s.Terminal {
		full = append(full, "--tty", "--env", "TERM="+os.Getenv("TERM")) // the engine says "xterm" otherwise
	}
	full = append(append(full, container), argv...)
	return e.run.Run(ctx, process.Command{Argv: full, Stdin: s.In, Stdout: s.Out, Stderr: s.Err, Foreground: s.Foreground})
}

// maxProbe is the most that a probe reads of a command's output.
const maxProbe = 1 << 20

// Probe runs a command in a running container and returns its output. What a
// container says is not to be trusted: beyond maxProbe it is ErrTooMuch.
func (e *Engine) Probe(ctx context.Context, container string, argv ...string) (string, error) {
	out := &capped{left: maxProbe}
	_, err := e.command(ctx, process.Command{Argv: append([]string{e.Runtime, "exec", container}, argv...), Stdout: out})
	if out.left < 0 {
		err = ErrTooMuch // whatever the command said when nobody listened any more
	}
	return out.String(), err
}

// capped takes left bytes and refuses what is more.
type capped struct {
	strings.Builder
	left int
}

func (c *capped) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		return 0, ErrTooMuch
	}
	return c.Builder.Write(p)
}
