// Package spec holds what a user wants of a deployment, the agent table, and
// the run record. It is pure: it reads no file, starts nothing, and imports
// nothing of ours, so that the CLI and the guest mean the same by every word.
package spec

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Mode says what the container's workload is.
type Mode string

// The modes. Each is a row of Modes, which help and completions print.
const (
	Interactive Mode = "interactive" // tmux session "main", attach from anywhere
	Headless    Mode = "headless"    // the task is the workload; the container ends with it
	Idle        Mode = "idle"        // kept alive; work comes by exec
)

// Modes lists every mode, the default first.
var Modes = []Mode{Interactive, Headless, Idle}

// Workspace says what is mounted at /workspace.
type Workspace string

// The workspaces. Each is a row of Workspaces.
const (
	Persistent Workspace = "persistent" // a named volume, survives recreation
	Bind       Workspace = "bind"       // a host directory, read-only: an input
	Ephemeral  Workspace = "ephemeral"  // the container's own layer, lost with it
)

// Workspaces lists every workspace, the default first.
var Workspaces = []Workspace{Persistent, Bind, Ephemeral}

// Limits bounds what a deployment may use. Zero values mean "not limited",
// except Pids, which Validate requires to be positive, and Start, whose zero is
// DefaultStartLimit. The guest keeps the times, the engine the rest.
type Limits struct {
	MemoryBytes int64    `json:"memory_bytes,omitempty"`
	CPUs        float64  `json:"cpus,omitempty"`
	Pids        int64    `json:"pids"`
	Run         Duration `json:"timeout,omitempty"`       // of a job, from its container's start, all attempts together
	Idle        Duration `json:"idle_timeout,omitempty"`  // of a job, without any output
	Start       Duration `json:"start_timeout,omitempty"` // of one phase of the set-up, without progress
}

// DefaultStartLimit is how long a phase of the set-up may take without progress
// when nothing else was said.
const DefaultStartLimit = 60 * time.Second

// StartLimit is l.Start, or its default.
func (l Limits) StartLimit() time.Duration {
	if l.Start == 0 {
		return DefaultStartLimit
	}
	return time.Duration(l.Start)
}

// Spec is everything a redeploy needs to build the same deployment again: no
// secret value and no task. It is kept as JSON in a label of the container, so
// every field is visible to whoever may inspect it.
type Spec struct {
	Name         string    `json:"name"`
	Agent        string    `json:"agent"`
	Mode         Mode      `json:"mode"`
	Workspace    Workspace `json:"workspace"`
	WorkspaceDir string    `json:"workspace_dir,omitempty"` // absolute host path, with Bind only
	Repo         string    `json:"repo,omitempty"`          // cloned into /workspace at the first start, as Repo.String writes it
	Depth        int       `json:"depth,omitempty"`         // how many commits of its history, 0 for all
	Mounts       []Mount   `json:"mounts,omitempty"`        // host directories beside the workspace, sorted by Path
	EnvNames     []string  `json:"env_names,omitempty"`     // names typed with --env, sorted; the values are filled
	EnvFiles     []string  `json:"env_files,omitempty"`     // absolute host paths, later ones win
	Restart      Restart   `json:"restart"`                 // of a headless job; the zero value is "no"
	Limits       Limits    `json:"limits"`
	RecordTask   bool      `json:"record_task"` // whether the run record carries the task's text
	BaseImage    string    `json:"base_image"`
	CABundle     string    `json:"ca_bundle"`                 // "auto", "none" or an absolute host path
	SSH          bool      `json:"ssh,omitempty"`             // whether sshd runs although the mode is not interactive
	SSHBind      string    `json:"ssh_bind,omitempty"`        // the host's address on which sshd is published, or "none"
	AccessFiles  []string  `json:"authorized_keys,omitempty"` // absolute host paths of more keys that are let in
	Typed        []string  `json:"typed,omitempty"`           // sorted flags of limits and restart that were typed: a redeploy keeps them, and reads the others from settings again
	Egress       *Egress   `json:"egress,omitempty"`          // what may leave it; nil for everything
	Project      string    `json:"project,omitempty"`         // absolute host path of the project whose files take effect
	Timezone     string    `json:"timezone"`                  // IANA name for TZ
}

// Label returns s as the JSON document that is kept in a container's label.
func (s Spec) Label() string {
	b, err := json.Marshal(s)
	if err != nil { // strings, numbers and slices of them always marshal
		panic(err)
	}
	return string(b)
}

// FromLabel reads a document that Label made. A field that this version does
// not know is an error: acting on half a spec could drop a limit unnoticed.
func FromLabel(text string) (Spec, error) {
	var s Spec
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Spec{}, fmt.Errorf("spec label: %w", err)
	}
	return s, nil
}

// HasSSH reports whether sshd runs in the container and is published.
func (s Spec) HasSSH() bool {
	return (s.SSH || s.Mode == Interactive) && s.SSHBind != "" && s.SSHBind != "none"
}

// Error is a refusal of one field, with the way out where there is one.
type Error struct {
	Field   string // as the user types it, for example "--agent"
	Problem string
	Hint    string // empty, or what to type instead
}

func (e *Error) Error() string { return e.Field + ": " + e.Problem }

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// ValidateName returns an *Error unless name can be used for a deployment. The
// hint proposes the nearest valid name.
func ValidateName(name string) error {
	if namePattern.MatchString(name) {
		return nil
	}
	e := &Error{Field: "NAME", Problem: fmt.Sprintf("%q is not a valid name: 1 to 40 of a-z, 0-9, - and _, beginning with a letter or digit", name)}
	if s := suggestName(name); s != "" {
		e.Hint = fmt.Sprintf("use %q", s)
	}
	return e
}

// suggestName folds name to the nearest valid one, or "" where nothing is left.
func suggestName(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	s := strings.TrimLeft(b.String(), "-_")
	if len(s) > 40 {
		s = s[:40]
	}
	s = strings.TrimRight(s, "-_")
	if !namePattern.MatchString(s) {
		return ""
	}
	return s
}

// JobFlags are the flags that bound a job and mean nothing in another mode.
var JobFlags = []string{"timeout", "idle-timeout", "headless-restart"}

// Validate returns an *Error for the first field of s that cannot be deployed.
// It knows no file and no engine: that a directory exists is checked elsewhere.
func (s Spec) Validate() error {
	if err := ValidateName(s.Name); err != nil {
		return err
	}
	agent, err := LookupAgent(s.Agent)
	if err != nil {
		return err
	}
	if err := s.Egress.validate(agent); err != nil {
		return err
	}
	if err := oneOf("--mode", s.Mode, Modes); err != nil {
		return err
	}
	if err := oneOf("--workspace", s.Workspace, Workspaces); err != nil {
		return err
	}
	switch {
	case s.Workspace == Bind && s.WorkspaceDir == "":
		return &Error{Field: "--workspace-dir", Problem: "needed with --workspace bind", Hint: "add --workspace-dir DIR"}
	case s.Workspace != Bind && s.WorkspaceDir != "":
		return &Error{Field: "--workspace-dir", Problem: fmt.Sprintf("has no meaning with a %s workspace", s.Workspace), Hint: "add --workspace bind, or drop --workspace-dir"}
	}
	if err := s.validateRepo(); err != nil {
		return err
	}
	if err := ValidateMounts(s.Mounts); err != nil {
		return err
	}
	if s.Mode != Headless {
		// What comes from settings is for jobs and has no effect elsewhere; what
		// was typed for another mode is a mistake.
		for _, flag := range JobFlags {
			if slices.Contains(s.Typed, flag) {
				return &Error{Field: "--" + flag, Problem: fmt.Sprintf("is for jobs; this deployment is %s", s.Mode), Hint: "add --mode headless, or drop --" + flag}
			}
		}
	}
	return s.Limits.validate()
}

func (s Spec) validateRepo() error {
	switch {
	case s.Repo == "" && s.Depth != 0:
		return &Error{Field: "--depth", Problem: "has no meaning without a repository", Hint: "add --repo URL, or drop --depth"}
	case s.Repo == "":
		return nil
	case s.Workspace == Bind:
		return &Error{Field: "--repo", Problem: "a bind workspace is a directory of the host, read-only: nothing is cloned into it",
			Hint: "drop --repo, or --workspace persistent; on a redeploy --no-repo"}
	case s.Depth < 0:
		return &Error{Field: "--depth", Problem: "must be 1 or more commits"}
	}
	_, dropped, err := ParseRepo(s.Repo)
	if err == nil && dropped {
		err = &Error{Field: "--repo", Problem: "the URL holds credentials"}
	}
	return err
}

// ClonesBySSH reports whether the repository is fetched with the container's
// own key, which has to be registered with its host first.
func (s Spec) ClonesBySSH() bool {
	r, _, err := ParseRepo(s.Repo)
	return s.Repo != "" && err == nil && r.SSH
}

func (l Limits) validate() error {
	switch {
	case l.Pids < 1:
		return &Error{Field: "limits.pids", Problem: "must be at least 1"}
	case l.MemoryBytes < 0:
		return &Error{Field: "limits.memory", Problem: "must not be negative"}
	case l.MemoryBytes > 0 && l.MemoryBytes < 6<<20:
		return &Error{Field: "limits.memory", Problem: "must be at least 6m, the least an engine accepts"}
	case l.CPUs < 0:
		return &Error{Field: "limits.cpus", Problem: "must not be negative"}
	case l.Run < 0 || l.Idle < 0 || l.Start < 0:
		return &Error{Field: "limits", Problem: "times must not be negative"}
	}
	return nil
}

// Texts is a list of words as plain strings.
func Texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ValidVariable reports whether name can be an environment variable's.
func ValidVariable(name string) bool { return variablePattern.MatchString(name) }

// oneOf returns an *Error naming the nearest allowed word unless value is one.
func oneOf[T ~string](field string, value T, allowed []T) error {
	words := make([]string, len(allowed))
	for i, a := range allowed {
		if a == value {
			return nil
		}
		words[i] = string(a)
	}
	e := &Error{Field: field, Problem: fmt.Sprintf("%q is not one of %s", string(value), strings.Join(words, ", "))}
	if near := Nearest(string(value), words); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}
