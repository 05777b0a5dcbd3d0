package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

// Container is what inspect says of a container: the fields we read.
type Container struct {
	ID           string
	Name         string
	Image        string // id
	Created      time.Time
	RestartCount int
	State        State
	Config       struct {
		Image  string // as named by the model
		Labels map[string]string
		Env    []string
	}
	HostConfig struct {
		RestartPolicy struct{ Name string }
		NetworkMode   string // "container:ID" in the namespace of another
		PortBindings  map[string][]struct{ HostIp, HostPort string }
		Memory        int64
		NanoCpus      int64
		PidsLimit     int64 // 0 and -1 mean none
	}
	Mounts []struct {
		Type, Name, Source, Destination string
		RW                              bool
	}
}

// State is a container's state in the engine's words.
type State struct {
	Status     string // created, running, paused, restarting, removing, exited, dead
	OOMKilled  bool
	ExitCode   int
	Error      string
	StartedAt  time.Time
	FinishedAt time.Time
	Health     *struct {
		Status string
		Log    []struct {
			ExitCode int
			Output   string
		}
	}
}

// Alive reports whether the container's process runs or is about to.
func (s State) Alive() bool {
	return s.Status == "running" || s.Status == "restarting" || s.Status == "paused"
}

// HasRun reports whether the container was ever started.
func (s State) HasRun() bool { return s.StartedAt.Year() > 1 }

// Report is s in the form that a run record keeps.
func (s State) Report() *spec.EngineReport {
	return &spec.EngineReport{
		Status: s.Status, ExitCode: s.ExitCode, OOMKilled: s.OOMKilled, Error: spec.Printable(s.Error, 1000),
		StartedAt: utc(s.StartedAt), FinishedAt: utc(s.FinishedAt),
	}
}

func utc(t time.Time) string {
	if t.Year() <= 1 { // the engine's word for "never"
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// SetUp returns what the set-up failed in or waits for according to the last
// health check, or false. It costs nothing beyond the inspect that was made.
func (s State) SetUp() (spec.Status, bool) {
	if s.Health == nil || len(s.Health.Log) == 0 {
		return spec.Status{}, false
	}
	last := s.Health.Log[len(s.Health.Log)-1]
	status, err := spec.ParseStatus(last.Output)
	return status, err == nil && (status.State == spec.Failed || status.State == spec.Pending)
}

// SSH returns the host's address and port on which the container's sshd is
// published, running or not, and false when it is not. Behind a gateway the
// gateway's container publishes it, and a label says where.
func (c *Container) SSH() (address string, port int, ok bool) {
	if address, text, err := net.SplitHostPort(c.Config.Labels[compose.LabelSSH]); err == nil {
		port, err := strconv.Atoi(text)
		return address, port, err == nil && port > 0
	}
	for _, b := range c.HostConfig.PortBindings[fmt.Sprintf("%d/tcp", spec.SSHPort)] {
		if port, err := strconv.Atoi(b.HostPort); err == nil && port > 0 {
			return b.HostIp, port, true
		}
	}
	return "", 0, false
}

// Deployed is c in the form from which a spec is read back.
func (c *Container) Deployed() compose.Deployed {
	_, _, published := c.SSH()
	d := compose.Deployed{Labels: c.Config.Labels, Env: c.Config.Env, SSH: published}
	d.Limits.MemoryBytes, d.Limits.Pids = max(c.HostConfig.Memory, 0), max(c.HostConfig.PidsLimit, 0)
	d.Limits.CPUs = float64(max(c.HostConfig.NanoCpus, 0)) / 1e9
	for _, m := range c.Mounts {
		d.Mounts = append(d.Mounts, compose.Mount{Type: m.Type, Source: m.Source, Target: m.Destination, ReadOnly: !m.RW})
	}
	return d
}

// Deployment returns the deployment that the container says it belongs to.
func (c *Container) Deployment() string { return c.Config.Labels[compose.LabelName] }

// ShouldRun reports whether c has ended although nobody told it to by Stay: an
// engine that was killed ends what it finds running when it comes back, and then
// takes it for stopped by hand (Docker 26.1).
func (c *Container) ShouldRun() bool {
	return !c.State.Alive() && c.State.HasRun() && c.HostConfig.RestartPolicy.Name == unlessStopped
}

// IsAgent reports whether c is a deployment's agent container.
func (c *Container) IsAgent() bool {
	return c.Deployment() != "" && c.Name == compose.ProjectName(c.Deployment())
}

// IsGateway reports whether c is the gateway of a deployment's egress.
func (c *Container) IsGateway() bool {
	return c.Deployment() != "" && c.Name == compose.GatewayContainer(c.Deployment())
}

// Behind reports whether c is in a network namespace that is another container's.
func (c *Container) Behind() bool { return strings.HasPrefix(c.HostConfig.NetworkMode, "container:") }

// LeftBy reports whether gateway, whose namespace c has joined, has ended or was
// started again since: the namespace that c is in leads nowhere.
func (c *Container) LeftBy(gateway *Container) bool {
	return !gateway.State.Alive() || c.State.StartedAt.Before(gateway.State.StartedAt)
}

// ByCompose reports whether Compose made c, and so replaces it.
func (c *Container) ByCompose() bool {
	return c.Config.Labels["com.docker.compose.project"] == compose.ProjectName(c.Deployment())
}

// Beside is what was deployed beside the agent: Compose keeps what a container
// depends on in a label, "NAME:CONDITION:RESTART,...".
func (c *Container) Beside() Beside {
	var b Beside
	for _, entry := range strings.Split(c.Config.Labels["com.docker.compose.depends_on"], ",") {
		switch name, _, _ := strings.Cut(entry, ":"); name {
		case "":
		case compose.GatewayService:
			b.Gateway = true
		default:
			b.Services = true
		}
	}
	return b
}

// Inspect returns the container called name, ours or not, or nil when there is
// none.
func (e *Engine) Inspect(ctx context.Context, name string) (*Container, error) {
	list, err := e.inspect(ctx, []string{name})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// Containers returns every container of a deployment, or of all deployments
// when name is empty, sorted by name: two engine calls, however many they are.
func (e *Engine) Containers(ctx context.Context, name string) ([]*Container, error) {
	filter := "label=" + compose.LabelName
	if name != "" {
		filter += "=" + name
	}
	// Labels cannot be read from ps: its JSON joins them with commas.
	out, err := e.docker(ctx, "ps", "--all", "--quiet", "--no-trunc", "--filter", filter)
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	ids := strings.Fields(string(out))
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := e.inspect(ctx, ids)
	slices.SortFunc(list, func(a, b *Container) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// Going reports whether the engine is removing c: it is there, and cannot be used.
func (c *Container) Going() bool { return c.State.Status == "removing" }

// Settled is Containers once the engine is through with what it is removing, for a
// command that was killed say; it waits 30 s at most.
func (e *Engine) Settled(ctx context.Context, name string) ([]*Container, error) {
	for began := time.Now(); ; {
		all, err := e.Containers(ctx, name)
		if err != nil || !slices.ContainsFunc(all, (*Container).Going) || time.Since(began) > busyTime {
			return all, err
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// Deployments returns the names of all deployments, in order, by one engine
// call that is given up as soon as ctx ends.
func (e *Engine) Deployments(ctx context.Context) ([]string, error) {
	out, err := e.command(ctx, process.Command{
		Argv:  []string{e.Runtime, "ps", "--all", "--filter", "label=" + compose.LabelName, "--format", `{{.Label "` + compose.LabelName + `"}}`},
		Grace: 100 * time.Millisecond,
	})
	names := strings.Fields(string(out))
	slices.Sort(names)
	return slices.Compact(names), err
}

// inspect reads the containers that exist among ids; one that is gone meanwhile
// is left out.
func (e *Engine) inspect(ctx context.Context, ids []string) ([]*Container, error) {
	out, err := e.docker(ctx, append([]string{"container", "inspect"}, ids...)...)
	if err != nil && !missing(err) {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	var list []*Container
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("inspect: unreadable answer of the engine: %w", err)
	}
	for _, c := range list {
		c.Name = strings.TrimPrefix(c.Name, "/")
	}
	return list, nil
}
