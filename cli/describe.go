package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

// deploymentAnswer is what the life-cycle commands say of one deployment.
type deploymentAnswer struct {
	Name      string         `json:"name"`
	Host      string         `json:"host"`
	Runtime   string         `json:"runtime"`
	Container string         `json:"container"`
	Agent     string         `json:"agent"`
	Mode      spec.Mode      `json:"mode"`
	Workspace spec.Workspace `json:"workspace"`
	Repo      string         `json:"repo,omitempty"`
	Egress    string         `json:"egress"`            // "unrestricted", or the enforcement with the number of entries
	Outside   []string       `json:"outside,omitempty"` // services that the gateway does not limit
	Image     string         `json:"image"`
	State     string         `json:"state"`
	Detail    string         `json:"detail,omitempty"`
	ExitCode  *int           `json:"exit_code,omitempty"`
	Created   time.Time      `json:"created"`
	SSH       *sshPlace      `json:"ssh,omitempty"`
	Changed   bool           `json:"changed"`
	Run       *spec.Record   `json:"run,omitempty"`
	SSHKey    string         `json:"ssh_key,omitempty"` // the public half of its own, while its registration is waited for

	silent bool
}

// sshPlace is where the sshd of a deployment is published.
type sshPlace struct {
	Address string `json:"address"`
	Port    int    `json:"port"`
}

// describe puts together what is known of a deployment.
func (a *app) describe(c *engine.Container, s spec.Spec, record *spec.Record) *deploymentAnswer {
	d := &deploymentAnswer{
		Name: s.Name, Host: engine.LocalHost, Runtime: a.openEngine.Runtime, Container: c.Name, Agent: s.Agent,
		Mode: s.Mode, Workspace: s.Workspace, Repo: s.Repo, Egress: egressSummary(s.Egress), Image: c.Config.Image, State: c.State.Status, Created: c.Created.UTC(), Run: record,
	}
	if s.Egress != nil {
		d.Outside = s.Egress.Outside
	}
	if address, port, ok := c.SSH(); ok {
		d.SSH = &sshPlace{address, port}
	}
	if status, ok := c.State.SetUp(); ok && c.State.Alive() {
		d.setUp(status)
	}
	if !c.State.Alive() && c.State.Status != "created" {
		code := c.State.ExitCode
		d.ExitCode = &code
	}
	return d
}

// setUp makes the state of a running container that of its set-up, where that has
// failed or waits.
func (d *deploymentAnswer) setUp(status spec.Status) {
	switch status.State {
	case spec.Failed:
		d.State, d.Detail = string(status.State), status.Phase+": "+status.Reason
	case spec.Pending:
		d.State, d.Detail = string(status.State), status.Phase
	}
}

// detail is what stands behind a state: its phase, or why.
func (d *deploymentAnswer) detail(limit int) string {
	switch {
	case d.Detail == "":
		return ""
	case d.State == stateCutOff:
		return ": " + spec.Printable(d.Detail, limit)
	}
	return " " + spec.Printable(d.Detail, limit)
}

// text says what now exists, and the next command.
func (d *deploymentAnswer) text(w io.Writer) {
	switch {
	case d.silent:
	case d.State == string(spec.Pending):
		fmt.Fprintf(w, "%s: waits for its SSH key to be registered; then: agent-container redeploy %s\n", d.Name, d.Name)
	case d.ExitCode != nil && d.Mode == spec.Headless:
		fmt.Fprintf(w, "%s: %s, exit code %d", d.Name, d.outcome(), *d.ExitCode)
		if d.Run != nil && d.Run.Cause == spec.CauseEgress {
			fmt.Fprint(w, " of the forced stop: its gateway was lost")
		}
		if d.Run != nil && d.Run.Attempt > 1 {
			fmt.Fprintf(w, ", attempt %d", d.Run.Attempt)
		}
		if d.Run != nil {
			fmt.Fprintf(w, ", run %s", d.Run.ID)
		}
		fmt.Fprintln(w)
	case d.ExitCode != nil && d.Agent == "":
		fmt.Fprintf(w, "%s: %s\n", d.Name, d.State)
	case d.ExitCode != nil:
		fmt.Fprintf(w, "%s: %s (%s, %s)\n", d.Name, d.State, d.Agent, d.Mode)
	default:
		d.aliveText(w)
	}
}

// aliveText is text of a deployment that runs.
func (d *deploymentAnswer) aliveText(w io.Writer) {
	switch {
	case d.Mode == spec.Headless:
		fmt.Fprintf(w, "%s: %s (%s, headless); follow it: agent-container logs -f %s\n", d.Name, d.State, d.Agent, d.Name)
	case d.Mode == spec.Interactive && d.SSH != nil:
		fmt.Fprintf(w, "%s: %s (%s, interactive, ssh port %d); attach: agent-container attach %s\n", d.Name, d.State, d.Agent, d.SSH.Port, d.Name)
	case d.Mode == spec.Interactive:
		fmt.Fprintf(w, "%s: %s (%s, interactive); attach: agent-container attach %s --via exec\n", d.Name, d.State, d.Agent, d.Name)
	default:
		fmt.Fprintf(w, "%s: %s (%s, idle); work: agent-container exec %s CMD...\n", d.Name, d.State, d.Agent, d.Name)
	}
	fmt.Fprintf(w, "egress: %s\n", egressLine(d.Egress, d.Outside))
}

func (d *deploymentAnswer) outcome() string {
	if d.Run == nil || d.Run.Outcome == "" {
		return d.State
	}
	return outcomeOf(d.Run)
}

// outcomeOf names a run's outcome, with its cause where that says more.
func outcomeOf(r *spec.Record) string {
	switch {
	case r.Outcome == "":
		return "running"
	case r.Cause == "" || r.Cause == spec.CauseExit || r.Cause == spec.CauseLost || r.Cause == spec.CauseStop:
		return string(r.Outcome)
	}
	return fmt.Sprintf("%s (%s)", r.Outcome, r.Cause)
}
