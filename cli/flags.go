package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/spec"
)

// specFlags are the flags of up and redeploy that describe a deployment.
func specFlags() []ucli.Flag {
	list := []ucli.Flag{
		&ucli.StringFlag{Name: "agent", Usage: "the agent: " + strings.Join(spec.AgentNames(), ", ")},
		&ucli.StringFlag{Name: "mode", Usage: "interactive, headless or idle"},
		&ucli.StringFlag{Name: "workspace", Usage: "persistent, bind (read-only) or ephemeral"},
		&ucli.StringFlag{Name: "workspace-dir", Usage: "the host `DIR` of a bind workspace"},
		&ucli.StringFlag{Name: "repo", Usage: "clone `URL[#REF]` into the workspace at the first start; REF is a branch, a tag or a commit"},
		&ucli.IntFlag{Name: "depth", Usage: "clone only the last `N` commits"},
		&ucli.BoolFlag{Name: "no-repo", Usage: "clone nothing; what is in the workspace stays"},
		&ucli.StringSliceFlag{Name: "mount", KeepSpace: true, Usage: "show a host directory, read-only: `HOSTDIR[:PATH]`, at " + spec.MountDir + "/ and its name when there is no PATH; none for no mounts"},
		// urfave trims values unless told to keep them as typed.
		&ucli.StringSliceFlag{Name: "env", Aliases: []string{"e"}, KeepSpace: true, Usage: "`NAME[=VALUE]` for the agent; NAME alone takes the value from here, which keeps it out of the shell's history"},
		&ucli.StringSliceFlag{Name: "env-file", KeepSpace: true, Usage: "a `FILE` of NAME=VALUE lines; later ones win"},
		&ucli.StringFlag{Name: "task", Usage: "what to do: `TEXT`, @FILE, or - for standard input"},
		&ucli.BoolFlag{Name: "foreground", Usage: "follow a headless run and exit with the agent's code"},
		&ucli.BoolFlag{Name: "ssh", Usage: "let in over ssh also to a job or an idle deployment"},
		&ucli.StringSliceFlag{Name: "authorized-key", KeepSpace: true, Usage: "a `FILE` of public keys that may attach, beside your own collection; none for no file"},
		&ucli.BoolFlag{Name: "dry-run", Usage: "print the Compose model and stop"},
	}
	return append(append(list, egressFlags()...), limitFlags()...)
}

// specFields are the flags of specFlags that are fields of the spec, beside the
// limits.
var specFields = []string{"agent", "mode", "workspace", "workspace-dir", "mount", "repo", "no-repo", "depth", "env", "env-file", "ssh", "authorized-key", "egress", "egress-allow"}

// typedSpec says whether any flag was typed that is a field of the spec.
func typedSpec(c *ucli.Context) bool { return len(specFieldsTyped(c)) > 0 }

// specFieldsTyped lists the flags that were typed and are fields of the spec.
func specFieldsTyped(c *ucli.Context) []string {
	fields := slices.Clone(specFields)
	for _, l := range limits {
		fields = append(fields, l.flag)
	}
	return slices.DeleteFunc(fields, func(f string) bool { return !c.IsSet(f) })
}

// newSpec is the spec of a new deployment: settings, and the typed flags over
// them.
func (a *app) newSpec(c *ucli.Context, name string) (spec.Spec, error) {
	s := spec.Spec{
		Name:      name,
		Agent:     a.settings.Get("agent").Text,
		Mode:      spec.Mode(a.settings.Get("mode").Text),
		Workspace: spec.Workspace(a.settings.Get("workspace").Text),
		Timezone:  a.timezone(),
	}
	if err := a.applySettings(&s); err != nil {
		return s, err
	}
	if err := a.applyFlags(&s, c); err != nil {
		return s, err
	}
	if _, err := a.declareEgress(&s, c, nil); err != nil {
		return s, err
	}
	return s, s.Validate()
}

// applySettings takes into s what comes from files every time, also on a
// redeploy.
func (a *app) applySettings(s *spec.Spec) error {
	get := func(key string) string { return a.settings.Get(key).Text }
	s.RecordTask = get("record_task") == "true"
	s.SSHBind = get("ssh_bind")
	s.BaseImage = get("base_image")
	var err error
	if s.CABundle, err = a.caBundle(get("ca_bundle")); err != nil {
		return err
	}
	return a.limitSettings(s)
}

// applyFlags puts the typed flags over s.
func (a *app) applyFlags(s *spec.Spec, c *ucli.Context) error {
	if c.IsSet("agent") {
		s.Agent = c.String("agent")
	}
	if c.IsSet("mode") {
		s.Mode = spec.Mode(c.String("mode"))
	}
	if c.IsSet("workspace") {
		workspace, err := spec.WithoutAccess("--workspace", c.String("workspace"))
		if err != nil {
			return err
		}
		s.Workspace = spec.Workspace(workspace)
		if s.Workspace != spec.Bind {
			s.WorkspaceDir = ""
		}
	}
	if c.IsSet("workspace-dir") {
		dir, err := spec.WithoutAccess("--workspace-dir", c.String("workspace-dir"))
		if err == nil {
			s.WorkspaceDir, err = hostDirectory("--workspace-dir", dir)
		}
		if err != nil {
			return err
		}
	}
	if c.IsSet("mount") {
		var err error
		if s.Mounts, err = typedMounts(c.StringSlice("mount")); err != nil {
			return err
		}
	}
	if err := a.applyRepo(s, c); err != nil {
		return err
	}
	if c.IsSet("env-file") {
		s.EnvFiles = nil
		for _, f := range c.StringSlice("env-file") {
			path, err := filepath.Abs(f)
			if err != nil {
				return err
			}
			s.EnvFiles = append(s.EnvFiles, path)
		}
	}
	if c.IsSet("authorized-key") {
		s.AccessFiles = nil
		typed := c.StringSlice("authorized-key")
		if slices.Equal(typed, []string{"none"}) {
			typed = nil
		}
		for _, f := range typed {
			path, err := filepath.Abs(f)
			if err != nil {
				return err
			}
			if _, err := typedKeys(path); err != nil {
				return err
			}
			s.AccessFiles = append(s.AccessFiles, path)
		}
	}
	if c.IsSet("ssh") {
		s.SSH = c.Bool("ssh")
	}
	for _, e := range c.StringSlice("env") {
		name, _, _ := strings.Cut(e, "=")
		s.EnvNames = append(s.EnvNames, name)
	}
	slices.Sort(s.EnvNames)
	s.EnvNames = slices.Compact(s.EnvNames)
	return typedLimits(s, c)
}

// applyRepo takes the flags about the repository. "No repository" is nothing that
// --repo could say, so there is a flag for it.
func (a *app) applyRepo(s *spec.Spec, c *ucli.Context) error {
	if c.Bool("no-repo") {
		if c.IsSet("repo") {
			return refuse("leave one of them out", "--repo and --no-repo contradict each other")
		}
		s.Repo, s.Depth = "", 0
	}
	if c.IsSet("repo") {
		r, dropped, err := spec.ParseRepo(c.String("repo"))
		if err != nil {
			return err
		}
		if dropped && !a.warned {
			a.warned = true
			a.say("warning: --repo: the credentials in the URL are left out; a token goes into --env GH_TOKEN, or a variable that git.credentials names")
		}
		s.Repo, s.Depth = r.String(), 0
	}
	if c.IsSet("depth") {
		if c.Int("depth") < 1 {
			return refuse("write --depth 1 or more; --repo without it clones all of the history", "--depth: %d commits cannot be cloned", c.Int("depth"))
		}
		s.Depth = c.Int("depth")
	}
	return nil
}

// existingDirectory returns the absolute path of a directory, links resolved,
// or refuses.
func existingDirectory(flag, dir string) (string, error) {
	if dir == "" {
		return "", refuse("name a directory", "%s is empty", flag)
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", refuse("create it, or name another directory", "%s: %v", flag, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", refuse("", "%s: %v", flag, err)
	}
	if !info.IsDir() {
		return "", refuse("name a directory", "%s: %s is not a directory", flag, abs)
	}
	return abs, nil
}

// caBundle resolves the setting to "none" or the path of a readable file.
func (a *app) caBundle(setting string) (string, error) {
	origin := "ca_bundle"
	if setting == "auto" {
		setting = "none"
		for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
			if path := a.env(name); path != "" {
				setting, origin = path, name
				break
			}
		}
	}
	if setting == "none" {
		return setting, nil
	}
	info, err := os.Stat(setting)
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", setting)
	case strings.Contains(setting, ","):
		err = fmt.Errorf("%s has a comma in its name, which the image builder reads as an end", setting)
	}
	if err != nil {
		return "", refuse("correct "+origin+", or set ca_bundle: none", "%s: %v", origin, err)
	}
	return setting, nil
}

// timezone is the host's IANA zone, so that limits and times an agent speaks
// of are the user's.
func (a *app) timezone() string {
	if tz := strings.TrimPrefix(a.env("TZ"), ":"); tz != "" && !strings.HasPrefix(tz, "/") {
		return tz
	}
	target, err := os.Readlink("/etc/localtime")
	if _, zone, ok := strings.Cut(target, "zoneinfo/"); err == nil && ok {
		return zone
	}
	return "UTC"
}
