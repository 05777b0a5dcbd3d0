package cli

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// brought is what a project gives a deployment: files that were trusted, as
// they were read when that was looked at.
type brought struct {
	project string // "" when it gives nothing
	files   []settings.Brought
}

func (a *app) trusts() settings.Trust {
	return settings.Trust{Dir: filepath.Join(a.dirs.Data, "trust")}
}

// projectAt is the project at or above dir, by the path that trust is kept
// under, or "".
func projectAt(dir string) (string, error) {
	project := settings.FindProject(dir)
	if project == "" {
		return "", nil
	}
	return filepath.EvalSymlinks(project)
}

// broughtTo reads what takes effect of a project's files for s: of the project
// here, if it brings any for it, else of the one that the deployment was made
// from. What is not trusted as it is now is refused, and what your own directory
// has counts instead and needs no trust.
func (a *app) broughtTo(s spec.Spec) (brought, error) {
	here, err := projectAt(a.cwd)
	if err != nil {
		return brought{}, err
	}
	for _, project := range []string{here, s.Project} {
		if project == "" {
			continue
		}
		b, err := a.trustedOf(project, s)
		if err != nil || b.project != "" {
			return b, err
		}
	}
	return brought{}, nil
}

// broughtBefore reads the files that s was deployed with, wherever we are now.
func (a *app) broughtBefore(s spec.Spec) (brought, error) {
	if s.Project == "" {
		return brought{}, nil
	}
	return a.trustedOf(s.Project, s)
}

func (a *app) trustedOf(project string, s spec.Spec) (brought, error) {
	if _, err := os.Stat(project); errors.Is(err, fs.ErrNotExist) {
		return brought{}, refuse("run it in the project, where that is now; or make it without: agent-container down "+s.Name+", then up",
			"%s takes files of the project %s, which is not there", s.Name, project)
	}
	files, _, err := settings.ReadBrought(project, s.Name)
	if err != nil {
		return brought{}, err
	}
	judged, err := a.trusts().Judge(project, s.Name, files)
	if err != nil {
		return brought{}, err
	}
	for _, j := range judged {
		if j.State != settings.StateTrusted && a.ownInstead(j.Path, s) == "" {
			return brought{}, refuse("look at it and allow it: "+process.Quote([]string{"agent-container", "trust", project}),
				"%s: %s: a project's files take effect once they are trusted", filepath.Join(project, settings.ProjectDir, j.Path), stateWords[j.State])
		}
	}
	var b brought
	var said []string
	for _, f := range files {
		own := a.ownInstead(f.Path, s)
		switch {
		case !forAgent(f.Path, s):
		case own == "":
			b.project, b.files = project, append(b.files, f)
		case !slices.Contains(said, own):
			a.say("%s: %s of the project is not used: %s counts", s.Name, f.Path, own)
			said = append(said, own)
		}
	}
	return b, nil
}

// forAgent reports whether a file is no configuration of another agent.
func forAgent(rel string, s spec.Spec) bool {
	below, isConfig := strings.CutPrefix(rel, s.Name+settings.BroughtConfig+"/")
	return !isConfig || strings.HasPrefix(below, s.Agent+"/")
}

// stateWords say why a file is not trusted.
var stateWords = map[string]string{
	settings.StateNew:     "not trusted",
	settings.StateChanged: "changed since it was trusted",
	settings.StateRemoved: "removed since it was trusted",
}

// ownInstead returns the user's own file or directory that counts instead of a
// project's, or "".
func (a *app) ownInstead(rel string, s spec.Spec) string {
	own := ""
	switch {
	case strings.HasSuffix(rel, settings.BroughtServices):
		own = a.dirs.ServicesFile(s.Name)
	case strings.HasPrefix(rel, s.Name+settings.BroughtConfig+"/"):
		agent, _, _ := strings.Cut(strings.TrimPrefix(rel, s.Name+settings.BroughtConfig+"/"), "/")
		own = a.dirs.AgentConfig(s.Name, agent)
	default:
		return ""
	}
	if _, err := os.Lstat(own); err != nil {
		return ""
	}
	return own
}

// place is what errors call a file of the project.
func (b brought) place(rel string) string { return path.Join(b.project, settings.ProjectDir, rel) }

// services reads the project's services file, nil when it brings none.
func (b brought) services(ctx context.Context, name string) (*compose.Services, error) {
	for _, f := range b.files {
		if f.Path == name+settings.BroughtServices {
			return compose.ParseProjectServices(ctx, name, b.place(f.Path), path.Join(b.project, settings.ProjectDir), f.Content)
		}
	}
	return nil, nil
}

// environment adds the variables of the project's environment file. A name
// without a value is refused: a project takes no variable of the user's.
func (b brought) environment(env environment, name string) error {
	for _, f := range b.files {
		if f.Path != name+settings.BroughtEnv {
			continue
		}
		none := func(string) (string, bool) { return "", false }
		if err := parseEnv(env, b.place(f.Path), f.Content, none, "write NAME=VALUE: a project's file takes no variable of yours"); err != nil {
			return err
		}
	}
	return nil
}

// config is the project's configuration of an agent.
func (b brought) config(name, agent string) []configFile {
	var files []configFile
	for _, f := range b.files {
		if rel, ok := strings.CutPrefix(f.Path, name+settings.BroughtConfig+"/"+agent+"/"); ok {
			mode := int64(0o600)
			if f.Executable {
				mode = 0o700
			}
			files = append(files, configFile{rel, mode, f.Content})
		}
	}
	return files
}

// names lists the files that take effect, with the variables that they set.
func (b brought) names(name string) string {
	var names []string
	for _, f := range b.files {
		text := f.Path
		if f.Path == name+settings.BroughtEnv {
			text += " (" + strings.Join(variablesOf(f.Content), ", ") + ")"
		}
		names = append(names, text)
	}
	return strings.Join(names, ", ")
}

// variablesOf lists the names that an environment file sets, as far as it can be
// read.
func variablesOf(content []byte) []string {
	env := environment{}
	none := func(string) (string, bool) { return "", false }
	_ = parseEnv(env, "", content, none, "") // a mistake is told where the file is used
	return slices.Sorted(maps.Keys(env))
}

// steering reports whether a variable makes programs do something else than they
// would, and so is more than a setting of one of them.
func steering(name string) bool {
	return slices.Contains([]string{"PATH", "HOME", "SHELL", "ENV", "BASH_ENV", "IFS", "PYTHONPATH", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT"}, name) ||
		strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "npm_config_") ||
		strings.HasSuffix(name, "_BASE_URL") || strings.HasSuffix(strings.ToUpper(name), "_PROXY")
}
