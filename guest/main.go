// Command guest is our program inside the images: it prepares the container,
// keeps its status and the run record, and runs the agent. entrypoint.sh calls
// its verbs in order; the CLI calls "env", "look" and "status" by exec. In the
// gateway's image it is the gateway.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-container/agent-container/spec"
)

// guest is what every verb needs: who it is for and where things are.
type guest struct {
	mode       spec.Mode
	agent      spec.Agent
	name       string
	cloneURL   string
	egress     spec.Enforcement // empty where everything may leave
	runDir     string
	runsDir    string
	secretsDir string
	home       string
	workspace  string
	agentDir   string
	systemCA   string
	sshd       string
	sshdConfig string
	sshAddress string

	ctx        context.Context // of the phase that runs: over when its time is
	progressed func(string)    // tells what the phase that runs has done; empty for something
}

// verbs are the guest's commands; each gets the words after its name.
var verbs = map[string]func(g *guest, args []string) error{
	"access":      (*guest).access,
	"credential":  (*guest).credential,
	"env":         (*guest).runWithEnvironment,
	"headless":    (*guest).headless,
	"hold":        (*guest).hold,
	"interactive": (*guest).interactive,
	"login":       (*guest).login,
	"look":        (*guest).look,
	"phase":       (*guest).phase,
	"ssh-key":     (*guest).sshKey,
	"status":      (*guest).status,
	"stopped":     (*guest).stopped,
}

// exitStatus is an error that ends the guest with a status and says nothing.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func main() {
	err := run(os.Args[1:])
	var status exitStatus
	switch {
	case errors.As(err, &status):
		os.Exit(int(status))
	case err != nil:
		fmt.Fprintf(os.Stderr, "agent-container: error: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: agent-container-guest VERB [ARGUMENT...]")
	}
	if args[0] == "gateway" { // in its own container, which has no agent
		return runGateway(args[1:])
	}
	verb, ok := verbs[args[0]]
	if !ok {
		return fmt.Errorf("unknown verb %q", args[0])
	}
	if args[0] == "login" {
		restoreEnvironment(filepath.Join(override(spec.EnvRunDir, spec.ContainerRunDir), spec.FileEnviron))
	}
	g, err := fromEnvironment()
	if err != nil {
		return err
	}
	return verb(g, args[1:])
}

// fromEnvironment reads the variables that the Compose model sets; the paths
// have overrides for tests.
func fromEnvironment() (*guest, error) {
	agent, err := spec.LookupAgent(os.Getenv(spec.EnvAgent))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", spec.EnvAgent, err)
	}
	return &guest{
		mode:       spec.Mode(os.Getenv(spec.EnvMode)),
		agent:      agent,
		name:       os.Getenv(spec.EnvName),
		cloneURL:   os.Getenv(spec.EnvCloneURL),
		egress:     spec.Enforcement(os.Getenv(spec.EnvEgress)),
		runDir:     override(spec.EnvRunDir, spec.ContainerRunDir),
		runsDir:    override(spec.EnvRunsDir, spec.ContainerRunsDir),
		secretsDir: override(spec.EnvSecretsDir, spec.ContainerSecretsDir),
		home:       override(spec.EnvHome, spec.ContainerHome),
		workspace:  override(spec.EnvWorkspace, spec.ContainerWorkspace),
		agentDir:   override(spec.EnvAgentDir, spec.ContainerAgentDir),
		systemCA:   override(spec.EnvSystemCA, "/etc/ssl/certs/ca-certificates.crt"),
		sshd:       override(spec.EnvSSHD, "/usr/sbin/sshd"), // which insists on an absolute path
		sshdConfig: override(spec.EnvSSHDConfig, "/etc/ssh/agent-container/sshd_config"),
		sshAddress: override(spec.EnvSSHAddress, fmt.Sprintf("127.0.0.1:%d", spec.SSHPort)),
	}, nil
}

func override(variable, path string) string {
	if v := os.Getenv(variable); v != "" {
		return v
	}
	return path
}

// fill returns the path of a file in the run directory.
func (g *guest) fill(name string) string { return filepath.Join(g.runDir, name) }

// inHome moves a path of the agent table, which begins with the image's home,
// to the home in use.
func (g *guest) inHome(path string) string {
	if rest, ok := strings.CutPrefix(path, spec.ContainerHome); ok {
		return g.home + rest
	}
	return path
}

// say prints a message for whoever reads the container's log.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "agent-container: "+format+"\n", args...)
}
