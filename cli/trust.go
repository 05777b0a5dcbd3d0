package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

func trustCommand() command {
	return command{
		name: "trust", group: groupLook, args: "[DIR]", usage: "show what a project brings, and let it take effect",
		detail: "A project's NAME.services.yaml, NAME.env and NAME.config/ count once you have seen them. Trust is kept by their\n" +
			"content: any change ends it. Without DIR it is the project here.",
		flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "list", Usage: "only say what is trusted and what is not"},
			&ucli.BoolFlag{Name: "revoke", Usage: "trust nothing of the project any more"},
			yesFlag(),
		},
		max: 1, run: (*app).trust,
	}
}

// trustAnswer is what a project brings, and whether it takes effect.
type trustAnswer struct {
	Project string      `json:"project"`
	Trusted bool        `json:"trusted"` // all of it, as it is now
	Files   []trustFile `json:"files"`
	Unused  []string    `json:"unused"` // what else is in its folder, and never counts
}

type trustFile struct {
	Path   string `json:"path"`
	State  string `json:"state"`
	Bytes  int    `json:"bytes"`
	Digest string `json:"digest,omitempty"`
}

func (t *trustAnswer) text(w io.Writer) {
	for _, f := range t.Files {
		fmt.Fprintf(w, "%s: %s\n", f.State, spec.Printable(f.Path, maxSaid))
	}
	for _, name := range t.Unused {
		fmt.Fprintf(w, "never counts: %s\n", spec.Printable(name, maxSaid))
	}
	if len(t.Files) == 0 {
		fmt.Fprintf(w, "the project %s brings nothing that needs trust\n", spec.Printable(t.Project, maxSaid))
	}
}

func (a *app) trust(_ context.Context, c *ucli.Context) (any, error) {
	if c.Bool("revoke") && (c.Bool("list") || c.Bool("yes")) || c.Bool("list") && c.Bool("yes") {
		return nil, refuse("drop all but one of them", "--list, --revoke and --yes exclude each other")
	}
	if err := a.places(); err != nil {
		return nil, err
	}
	project, err := a.projectToTrust(c.Args().First())
	if err != nil {
		return nil, err
	}
	if c.Bool("revoke") {
		if _, err := a.trusts().Revoke(project); err != nil {
			return nil, err
		}
	}
	files, unused, err := settings.ReadBrought(project, "")
	if err != nil {
		return nil, err
	}
	answer, err := a.judge(project, files, unused)
	if err != nil || answer.Trusted || c.Bool("list") || c.Bool("revoke") {
		return answer, err
	}
	a.show(answer, files)
	if err := a.confirm(c, "let these files of "+project+" take effect"); err != nil {
		f := asFailure(err)
		f.data = answer
		return nil, f
	}
	if err := a.trusts().Allow(project, files, time.Now()); err != nil {
		return nil, fmt.Errorf("trust %s: %w", project, err)
	}
	return a.judge(project, files, unused)
}

// projectToTrust is the project at or above dir, or where somebody has taken
// the folder away, dir itself, of which something was trusted.
func (a *app) projectToTrust(dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil { // first: a project above may bring nothing
		if was, err := a.trusts().Judge(real, "", nil); err == nil && len(was) > 0 {
			return real, nil
		}
	}
	project, err := projectAt(abs)
	if err != nil || project != "" {
		return project, err
	}
	return "", refuse("run it in the project, or name its directory", "no folder %s in %s or above", settings.ProjectDir, abs)
}

func (a *app) judge(project string, files []settings.Brought, unused []string) (*trustAnswer, error) {
	judged, err := a.trusts().Judge(project, "", files)
	if err != nil {
		return nil, err
	}
	answer := &trustAnswer{Project: project, Trusted: true, Files: []trustFile{}, Unused: append([]string{}, unused...)}
	for _, j := range judged {
		f := trustFile{Path: j.Path, State: j.State}
		if i := slices.IndexFunc(files, func(b settings.Brought) bool { return b.Path == j.Path }); i >= 0 {
			f.Bytes, f.Digest = len(files[i].Content), files[i].Digest
		}
		answer.Trusted = answer.Trusted && j.State == settings.StateTrusted
		answer.Files = append(answer.Files, f)
	}
	return answer, nil
}

// maxShown bounds what is shown of one file: nobody reads more on a terminal.
const maxShown = 64 << 10

// show prints the files that are not trusted as they are. A repository wrote
// them: they may not steer the terminal on which they are judged.
func (a *app) show(answer *trustAnswer, files []settings.Brought) {
	for _, f := range answer.Files {
		if f.State == settings.StateTrusted {
			continue
		}
		i := slices.IndexFunc(files, func(b settings.Brought) bool { return b.Path == f.Path })
		words := stateWords[f.State]
		if i >= 0 && files[i].Executable {
			words += ", executable"
		}
		a.say("%s (%s)", filepath.Join(answer.Project, settings.ProjectDir, f.Path), words)
		if i < 0 {
			continue
		}
		content := files[i].Content
		for line := range strings.Lines(spec.PrintableText(string(content[:min(len(content), maxShown)]))) {
			fmt.Fprintln(a.err, "  | "+strings.TrimSuffix(line, "\n"))
		}
		if strings.HasSuffix(f.Path, settings.BroughtEnv) {
			for _, name := range variablesOf(content) {
				if steering(name) {
					a.say("NOTE: %s steers programs, and not the agent alone", name)
				}
			}
		}
		if len(content) > maxShown {
			a.say("NOTE: %d bytes more of it are not shown: read the file", len(content)-maxShown)
		}
	}
}
