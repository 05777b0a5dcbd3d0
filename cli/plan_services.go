package cli

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"gopkg.in/yaml.v3"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
)

// planServices compares the services that are there with those of the file.
// Whether one of both changed is read from the model of the last deploy, a cache.
func (a *app) planServices(ctx context.Context, _ *ucli.Context, r *redeployment, p *planAnswer) error {
	all, err := r.engine.Containers(ctx, r.was.Name)
	if err != nil {
		return err
	}
	was, next := map[string]bool{}, map[string]bool{}
	for _, c := range all {
		if service, ok := strings.CutPrefix(c.Name, compose.ServiceContainer(r.was.Name, "")); ok {
			was[service] = true
		}
	}
	file, stays := a.dirs.ServicesFile(r.was.Name), []string{}
	if s := r.next.services; s != nil {
		file = s.File
		for _, service := range s.Names() {
			next[service] = true
		}
	}
	compareKeys(was, next, func(_, _ bool) bool { return false }, func(service, what string) {
		if what == "changed" { // that is, in both
			stays = append(stays, service)
			return
		}
		p.change("service "+service, what, file)
	})
	if len(stays) == 0 {
		return nil
	}
	before, ok := a.deployedModel(r)
	if !ok {
		p.Unknown = append(p.Unknown, "the services "+strings.Join(stays, ", ")+": the model of the last deploy is not in the state directory")
		return nil
	}
	d := *r.next
	d.spec.Egress = r.was.Egress // where a declaration puts services is no change of their file
	content, err := newModel(r.engine, &d).YAML()
	if err != nil {
		return err
	}
	now, _ := parseModel(content)
	for _, service := range stays {
		compareKeys(before[service], now[service], func(a, b any) bool { return reflect.DeepEqual(a, b) }, func(key, what string) {
			p.change("service "+service+": "+key, what, file)
		})
	}
	return nil
}

// model is the services of a Compose file, key by key.
type model map[string]map[string]any

func parseModel(content []byte) (model, bool) {
	var m struct{ Services model }
	return m.Services, yaml.Unmarshal(content, &m) == nil
}

// deployedModel is the model that the container was made from, if the state
// directory still has it.
func (a *app) deployedModel(r *redeployment) (model, bool) {
	content, err := settings.ReadRegular(filepath.Join(a.dirs.Deployment(engine.LocalHost, r.was.Name), modelFile), 16<<20)
	if err != nil {
		return nil, false
	}
	m, ok := parseModel(content)
	labels, _ := m[compose.AgentService]["labels"].(map[string]any)
	was, _ := labels[compose.LabelSpec].(string)
	return m, ok && strings.ReplaceAll(was, "$$", "$") == r.old.Config.Labels[compose.LabelSpec]
}
