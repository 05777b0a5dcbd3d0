package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"time"
)

// RecordSchema is the value of Record.Schema that this version writes.
const RecordSchema = "agent-container/run/v1"

// Outcome says how a run ended; empty while it goes on.
type Outcome string

// The outcomes of a run.
const (
	OutcomeFinished Outcome = "finished" // the agent exited 0
	OutcomeFailed   Outcome = "failed"   // the agent exited otherwise, or never started
	OutcomeStopped  Outcome = "stopped"  // it was told to stop
	OutcomeEnded    Outcome = "ended"    // an interactive session was closed in order
	OutcomeLost     Outcome = "lost"     // the container died with the record open; said by the host
)

// Cause says what ended a run.
type Cause string

// The causes of an outcome.
const (
	CauseExit    Cause = "exit"        // the agent's own exit status
	CauseSignal  Cause = "signal"      // the agent was killed by a signal
	CauseOOM     Cause = "oom"         // the agent itself was killed for the memory limit
	CauseTimeout Cause = "timeout"     // a time limit of ours: exit code 124
	CauseSetup   Cause = "set-up"      // a phase before the agent failed
	CauseStop    Cause = "engine-stop" // the container was told to stop
	CauseEgress  Cause = "egress"      // the gateway was lost, so the run was ended; the exit code is that of the forced stop
	CauseLost    Cause = "lost"        // the container ended without closing the record
)

// Outcomes and Causes list every word that a closed record may use.
var (
	Outcomes = []Outcome{OutcomeFinished, OutcomeFailed, OutcomeStopped, OutcomeEnded, OutcomeLost}
	Causes   = []Cause{CauseExit, CauseSignal, CauseOOM, CauseTimeout, CauseSetup, CauseStop, CauseEgress, CauseLost}
)

// ExitTimeLimit is a job's exit code when a time limit of ours ended it, as
// timeout(1) has it.
const ExitTimeLimit = 124

// ExitPending is how the set-up, and then the CLI, ends while the container's
// SSH key waits to be registered.
const ExitPending = 3

// Limits of a record. What is longer is cut and said in Notes or a _truncated
// field, so that a record stays readable and cannot fill a disk.
const (
	MaxRecordBytes = 8 << 20
	MaxTaskBytes   = 1 << 20
	MaxCommits     = 200
	MaxPaths       = 200
	MaxOutputBytes = 1 << 20 // of what the agent wrote
	MaxDiffBytes   = 1 << 20
)

// Names of the files beside ID.json that belong to a run. Both are optional.
const (
	OutputSuffix = ".out"  // what the agent wrote, both streams in the order they came
	DiffSuffix   = ".diff" // what it changed in the repository, as git diff
)

// Record is one execution of an agent: written by the guest when the run
// starts, completed when it ends, and brought to the host, which adds Host,
// Image, Engine, Disagreement, KeptAt and Egress. It is written inside an untrusted container: data, not
// evidence. docs/records.md describes every field.
type Record struct {
	Schema       string        `json:"schema"`
	ID           string        `json:"id"`
	Deployment   string        `json:"deployment"`
	Host         string        `json:"host,omitempty"`
	Agent        string        `json:"agent"`
	AgentVersion string        `json:"agent_version,omitempty"`
	Image        string        `json:"image,omitempty"` // the engine's id of the image
	Kind         Mode          `json:"kind"`
	Task         *string       `json:"task,omitempty"` // nil with record_task: false, or without a task
	TaskSHA256   string        `json:"task_sha256,omitempty"`
	TaskBytes    int64         `json:"task_bytes"`
	TaskCut      bool          `json:"task_truncated,omitempty"`
	Attempt      int           `json:"attempt,omitempty"` // of a job, from 1
	StartedAt    time.Time     `json:"started_at"`
	AgentAt      *time.Time    `json:"agent_started_at,omitempty"` // when the set-up was over
	EndedAt      *time.Time    `json:"ended_at"`
	Outcome      Outcome       `json:"outcome"`
	ExitCode     *int          `json:"exit_code"`
	Cause        Cause         `json:"cause,omitempty"`
	Repository   *Repository   `json:"repository,omitempty"`
	OutputBytes  int64         `json:"output_bytes,omitempty"` // of the agent, also what was not kept
	Engine       *EngineReport `json:"engine,omitempty"`
	Disagreement string        `json:"disagreement,omitempty"` // where the engine's word differs from the container's
	KeptAt       *time.Time    `json:"kept_at,omitempty"`      // when the host first brought it in
	Egress       *Refused      `json:"egress,omitempty"`       // what its gateway refused it; the host's word, nil where there was none or the run goes on
	Notes        []string      `json:"notes,omitempty"`
}

// Repository is what git said of /workspace at the start and the end of a run.
type Repository struct {
	State       string   `json:"state"` // ok, none, detached or unreadable
	StartCommit string   `json:"start_commit,omitempty"`
	EndCommit   string   `json:"end_commit,omitempty"`
	Branch      string   `json:"branch,omitempty"`
	Commits     []string `json:"commits,omitempty"` // made during the run, newest first
	Paths       []string `json:"paths,omitempty"`   // changed during the run, committed or not
	Truncated   bool     `json:"truncated,omitempty"`
	Remote      bool     `json:"remote,omitempty"`   // whether there is anywhere to push to
	Unpushed    int      `json:"unpushed,omitempty"` // commits on no remote branch; 0 without a remote
}

// EngineReport is what the engine says of the container that ran it.
type EngineReport struct {
	Status     string `json:"status"`
	ExitCode   int    `json:"exit_code"`
	OOMKilled  bool   `json:"oom_killed"`
	Error      string `json:"error,omitempty"`
	StartedAt  string `json:"started_at,omitempty"`
	FinishedAt string `json:"finished_at,omitempty"`
}

// Known reports whether the words of r that have a closed list are on it. What
// is not may be anything, such as an escape sequence for a terminal.
func (r *Record) Known() bool {
	return slices.Contains([]Mode{Interactive, Headless}, r.Kind) &&
		(r.Outcome == "" || slices.Contains(Outcomes, r.Outcome)) &&
		(r.Cause == "" || slices.Contains(Causes, r.Cause))
}

var recordIDPattern = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}$`)

// ValidRecordID reports whether id has the form of NewRecordID, which is also
// safe as a file name.
func ValidRecordID(id string) bool { return recordIDPattern.MatchString(id) }

// NewRecordID makes an id that sorts by time; random must hold 4 bytes.
func NewRecordID(at time.Time, random []byte) string {
	return at.UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(random[:4])
}

// SetTask puts the task's digest and length into r, and its text, cut at
// MaxTaskBytes, when keepText is true.
func (r *Record) SetTask(task []byte, keepText bool) {
	sum := sha256.Sum256(task)
	r.TaskSHA256 = hex.EncodeToString(sum[:])
	r.TaskBytes = int64(len(task))
	if !keepText {
		return
	}
	if len(task) > MaxTaskBytes {
		task, r.TaskCut = task[:MaxTaskBytes], true
	}
	text := string(task)
	r.Task = &text
}

// Finish closes r with an outcome; a record that was closed already is left as
// it is, because the first word about an end is the right one (a stop closes
// the record before the agent's own status is known).
func (r *Record) Finish(outcome Outcome, cause Cause, code *int, at time.Time) {
	if r.EndedAt != nil {
		if r.ExitCode == nil {
			r.ExitCode = code
		}
		return
	}
	at = at.UTC()
	r.EndedAt, r.Outcome, r.Cause, r.ExitCode = &at, outcome, cause, code
}
