package cli

import (
	"context"
	"io"
	"strconv"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func listCommand() command {
	return command{
		name: "list", aliases: []string{"ls"}, group: groupLook, args: "[NAME]", usage: "list the deployments, or show one in detail",
		detail: "Without NAME no container is entered. With NAME a running one is asked how its session and its repository are.",
		max:    1, run: (*app).list,
	}
}

// listAnswer is the deployments of one host.
type listAnswer struct {
	Deployments []listed `json:"deployments"`

	now      time.Time
	terminal bool
}

type listed struct {
	deploymentAnswer
	Services []listedService `json:"services,omitempty"`
	Problem  string          `json:"problem,omitempty"` // what could not be read
}

type listedService struct {
	Container string `json:"container"`
	State     string `json:"state"`
}

// list reads everything from what the engine says of the containers; it enters
// none.
func (a *app) list(ctx context.Context, c *ucli.Context) (any, error) {
	if c.Args().Present() {
		return a.listOne(ctx, c)
	}
	if err := a.places(); err != nil {
		return nil, err
	}
	var all []*engine.Container
	_, err := a.engine(ctx, func(ctx context.Context, e *engine.Engine) (err error) {
		all, err = e.Containers(ctx, "")
		return err
	})
	if err != nil {
		return nil, err
	}
	answer := listAnswer{Deployments: []listed{}, now: time.Now(), terminal: a.terminal}
	services := servicesOf(all)
	for _, c := range all {
		if c.IsAgent() {
			answer.Deployments = append(answer.Deployments, a.listed(c, services[c.Deployment()], gatewayOf(all, c.Deployment())))
		}
	}
	return answer, nil
}

// servicesOf are the containers of users' services among all, by deployment.
func servicesOf(all []*engine.Container) map[string][]listedService {
	services := map[string][]listedService{}
	for _, c := range all {
		if !c.IsAgent() && !c.IsGateway() {
			services[c.Deployment()] = append(services[c.Deployment()], listedService{c.Name, c.State.Status})
		}
	}
	return services
}

func (a *app) listed(c *engine.Container, services []listedService, gateway *engine.Container) listed {
	s, err := specOf(c)
	l := listed{Services: services}
	if err != nil {
		s = spec.Spec{Name: c.Deployment()}
		l.Problem = err.Error()
	}
	l.deploymentAnswer = *a.describe(c, s, nil)
	if err != nil {
		l.Egress = "not known"
	}
	if s.Egress != nil {
		if why := gatewayLost(c, gateway); why != "" {
			l.State, l.Detail = stateCutOff, why
		}
	}
	return l
}

func (l listAnswer) text(w io.Writer) {
	var rows [][]string
	for _, d := range l.Deployments {
		state := d.State + d.detail(60)
		port, code := "", ""
		if d.SSH != nil {
			port = strconv.Itoa(d.SSH.Port)
		}
		if d.ExitCode != nil {
			code = strconv.Itoa(*d.ExitCode)
		}
		rows = append(rows, []string{d.Name, d.Agent, string(d.Mode), string(d.Workspace), port, state, code, age(d.Created, l.now, l.terminal)})
	}
	header := "CREATED"
	if l.terminal {
		header = "AGE"
	}
	table(w, []string{"NAME", "AGENT", "MODE", "WORKSPACE", "PORT", "STATE", "EXIT", header}, rows)
}
