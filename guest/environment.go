package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-container/agent-container/spec"
)

// caVariables are what the usual clients read a CA bundle's path from.
var caVariables = []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE"}

// environment is what a job, a tmux window and an exec all run with: the
// container's own variables, the agent's, the CA bundle's, and the user's over
// them.
func (g *guest) environment() ([]string, error) {
	env := os.Environ()
	for name, value := range g.agent.Environment {
		env = append(env, name+"="+g.inHome(value))
	}
	if bundle := g.fill(spec.FileCABundle); exists(bundle) {
		for _, name := range caVariables {
			env = append(env, name+"="+bundle)
		}
	}
	user, err := g.userEnvironment()
	return lastWins(append(env, user...)), err
}

// userEnvironment reads the filled entries; none when nothing was filled.
func (g *guest) userEnvironment() ([]string, error) {
	b, err := os.ReadFile(filepath.Join(g.secretsDir, spec.FillEnvironment))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	content, whole := bytes.CutSuffix(b, []byte{0})
	if !whole || len(content) > 0 && content[len(content)-1] != 0 {
		return nil, errors.New("the filled environment is not whole; run: agent-container redeploy " + g.name)
	}
	var entries []string
	for _, e := range bytes.Split(content, []byte{0}) {
		if len(e) == 0 {
			continue
		}
		name, _, ok := strings.Cut(string(e), "=")
		if !ok || name == "" || strings.HasPrefix(name, spec.EnvPrefix) {
			return nil, errors.New("the filled environment holds an entry that is not NAME=VALUE") // never the entry: it may be a secret
		}
		entries = append(entries, string(e))
	}
	return entries, nil
}

// lastWins drops all but the last entry of each name: programs differ in which
// of two they read.
func lastWins(env []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, e := range slices.Backward(env) {
		name, _, _ := strings.Cut(e, "=")
		if !seen[name] {
			seen[name] = true
			kept = append(kept, e)
		}
	}
	slices.Reverse(kept)
	return kept
}

// lookup returns the value of name in env, or "".
func lookup(env []string, name string) string {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// runWithEnvironment replaces the guest by a command with the environment.
// 127 and 126 are the shell's own codes for "not found" and "not executable".
func (g *guest) runWithEnvironment(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: env COMMAND [ARGUMENT...]")
	}
	env, err := g.environment()
	if err != nil {
		return err
	}
	env = knownTerminal(env)
	if path := lookup(env, "PATH"); path != "" {
		os.Setenv("PATH", path) // LookPath reads the process's own
	}
	path, err := exec.LookPath(args[0])
	if err != nil && strings.Contains(args[0], "/") && exists(args[0]) {
		say("error: %s: not executable in the container", spec.Printable(args[0], 200))
		return exitStatus(126)
	}
	if err != nil {
		say("error: %s: command not found in the container", spec.Printable(args[0], 200))
		return exitStatus(127)
	}
	err = syscall.Exec(path, args, env)
	say("error: %s: %v", spec.Printable(args[0], 200), err)
	return exitStatus(126)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// wrap puts the noun in front of an error, and keeps nil.
func wrap(noun string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", noun, err)
}
