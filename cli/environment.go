package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// environment is the user's environment for the agent, by name. Its values are
// secrets: they are never part of an error.
type environment map[string]string

// set adds a variable; where says what to name in a refusal.
func (e environment) set(where, name, value string) error {
	switch {
	case !spec.ValidVariable(name):
		return refuse("a name has letters, digits and _", "%s: %q is not a variable's name", where, spec.Printable(name, 60))
	case strings.HasPrefix(name, spec.EnvPrefix):
		return refuse("give it another name", "%s: %s is our own", where, name)
	case strings.ContainsRune(value, 0):
		return refuse("remove it", "%s: the value of %s holds NUL", where, name)
	}
	e[name] = value
	return nil
}

// encode returns the entries as the guest reads them.
func (e environment) encode() []byte {
	names := make([]string, 0, len(e))
	for n := range e {
		names = append(names, n)
	}
	slices.Sort(names)
	var b bytes.Buffer
	for _, n := range names {
		fmt.Fprintf(&b, "%s=%s\x00", n, e[n])
	}
	b.WriteByte(0) // it is whole
	return b.Bytes()
}

// readEnvironment collects what the project brings, the files of s, then the
// values kept from the container before (inherited), then what was typed.
func (a *app) readEnvironment(s spec.Spec, b brought, inherited environment, c *ucli.Context) (environment, error) {
	env := environment{}
	if err := b.environment(env, s.Name); err != nil {
		return nil, err
	}
	for _, file := range s.EnvFiles {
		if err := a.readEnvFile(env, file); err != nil {
			return nil, err
		}
	}
	for name, value := range inherited {
		env[name] = value
	}
	typed, err := a.typedEnvironment(c)
	for name, value := range typed {
		env[name] = value
	}
	return env, err
}

// typedEnvironment reads the --env flags.
func (a *app) typedEnvironment(c *ucli.Context) (environment, error) {
	env := environment{}
	for _, e := range c.StringSlice("env") {
		name, value, hasValue := strings.Cut(e, "=")
		if !hasValue {
			var ok bool
			if value, ok = os.LookupEnv(name); !ok {
				return nil, refuse("export it, or write NAME=VALUE", "--env: %s is not set here", spec.Printable(name, 60))
			}
		}
		if err := env.set("--env", name, value); err != nil {
			return nil, err
		}
	}
	return env, nil
}

// readEnvFile adds the variables of a file of the user's.
func (a *app) readEnvFile(env environment, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return refuse("correct --env-file", "--env-file: %v", err)
	}
	return parseEnv(env, file, content, os.LookupEnv, "write NAME=VALUE, or export NAME")
}

// parseEnv adds the variables of a file: NAME=VALUE lines, blank lines and
// # comments; "export " before and one pair of quotes around are taken off; NAME
// alone takes the value that lookup has, and otherwise is refused with hint. Nothing
// is expanded: a "$" in a password stays one.
func parseEnv(env environment, file string, content []byte, lookup func(string) (string, bool), hint string) error {
	for i, line := range strings.Split(strings.TrimPrefix(string(content), "\uFEFF"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		where := fmt.Sprintf("%s:%d", file, i+1)
		name, value, hasValue := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		if !hasValue {
			var ok bool
			if value, ok = lookup(name); !ok {
				// The line may be a secret that lost its name: it is not shown.
				return refuse(hint, "%s: neither NAME=VALUE nor a variable that is set here", where)
			}
		}
		name = strings.TrimSpace(name)
		if !spec.ValidVariable(name) {
			// It may be a line of a key that has a "=": not shown either.
			return refuse("write NAME=VALUE; a name has letters, digits and _", "%s: what stands before the = is not a variable's name", where)
		}
		if err := env.set(where, name, unquote(value)); err != nil {
			return err
		}
	}
	return nil
}

func unquote(value string) string {
	value = strings.TrimSpace(value)
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}

// inheritedEnvironment reads back the typed values of a deployment from its
// container: they are nowhere else. Names that are typed again need not be
// readable.
func (a *app) inheritedEnvironment(ctx context.Context, e *engine.Engine, s spec.Spec, typedAgain environment) (environment, error) {
	env := environment{}
	wanted := slices.DeleteFunc(slices.Clone(s.EnvNames), func(n string) bool { _, ok := typedAgain[n]; return ok })
	if len(wanted) == 0 {
		return env, nil
	}
	all, err := filledEnvironment(ctx, e, s.Name)
	if err != nil {
		return nil, err
	}
	for _, n := range wanted {
		value, ok := all[n]
		if !ok {
			return nil, refuse("type it again: --env "+n, "the container of %s no longer holds the value of %s", s.Name, n)
		}
		env[n] = value
	}
	return env, nil
}

// maxEnvironment bounds what is read back of an environment; the kernel's own
// limit for all arguments and variables of a program is below it.
const maxEnvironment = 16 << 20

// filledEnvironment reads the environment that a container was filled with.
func filledEnvironment(ctx context.Context, e *engine.Engine, name string) (environment, error) {
	env := environment{}
	_, err := e.CopyOut(ctx, compose.ProjectName(name), spec.ContainerSecretsDir+"/"+spec.FillEnvironment, maxEnvironment+64<<10, func(t *tar.Reader) error {
		if _, err := t.Next(); err != nil {
			return err
		}
		content, err := io.ReadAll(io.LimitReader(t, maxEnvironment))
		if !strings.HasSuffix("\x00"+string(content), "\x00\x00") {
			return err // half a file: nothing of it is used
		}
		for _, entry := range strings.Split(string(content), "\x00") {
			if n, v, ok := strings.Cut(entry, "="); ok {
				env[n] = v
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the environment of %s: %w", name, err)
	}
	return env, nil
}
