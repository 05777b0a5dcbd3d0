package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// readTask returns the task that was typed, else one that was never started, or
// nil. It may be of any size and hold any byte but NUL, which no agent's input can
// carry.
func (a *app) readTask(c *ucli.Context, mode spec.Mode, from kept) ([]byte, error) {
	if !c.IsSet("task") {
		if mode == spec.Headless && from.task == nil && !from.begun {
			return nil, needsTask()
		}
		if mode == spec.Idle {
			return nil, nil
		}
		return from.task, nil
	}
	if mode == spec.Idle {
		return nil, refuse("drop --task, or choose another --mode", "--task has no meaning with --mode idle: work comes by exec")
	}
	task, err := a.taskBytes(c.String("task"))
	if err != nil {
		return nil, err
	}
	if i := bytes.IndexByte(task, 0); i >= 0 {
		return nil, refuse("remove it", "--task: byte %d is NUL", i+1)
	}
	return task, nil
}

func needsTask() error {
	return refuse("add --task TEXT, --task @FILE, or --task - for standard input", "a headless job needs a task")
}

// undeliveredTask reads the task that a deployment was filled with and that no
// agent has got: nil when there is none, or an agent has it.
func undeliveredTask(ctx context.Context, e *engine.Engine, name string) ([]byte, error) {
	var task []byte
	_, err := e.CopyOut(ctx, compose.ProjectName(name), spec.ContainerSecretsDir+"/"+spec.FillUndelivered, maxUndelivered+64<<10, func(t *tar.Reader) error {
		if _, err := t.Next(); err != nil {
			return err
		}
		content, err := io.ReadAll(io.LimitReader(t, maxUndelivered))
		if whole, ok := bytes.CutSuffix(content, []byte{0}); ok {
			task = whole
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the task of %s: %w", name, err)
	}
	return task, nil
}

// maxUndelivered bounds a task that is carried over; a container says how large
// it is.
const maxUndelivered = 256 << 20

func (a *app) taskBytes(text string) ([]byte, error) {
	switch {
	case text == "-":
		task, err := io.ReadAll(a.in)
		if err != nil {
			return nil, fmt.Errorf("--task -: %w", err)
		}
		return task, nil
	case strings.HasPrefix(text, "@"):
		task, err := os.ReadFile(text[1:])
		if err != nil {
			return nil, refuse("--task @FILE reads a file; text that begins with @ goes through --task -", "--task: %v", err)
		}
		if task == nil {
			task = []byte{}
		}
		return task, nil
	}
	return []byte(text), nil
}
