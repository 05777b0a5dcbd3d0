// Package entrypoint holds the script that runs in every agent container, and
// Params, the struct that is its contract.
package entrypoint

import (
	_ "embed" // for Script

	"github.com/agent-container/agent-container/spec"
)

// Script is entrypoint.sh as it goes into the images.
//
//go:embed entrypoint.sh
var Script []byte

// Params is everything that entrypoint.sh and the guest read from the
// container's environment. A test compares it with the script. The fields after
// CloneURL are overrides of fixed paths, empty outside tests.
type Params struct {
	Mode  spec.Mode
	Agent string
	Name  string
	// CloneURL is the repository for /workspace, empty for none.
	CloneURL string
	// Egress is the enforcement of what may leave, empty where everything may.
	Egress string

	Guest      string
	RunDir     string
	RunsDir    string
	SecretsDir string
	Home       string
	Workspace  string
	AgentDir   string
	SystemCA   string
	TmuxShell  string
	SSHD       string
	SSHDConfig string
	SSHAddress string
}

// Environment returns the variables that carry p; empty fields are left out.
func (p Params) Environment() map[string]string {
	env := map[string]string{
		spec.EnvMode:       string(p.Mode),
		spec.EnvAgent:      p.Agent,
		spec.EnvName:       p.Name,
		spec.EnvCloneURL:   p.CloneURL,
		spec.EnvEgress:     p.Egress,
		spec.EnvGuest:      p.Guest,
		spec.EnvRunDir:     p.RunDir,
		spec.EnvRunsDir:    p.RunsDir,
		spec.EnvSecretsDir: p.SecretsDir,
		spec.EnvHome:       p.Home,
		spec.EnvWorkspace:  p.Workspace,
		spec.EnvAgentDir:   p.AgentDir,
		spec.EnvSystemCA:   p.SystemCA,
		spec.EnvSSHD:       p.SSHD,
		spec.EnvSSHDConfig: p.SSHDConfig,
		spec.EnvSSHAddress: p.SSHAddress,
		spec.EnvTmuxShell:  p.TmuxShell,
	}
	for k, v := range env {
		if v == "" {
			delete(env, k)
		}
	}
	return env
}
