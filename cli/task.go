package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/spec"
)

// readTask returns the task that was typed, nil when none was. It may be of
// any size and hold any byte but NUL, which no agent's input can carry.
func (a *app) readTask(c *ucli.Context, mode spec.Mode) ([]byte, error) {
	if !c.IsSet("task") {
		if mode == spec.Headless {
			return nil, refuse("add --task TEXT, --task @FILE, or --task - for standard input", "a headless job needs a task")
		}
		return nil, nil
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
