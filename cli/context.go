package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
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
	Keys        []string        `json:"keys"`   // the agents' variables that are set here; --env takes them
	Attach      admittedAnswer  `json:"attach"` // who is let in over ssh
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

// admittedAnswer is where the keys come from that a new deployment lets in.
type admittedAnswer struct {
	File    string `json:"file"`
	Keys    int    `json:"keys"`
	Own     bool   `json:"own"` // the tool's own key: there is no collection
	Problem string `json:"problem,omitempty"`
}

type settingAnswer struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`

	unset string // what no value means
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
		answer.Settings = append(answer.Settings, settingAnswer{k.Name, v.Text, v.Origin, k.Unset})
	}
	answer.Keys, answer.Attach = a.keysHere(), a.whoAttaches()
	answer.Project = a.settings.Project
	answer.Directories.Config, answer.Directories.State, answer.Directories.Data = a.dirs.Config, a.dirs.State, a.dirs.Data
	return answer, nil
}

// keysHere are the variables from which agents read a key, as far as they are
// set here: never their values.
func (a *app) keysHere() []string {
	keys := []string{}
	for _, agent := range spec.Agents {
		for _, k := range agent.Keys {
			if a.env(k) != "" && !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

func (a *app) whoAttaches() admittedAnswer {
	path := a.dirs.AuthorizedKeys()
	keys, err := readKeys(path)
	switch {
	case absent(err):
		return admittedAnswer{File: a.attachKeyPath(), Keys: 1, Own: true}
	case err != nil:
		return admittedAnswer{File: path, Problem: oneLine(err.Error())}
	}
	return admittedAnswer{File: path, Keys: bytes.Count(keys, []byte("\n"))}
}

func (w admittedAnswer) String() string {
	switch {
	case w.Problem != "":
		return "nobody new (" + w.Problem + ")"
	case w.Own:
		return "our own key (" + w.File + "; there is no authorized_keys)"
	}
	return fmt.Sprintf("%d keys (%s)", w.Keys, w.File)
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
			value = s.unset
		}
		if value == "" {
			value = "not limited"
		}
		fmt.Fprintf(w, "%s: %s (%s)\n", strings.ReplaceAll(s.Key, "_", " "), value, s.Origin)
	}
	if len(c.Keys) > 0 {
		fmt.Fprintf(w, "keys: %s (environment; --env takes them)\n", strings.Join(c.Keys, ", "))
	} else {
		fmt.Fprintln(w, "keys: none of the agents' is set here")
	}
	fmt.Fprintf(w, "attach: %s\n", c.Attach)
	if c.Project != "" {
		fmt.Fprintf(w, "project: %s\n", c.Project)
	}
	fmt.Fprintf(w, "config: %s\nstate: %s\ndata: %s\n", c.Directories.Config, c.Directories.State, c.Directories.Data)
}
