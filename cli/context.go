package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
)

func contextCommand() command {
	return command{
		name: "context", group: groupLook, usage: "show what applies here and where it comes from",
		run: (*app).context,
	}
}

// contextAnswer is every setting with its origin, and the places of files.
type contextAnswer struct {
	Runtime     runtimeAnswer   `json:"runtime"`
	Settings    []settingAnswer `json:"settings"`
	Project     string          `json:"project,omitempty"`
	Directories struct {
		Config string `json:"config"`
		State  string `json:"state"`
		Data   string `json:"data"`
	} `json:"directories"`
}

type runtimeAnswer struct {
	Name    string `json:"name"`
	Origin  string `json:"origin"`
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"`
}

type settingAnswer struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// context is valid in every state: an engine that does not answer is told, not
// an error.
func (a *app) context(ctx context.Context, _ *ucli.Context) (any, error) {
	if err := a.config(); err != nil {
		return nil, err
	}
	var answer contextAnswer
	e, err := a.engine(ctx)
	var unreachable *engine.UnreachableError
	switch {
	case errors.As(err, &unreachable):
		answer.Runtime.Problem = oneLine(err.Error())
	case err != nil:
		return nil, err
	default:
		answer.Runtime.Version = e.Version
	}
	v := a.settings.Get("runtime")
	answer.Runtime.Name, answer.Runtime.Origin = v.Text, v.Origin
	for _, k := range settings.Keys[1:] { // the first is the runtime
		v := a.settings.Get(k.Name)
		answer.Settings = append(answer.Settings, settingAnswer{k.Name, v.Text, v.Origin})
	}
	answer.Project = a.settings.Project
	answer.Directories.Config, answer.Directories.State, answer.Directories.Data = a.dirs.Config, a.dirs.State, a.dirs.Data
	return answer, nil
}

func (c contextAnswer) text(w io.Writer) {
	switch {
	case c.Runtime.Problem != "":
		fmt.Fprintf(w, "runtime: none (%s)\n", c.Runtime.Problem)
	default:
		fmt.Fprintf(w, "runtime: %s (%s), engine %s\n", c.Runtime.Name, c.Runtime.Origin, c.Runtime.Version)
	}
	for _, s := range c.Settings {
		value := s.Value
		if value == "" {
			value = "not limited"
		}
		fmt.Fprintf(w, "%s: %s (%s)\n", strings.ReplaceAll(s.Key, "_", " "), value, s.Origin)
	}
	if c.Project != "" {
		fmt.Fprintf(w, "project: %s\n", c.Project)
	}
	fmt.Fprintf(w, "config: %s\nstate: %s\ndata: %s\n", c.Directories.Config, c.Directories.State, c.Directories.Data)
}
