package spec

import "time"

// Fixed places inside the container. The image creates them owned by the agent
// user, so that a new named volume inherits the owner.
const (
	ContainerUser       = "agent"
	ContainerUID        = 1000
	ContainerHome       = "/home/agent"
	ContainerWorkspace  = "/workspace"
	ContainerRunDir     = "/run/agent-container"          // the fill and the status; gone on recreate
	ContainerRunsDir    = "/var/lib/agent-container/runs" // run records, a volume
	ContainerSecretsDir = "/run/agent-container-secrets"  // the user's environment, a volume: it outlives a redeploy that is killed half way
	ContainerAgentDir   = "/opt/agent"                    // the agent's locked packages
	ContainerGuest      = "/usr/local/bin/agent-container-guest"
)

// Names of our environment variables in the container. A user's environment
// may not set any AGENT_CONTAINER_* variable.
const (
	EnvPrefix     = "AGENT_CONTAINER_"
	EnvMode       = EnvPrefix + "MODE"
	EnvAgent      = EnvPrefix + "AGENT"
	EnvName       = EnvPrefix + "NAME"
	EnvCloneURL   = EnvPrefix + "CLONE_URL"   // Spec.Repo; never _REPO, which is the CLI's own
	EnvEgress     = EnvPrefix + "EGRESS"      // the enforcement of Spec.Egress: nothing may run before a gateway has proved itself
	EnvGuest      = EnvPrefix + "GUEST"       // override of ContainerGuest, for tests
	EnvRunDir     = EnvPrefix + "RUN_DIR"     // override of ContainerRunDir, for tests
	EnvRunsDir    = EnvPrefix + "RUNS_DIR"    // override of ContainerRunsDir, for tests
	EnvSecretsDir = EnvPrefix + "SECRETS_DIR" // override of ContainerSecretsDir, for tests
	EnvHome       = EnvPrefix + "HOME"        // override of ContainerHome, for tests
	EnvWorkspace  = EnvPrefix + "WORKSPACE"   // override of ContainerWorkspace, for tests
	EnvAgentDir   = EnvPrefix + "AGENT_DIR"   // override of ContainerAgentDir, for tests
	EnvSystemCA   = EnvPrefix + "SYSTEM_CA"   // override of the image's CA bundle, for tests
	EnvSSHD       = EnvPrefix + "SSHD"        // override of sshd's path, for tests
	EnvSSHDConfig = EnvPrefix + "SSHD_CONFIG" // override of its configuration, for tests
	EnvSSHAddress = EnvPrefix + "SSH_ADDRESS" // override of where it listens, for tests
	EnvTmuxShell  = EnvPrefix + "TMUX_SHELL"  // the shell of tmux windows, for tests
)

// Files of the fill, relative to ContainerRunDir. All are 0600 and owned by
// the agent user.
const (
	FillTask   = "task"            // the task's bytes, absent when none was given
	FillJob    = "job.json"        // a Job
	FillCA     = "ca.pem"          // the host's CA bundle, absent when none is used
	FillConfig = "config"          // a directory laid over the agent's ConfigDir
	FillAccess = "authorized_keys" // who may attach; absent when nobody may over ssh
	FillKey    = "gateway.key"     // with which the gateway proves itself, 32 bytes; in its own container too
)

// FillGateway is a GatewayJob, in the gateway's container only, relative to
// ContainerRunDir.
const FillGateway = "gateway.json"

// FileResolvers, in the gateway's container only, is what /etc/resolv.conf was
// when our own start began: empty until the gateway has read it. The file itself
// is one for all in the namespace, and whoever is root in it may write there.
const FileResolvers = "resolv.conf"

// GatewayStart is how long a gateway that was started is given to enforce.
const GatewayStart = 30 * time.Second

// GatewayGuest is the guest in the gateway's image, which holds nothing else.
const GatewayGuest = "/agent-container-guest"

// SSHPort is where the container's sshd listens. Its host key is
// ~/.ssh/HostKeyDir/HostKeyFile, the public half beside it with ".pub".
const (
	SSHPort     = 2222
	HostKeyDir  = "host"
	HostKeyFile = "ssh_host_ed25519_key"
)

// SSHKeyFile is the private half of the container's own key, in ~/.ssh, where
// ssh looks by itself; the public half is beside it with ".pub".
const SSHKeyFile = "id_ed25519"

// The marks of what is ours in the container's authorized_keys. It is rewritten
// at every start; lines outside stay.
const (
	AccessBegin = "# BEGIN agent-container"
	AccessEnd   = "# END agent-container"
)

// FillEnvironment is the user's environment, relative to ContainerSecretsDir:
// NAME=VALUE entries, each ended by NUL, and one more NUL at the end, so that
// half a file is not taken for a whole one.
const FillEnvironment = "environment"

// FillUndelivered is the task once more, relative to ContainerSecretsDir, until
// an agent gets it: a redeploy finds it there, even one that was killed after it
// had removed the container. It is the task and one NUL, so that half of it is
// not taken for a whole one, or empty.
const FillUndelivered = "undelivered-task"

// Files the guest keeps in ContainerRunDir.
const (
	FileStatus   = "status"        // one Status line
	FileRunID    = "run-id"        // the id of the record that is open
	FileConsumed = "task-consumed" // exists once the task was handed to an agent; never again after that
	FileEnviron  = "environ"       // the container's own environment, for logins
	FileNote     = "note"          // what the user should know once the set-up is over; one line
	FileDeadline = "deadline"      // when the job's time is over, RFC 3339
	FileCABundle = "ca-bundle.pem" // system bundle and FillCA together
)

// FileCurrent, on the runs volume, holds the id of the newest run: times in
// records are the container's clock's.
const FileCurrent = "current"

// Job is what the fill tells the guest beside the task and the environment.
type Job struct {
	RecordTask bool    `json:"record_task"`
	GitName    string  `json:"git_name,omitempty"`
	GitEmail   string  `json:"git_email,omitempty"`
	Restart    Restart `json:"restart"`
	Limits     Limits  `json:"limits"`

	Depth       int               `json:"depth,omitempty"`       // of the clone, 0 for all
	Credentials map[string]string `json:"credentials,omitempty"` // name of the variable with the token, by https host
}

// GatewayJob is what the fill tells the gateway beside its key.
type GatewayJob struct {
	Policy  *Policy  `json:"policy"`
	Local   []string `json:"local"`   // names of what is in its namespace
	Inbound []uint16 `json:"inbound"` // TCP ports that may be reached from outside
}

// Volume is a named volume of a deployment: agent-container-<name>-<Suffix>
// mounted at Path.
type Volume struct {
	Suffix string
	Path   string
}

// VolumeWorkspace is the suffix of the volume that only a persistent workspace
// has.
const VolumeWorkspace = "workspace"

// Volumes lists the volumes of a deployment in a fixed order: the same for
// every agent, so that switching agents never loses a login.
func Volumes(w Workspace) []Volume {
	var list []Volume
	if w == Persistent {
		list = append(list, Volume{VolumeWorkspace, ContainerWorkspace})
	}
	for _, a := range Agents {
		list = append(list, a.State...)
	}
	return append(list,
		Volume{"shellenv", ContainerHome + "/.agent-env"},
		Volume{"tmux", ContainerHome + "/.config/tmux"},
		Volume{"ssh", ContainerHome + "/.ssh"},
		Volume{"runs", ContainerRunsDir},
		Volume{"secrets", ContainerSecretsDir},
	)
}
