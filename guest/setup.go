package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/spec"
)

// job reads what the fill says beside task and environment.
func (g *guest) job() (spec.Job, error) {
	var j spec.Job
	b, err := os.ReadFile(g.fill(spec.FillJob))
	if err != nil {
		return j, err
	}
	return j, wrap(spec.FillJob, json.Unmarshal(b, &j))
}

// setupEnvironment checks the user's environment and makes the CA bundle:
// the system's and the host's together, because some clients add a bundle to
// their own and others replace theirs by it.
func (g *guest) setupEnvironment() error {
	if _, err := g.userEnvironment(); err != nil {
		return err
	}
	host, err := os.ReadFile(g.fill(spec.FillCA))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	system, err := os.ReadFile(g.systemCA)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	bundle := append(append(system, '\n'), host...)
	return wrap("CA bundle", renameio.WriteFile(g.fill(spec.FileCABundle), bundle, 0o600))
}

// setupGit gives git its identity. /workspace may belong to another user when
// it is a host directory, and git refuses to read such a repository unless told.
func (g *guest) setupGit() error {
	j, err := g.job()
	if err != nil {
		return err
	}
	for _, kv := range [][2]string{
		{"user.name", j.GitName}, {"user.email", j.GitEmail}, {"safe.directory", g.workspace}, {"init.defaultBranch", "main"},
	} {
		if kv[1] == "" {
			continue
		}
		if err := g.gitGlobal("--replace-all", kv[0], kv[1]); err != nil {
			return err
		}
	}
	env, err := g.userEnvironment()
	if err != nil {
		return err
	}
	for _, host := range slices.Sorted(maps.Keys(j.Credentials)) {
		if lookup(env, j.Credentials[host]) == "" {
			continue // no token was given
		}
		key := "credential.https://" + host + ".helper"
		// An empty one first: no other helper is asked, and none keeps the token.
		if err := errors.Join(g.gitGlobal("--replace-all", key, ""), g.gitGlobal("--add", key, spec.ContainerGuest+" credential")); err != nil {
			return err
		}
	}
	return nil
}

// gitGlobal changes the user's git configuration.
func (g *guest) gitGlobal(how, key, value string) error {
	cmd := exec.Command("git", "config", "--global", how, key, value)
	cmd.Env = append(os.Environ(), "HOME="+g.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git config %s: %w: %s", key, err, out)
	}
	return nil
}

// setupConfig lays the filled configuration over the agent's own directory:
// files replace files, everything else stays.
func (g *guest) setupConfig() error {
	from, to := g.fill(spec.FillConfig), filepath.Join(g.home, g.agent.ConfigDir)
	if !exists(from) {
		return nil
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if err := renameio.WriteFile(target, content, info.Mode().Perm()); err != nil {
			return err
		}
		return os.Chmod(target, info.Mode().Perm()) // WriteFile keeps the mode of what it replaces
	})
}

// setupAgent makes sure the image has the agent that the spec names.
func (g *guest) setupAgent() error {
	if _, err := exec.LookPath(g.agent.Executable); err != nil {
		return fmt.Errorf("%s is not in this image; run: agent-container redeploy %s", g.agent.Executable, g.name)
	}
	return nil
}

// agentVersion reads the installed version from the agent's package, or "".
func (g *guest) agentVersion() string {
	for _, p := range g.agent.Packages {
		b, err := os.ReadFile(filepath.Join(g.agentDir, "node_modules", p, "package.json"))
		var v struct{ Version string }
		if err == nil && json.Unmarshal(b, &v) == nil && v.Version != "" {
			return v.Version
		}
	}
	return ""
}
