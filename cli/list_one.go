package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

// lookTime bounds the question to the container; git and tmux in it have bounds
// of their own.
const lookTime = 20 * time.Second

// detailAnswer is everything that is known of one deployment.
type detailAnswer struct {
	listed
	ImageBuilt *time.Time     `json:"image_built,omitempty"`
	Ports      []published    `json:"ports,omitempty"`
	Mounts     []mounted      `json:"mounts"`
	EnvNames   []string       `json:"env_names,omitempty"` // variables that were typed; their values are secrets
	EnvFiles   []string       `json:"env_files,omitempty"` // files that are read again by a redeploy
	Session    *spec.Session  `json:"session,omitempty"`
	Repository *spec.WorkTree `json:"repository,omitempty"`
	Unseen     string         `json:"unseen,omitempty"` // why session and repository are not known
	Hint       string         `json:"hint,omitempty"`

	now      time.Time
	terminal bool
}

// published is a port of the container that the host publishes.
type published struct {
	Address string `json:"address"`
	Port    string `json:"port"`
	Inside  string `json:"container_port"` // PORT/PROTOCOL
}

// mounted is a volume or a host directory in the container.
type mounted struct {
	Path     string `json:"path"`
	Type     string `json:"type"`   // volume or bind
	Source   string `json:"source"` // the volume's name, the host's directory
	ReadOnly bool   `json:"read_only,omitempty"`
}

// listOne tells everything of one deployment. It is the one list that enters a
// container, when that runs.
func (a *app) listOne(ctx context.Context, c *ucli.Context) (any, error) {
	var all []*engine.Container
	var found *engine.Container
	name, e, err := a.begin(ctx, c,
		func(ctx context.Context, e *engine.Engine) (err error) {
			all, err = e.Containers(ctx, c.Args().First())
			return err
		},
		func(ctx context.Context, e *engine.Engine) (err error) {
			found, err = a.find(ctx, e, c.Args().First())
			return err
		})
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, noDeployment(name)
	}
	d := detailAnswer{listed: a.listed(found, servicesOf(all)[name], gatewayOf(all, name)), Mounts: []mounted{}, now: time.Now(), terminal: a.terminal}
	if s, err := specOf(found); err == nil {
		d.EnvNames, d.EnvFiles = s.EnvNames, s.EnvFiles
	}
	d.Ports = publishedPorts(found)
	for _, m := range found.Mounts {
		source := m.Name
		if source == "" {
			source = m.Source
		}
		d.Mounts = append(d.Mounts, mounted{m.Destination, m.Type, source, !m.RW})
	}
	slices.SortFunc(d.Mounts, func(a, b mounted) int { return strings.Compare(a.Path, b.Path) })
	image, err := e.FindImage(ctx, found.Image)
	if err != nil {
		return nil, err
	}
	if image != nil { // else it was removed
		built := image.Built()
		d.ImageBuilt = &built
	}
	if err := d.look(ctx, e, found); err != nil {
		return nil, err
	}
	if d.Hint != "" && !a.json {
		a.say("hint: %s", d.Hint)
	}
	return d, nil
}

// publishedPorts lists what the host publishes of a container, running or not.
func publishedPorts(c *engine.Container) []published {
	var list []published
	for _, inside := range slices.Sorted(maps.Keys(c.HostConfig.PortBindings)) {
		for _, b := range c.HostConfig.PortBindings[inside] {
			list = append(list, published{b.HostIp, b.HostPort, inside})
		}
	}
	return list
}

// look asks the guest how session and repository are. That they are not known
// is told, not an error; only the loss of the engine is one.
func (d *detailAnswer) look(ctx context.Context, e *engine.Engine, c *engine.Container) error {
	if c.State.Status != "running" {
		d.Unseen = "the container is " + c.State.Status
		return nil
	}
	probe, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	out, err := e.Probe(probe, c.ID, spec.ContainerGuest, "look")
	var l spec.Look
	if err == nil {
		l, err = spec.ParseLook([]byte(out))
	}
	var lost *engine.UnreachableError
	var exit *process.ExitError
	switch {
	case ctx.Err() != nil || errors.As(err, &lost):
		return err
	case probe.Err() != nil:
		d.Unseen = fmt.Sprintf("no answer within %s", lookTime)
	case errors.As(err, &exit) && strings.Contains(exit.Stderr, "unknown verb"):
		d.Unseen, d.Hint = "its image is older and cannot tell", "renew it: agent-container redeploy "+d.Name
	case err != nil:
		d.Unseen = oneLine(spec.Printable(err.Error(), 500))
	default:
		d.Session, d.Repository = &l.Session, &l.Repository
		if status, err := spec.ParseStatus(l.Status); err == nil && d.State != stateCutOff { // newer than the last health check
			d.setUp(status)
		}
	}
	if d.Session != nil && d.Session.State == spec.SessionEnded {
		d.Hint = "begin it anew: agent-container redeploy " + d.Name
	}
	return nil
}

// text is one fact a line, as context prints them.
func (d detailAnswer) text(w io.Writer) {
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s: %s\n", key, value)
		}
	}
	line("name", d.Name)
	state := d.State
	if d.ExitCode != nil {
		state += fmt.Sprintf(", exit code %d", *d.ExitCode)
	}
	line("state", state+d.detail(1000))
	line("problem", spec.Printable(oneLine(d.Problem), 1000))
	line("agent", d.Agent)
	line("mode", string(d.Mode))
	line("workspace", string(d.Workspace))
	line("repo", d.Repo)
	line("egress", egressLine(d.Egress, d.Outside))
	line("created", ago(&d.Created, d.now, d.terminal))
	line("image", d.Image)
	line("image built", ago(d.ImageBuilt, d.now, d.terminal))
	for _, p := range d.Ports {
		line("port", net.JoinHostPort(p.Address, p.Port)+" -> "+p.Inside)
	}
	d.inside(line)
	for _, s := range d.Services {
		line("service", s.Container+" "+s.State)
	}
	for _, m := range d.Mounts {
		line("mount", m.String())
	}
	for _, n := range d.EnvNames {
		line("variable", n+" (typed)")
	}
	for _, f := range d.EnvFiles {
		line("variables", "of "+spec.Printable(f, 1000))
	}
}

// inside is what the guest has said.
func (d detailAnswer) inside(line func(key, value string)) {
	if d.Unseen != "" {
		line("session", "not known: "+d.Unseen)
		line("repository", "not known: "+d.Unseen)
		return
	}
	session := string(d.Session.State)
	if d.Session.State == spec.SessionAlive {
		session += fmt.Sprintf(", %d attached", d.Session.Clients)
	}
	line("session", session)
	for _, win := range d.Session.Windows {
		text := fmt.Sprintf("%d %s, %s", win.Index, win.Name, win.Command)
		if win.Active {
			text += " (active)"
		}
		line("window", text)
	}
	line("repository", repositoryText(*d.Repository))
}

// repositoryText is a work tree in one line.
func repositoryText(t spec.WorkTree) string {
	if t.State != "ok" && t.State != "detached" {
		return t.State
	}
	count := func(n *int, what string) string {
		if n == nil {
			return what + " not known"
		}
		return fmt.Sprintf("%d %s", *n, what)
	}
	at := "no commit yet"
	if t.Head != "" {
		at = "at " + t.Head[:12]
	}
	where := t.Branch
	if t.State == "detached" {
		where = "detached"
	}
	parts := []string{where + " " + at, count(t.Uncommitted, "uncommitted")}
	if t.Remote == "" {
		return strings.Join(append(parts, "no remote"), ", ")
	}
	return strings.Join(append(parts, count(t.Unpushed, "unpushed"), "remote "+t.Remote), ", ")
}

func (m mounted) String() string {
	text := m.Path + " is the " + m.Type + " " + spec.Printable(m.Source, 1000)
	if m.ReadOnly {
		text += ", read-only"
	}
	return text
}
