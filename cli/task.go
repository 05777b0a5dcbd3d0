package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
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
	task, err := input(c.Context, func() ([]byte, error) { return a.taskBytes(c.String("task")) })
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

// taskSumFile, in a deployment's state, holds the SHA-256 of the task that was
// given last: the agent can write where an undelivered one is kept, and must not
// give itself another, which would be billed.
const taskSumFile = "task.sha256"

func taskSum(task []byte) []byte {
	sum := sha256.Sum256(task)
	return []byte(hex.EncodeToString(sum[:]))
}

// keepTaskSum keeps the sum of d's task. One that is carried over or stays where
// it is has it already.
func (a *app) keepTaskSum(d *deployment) error {
	path := a.operationPath(d.spec.Name, taskSumFile)
	switch {
	case d.fill.keeps || d.kept != nil:
		return nil
	case d.fill.task == nil:
		if err := os.Remove(path); !absent(err) {
			return err
		}
		return nil
	}
	if err := settings.MakePrivate(filepath.Dir(path)); err != nil {
		return err
	}
	return renameio.WriteFile(path, taskSum(d.fill.task), 0o600)
}

// undeliveredTask reads the task that a deployment was filled with and that no
// agent has got: nil when there is none, an agent has it, or it is not the one
// that was given.
func (a *app) undeliveredTask(ctx context.Context, e *engine.Engine, name string) ([]byte, error) {
	sum, err := settings.ReadRegular(a.operationPath(name, taskSumFile), 4096)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	task, err := readUndelivered(ctx, e, name)
	if err != nil || task == nil || !bytes.Equal(sum, taskSum(task)) {
		return nil, err
	}
	given, err := a.wasGiven(name, string(sum))
	if err != nil || given {
		return nil, err
	}
	return task, nil
}

// wasGiven reports whether a run that was brought in says that an agent has got
// the task with this sum, since it was given.
func (a *app) wasGiven(name, sum string) (bool, error) {
	path := a.operationPath(name, taskSumFile)
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	list, err := a.runs().List(name)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.Records, func(r *spec.Record) bool {
		return r.TaskSHA256 == sum && r.AgentAt != nil && r.AgentAt.After(info.ModTime())
	}), nil
}

func readUndelivered(ctx context.Context, e *engine.Engine, name string) ([]byte, error) {
	var task []byte
	_, err := e.CopyOut(ctx, compose.ProjectName(name), spec.ContainerSecretsDir+"/"+spec.FillUndelivered, maxUndelivered+64<<10, func(t *tar.Reader) error {
		if _, err := t.Next(); err != nil {
			return err
		}
		content, err := io.ReadAll(io.LimitReader(t, maxUndelivered))
		if whole, ok := bytes.CutSuffix(content, []byte{0}); ok && bytes.IndexByte(whole, 0) < 0 {
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
		if a.inTerminal {
			a.say("type the task; end it with Ctrl-D at the beginning of a line")
		}
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
