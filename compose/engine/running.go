package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/process"
)

// Running is a running container with an agent in it, ours or not.
type Running struct {
	Name       string
	Deployment string // whose agent container it is, "" for any other container
	Agent      string // of a deployment: what was deployed, "" where its label is not understood
}

// running is what is asked of a container. Its environment is not: it holds
// credentials, and so may its arguments, which are read and not kept.
type running struct {
	Name       string
	Path       string   // the program of its first process
	Args       []string // and its arguments, exactly
	Deployment string
	Spec       string

	// What Path and Args were put together from, and the image that the first of
	// them may come from.
	Entrypoint, Cmd []string
	Image           string
}

const runningFormat = `{"Name":{{json .Name}},"Path":{{json .Path}},"Args":{{json .Args}},` +
	`"Deployment":{{json (index .Config.Labels "` + compose.LabelName + `")}},"Spec":{{json (index .Config.Labels "` + compose.LabelSpec + `")}},` +
	`"Entrypoint":{{json .Config.Entrypoint}},"Cmd":{{json .Config.Cmd}},"Image":{{json .Image}}}`

// Running returns the agents' containers of all deployments, and of all other
// containers those of which agent, given a program and its arguments, returns an
// agent, sorted by name; of those that run. It makes two engine calls, and a third where
// an image's own entrypoint stands before an agent; if that fails, the rest is returned
// with the error. The engine is given up after busyTime, which is an *UnreachableError.
func (e *Engine) Running(ctx context.Context, agent func(argv []string) string) ([]Running, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, busyTime, noAnswer(busyTime))
	defer cancel()
	found, err := e.running(ctx, agent)
	var late noAnswer
	if errors.As(err, &late) {
		err = unreachable(late)
	}
	return found, err
}

func (e *Engine) running(ctx context.Context, agent func(argv []string) string) ([]Running, error) {
	out, err := e.read(ctx, "ps", "--quiet", "--no-trunc")
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	var found []Running
	var behind []running // an agent stands behind the entrypoint, whose ever that is
	err = describe(ctx, e, "container", runningFormat, strings.Fields(string(out)), func(c running) {
		c.Name = strings.TrimPrefix(c.Name, "/")
		r := Running{Name: c.Name, Agent: agent(append([]string{c.Path}, c.Args...))}
		switch {
		case c.Deployment != "" && c.Name == compose.ProjectName(c.Deployment):
			s, _ := compose.SpecOf(map[string]string{compose.LabelSpec: c.Spec})
			found = append(found, Running{Name: c.Name, Deployment: c.Deployment, Agent: s.Agent})
		case r.Agent != "":
			found = append(found, r)
		case len(c.Entrypoint) > 0 && agent(c.Cmd) != "":
			behind = append(behind, c)
		}
	})
	if err != nil {
		return nil, err
	}
	own, err := e.entrypoints(ctx, behind)
	for _, c := range behind {
		if slices.Equal(c.Entrypoint, own[c.Image]) {
			found = append(found, Running{Name: c.Name, Agent: agent(c.Cmd)})
		}
	}
	slices.SortFunc(found, func(a, b Running) int { return strings.Compare(a.Name, b.Name) })
	return found, err
}

// entrypoints returns the entrypoints of the images of containers. An --entrypoint
// that was given instead takes the words behind the image for its arguments.
func (e *Engine) entrypoints(ctx context.Context, containers []running) (map[string][]string, error) {
	var ids []string
	for _, c := range containers {
		ids = append(ids, c.Image)
	}
	slices.Sort(ids)
	type image struct {
		ID         string
		Entrypoint []string
	}
	own := map[string][]string{}
	err := describe(ctx, e, "image", `{"ID":{{json .Id}},"Entrypoint":{{json .Config.Entrypoint}}}`, slices.Compact(ids), func(i image) {
		own[i.ID] = i.Entrypoint
	})
	return own, err
}

// describe hands to visit what inspect prints of each thing by format, a line of
// JSON; one that is gone meanwhile is left out. No error has a word of it.
func describe[T any](ctx context.Context, e *Engine, kind, format string, ids []string, visit func(T)) error {
	if len(ids) == 0 {
		return nil
	}
	out, err := e.read(ctx, append([]string{kind, "inspect", "--format", format}, ids...)...)
	if err != nil && !missing(err) {
		return fmt.Errorf("inspect: %w", err)
	}
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var one T
		switch err := lines.Decode(&one); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errors.New("inspect: unreadable answer of the engine")
		}
		visit(one)
	}
}

// read is docker for a question that is given up as soon as ctx ends.
func (e *Engine) read(ctx context.Context, args ...string) ([]byte, error) {
	return e.command(ctx, process.Command{Argv: append([]string{e.Runtime}, args...), Grace: 500 * time.Millisecond})
}
