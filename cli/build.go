package cli

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/spec"
)

func buildCommand() command {
	return command{
		name: "build", group: groupLife, usage: "build agent images beforehand, or renew them",
		detail: "Images are named by their content: one that is there is not built again.",
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "agent", Usage: "the agent: the default one when not given"},
			&ucli.BoolFlag{Name: "all", Usage: "all agents"},
			&ucli.BoolFlag{Name: "refresh", Usage: "renew the base image and its packages"},
			&ucli.BoolFlag{Name: "no-cache", Usage: "build every step anew"},
		},
		run: (*app).build,
	}
}

// buildAnswer lists the images that now exist.
type buildAnswer struct {
	Images []builtImage `json:"images"`
}

type builtImage struct {
	Agent string `json:"agent"`
	Image string `json:"image"`
	ID    string `json:"id"`
	Bytes int64  `json:"bytes"`
}

func (b buildAnswer) text(w io.Writer) {
	var rows [][]string
	for _, i := range b.Images {
		rows = append(rows, []string{i.Agent, i.Image, fmt.Sprintf("%d MB", i.Bytes/1e6)})
	}
	table(w, []string{"AGENT", "IMAGE", "SIZE"}, rows)
}

func (a *app) build(ctx context.Context, c *ucli.Context) (any, error) {
	if c.Bool("all") && c.IsSet("agent") {
		return nil, refuse("drop one of them", "--all and --agent exclude each other")
	}
	if err := a.config(); err != nil {
		return nil, err
	}
	agents := spec.Agents
	if !c.Bool("all") {
		name := a.settings.Get("agent").Text
		if c.IsSet("agent") {
			name = c.String("agent")
		}
		agent, err := spec.LookupAgent(name)
		if err != nil {
			return nil, err
		}
		agents = []spec.Agent{agent}
	}
	ca, err := a.caBundle(a.settings.Get("ca_bundle").Text)
	if err != nil {
		return nil, err
	}
	e, err := a.engine(ctx)
	if err != nil {
		return nil, err
	}
	answer := buildAnswer{}
	wish := imageWish{base: a.settings.Get("base_image").Text, caBundle: ca, refresh: c.Bool("refresh")}
	if wish.rebuild = wish.refresh || c.Bool("no-cache"); wish.rebuild {
		wish.anew = []string{"all"}
	}
	for _, agent := range agents {
		wish.agent = agent
		image, err := a.ensureImage(ctx, e, wish)
		// The base and the stage that all agents share are new by now; made once
		// more they would be layers of each image's own.
		wish.refresh = false
		if wish.rebuild {
			wish.anew = []string{"builder"}
		}
		if err != nil {
			return nil, err
		}
		found, err := e.FindImage(ctx, image)
		if err != nil || found == nil {
			return nil, fmt.Errorf("image %s is not on the engine although it was built: %w", image, err)
		}
		answer.Images = append(answer.Images, builtImage{agent.Name, image, found.ID, found.Size})
	}
	return answer, nil
}
