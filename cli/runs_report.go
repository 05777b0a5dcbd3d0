package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/runs"
	"github.com/agent-container/agent-container/spec"
)

func runsReportCommand() command {
	return command{
		name: "report", args: "[NAME | ID...]", usage: "make an HTML page of runs", max: -1, run: (*app).runsReport,
		detail: fmt.Sprintf(`The page is one file without a script: time lines, outcomes, figures, tasks,
changes and output. It is about all runs, or those of the deployments and with
the ids that are named; the beginning of an id suffices. The newest %d are
shown one by one.`, runs.MaxBodies),
		flags: append([]ucli.Flag{
			&ucli.StringFlag{Name: "file", Usage: "write the page to `FILE` instead of standard output"},
		}, runsFilterFlags()...),
	}
}

// reportAnswer is a page about runs, or where it is.
type reportAnswer struct {
	File string   `json:"file,omitempty"`
	HTML string   `json:"html,omitempty"`
	Runs []string `json:"runs"`
}

func (r reportAnswer) text(w io.Writer) { io.WriteString(w, r.HTML) }

func (a *app) runsReport(ctx context.Context, c *ucli.Context) (any, error) {
	filter, err := newRunsFilter(c, time.Now())
	if err != nil {
		return nil, err
	}
	// Before anything is asked of the engine: a refusal costs nothing.
	file, err := a.reportFile(c)
	if err != nil {
		return nil, err
	}
	if err := a.places(); err != nil {
		return nil, err
	}
	list, err := a.namedRuns(ctx, c.Args().Slice())
	if err != nil {
		return nil, err
	}
	list = filter.apply(list)
	var page bytes.Buffer
	if err := runs.Report(&page, a.reported(list)); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if len(list) == 0 {
		a.say("the report is empty: no run is what was asked for")
	}
	answer := reportAnswer{Runs: idsOf(list)}
	if file == "" {
		answer.HTML = page.String()
		return answer, nil
	}
	answer.File = c.String("file")
	if err := renameio.WriteFile(file, page.Bytes(), 0o600, renameio.WithTempDir(filepath.Dir(file))); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	a.say("report of %d runs: %s", len(list), answer.File)
	return answer, nil
}

func idsOf(list []*spec.Record) []string {
	ids := []string{}
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}

// reportFile is where the page goes, "" for standard output. What is there and
// is no regular file is not replaced: it may be a device.
func (a *app) reportFile(c *ucli.Context) (string, error) {
	const hint = "name a file: agent-container runs report --file report.html"
	file := c.String("file")
	info, err := os.Stat(file)
	switch {
	case c.IsSet("file") && file == "":
		return "", refuse(hint, "--file: an empty name")
	case file == "" || file == "-" || err == nil && a.isOutput(info):
		if out, isFile := a.out.(*os.File); isFile && isTerminal(out) && !a.json {
			return "", refuse(hint, "a report is an HTML page, and standard output is a terminal")
		}
		return "", nil
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(file)); err != nil {
			return "", refuse("make that directory first", "--file: %w", err)
		}
		return file, nil
	case err != nil:
		return "", refuse(hint, "--file: %w", err)
	case !info.Mode().IsRegular():
		return "", refuse(hint, "--file: %s is there and is no regular file", file)
	}
	return filepath.EvalSymlinks(file) // a link stays, and what it names is replaced
}

// isOutput reports whether a file is our standard output, as /dev/stdout is.
func (a *app) isOutput(info fs.FileInfo) bool {
	out, isFile := a.out.(*os.File)
	if !isFile {
		return false
	}
	own, err := out.Stat()
	return err == nil && os.SameFile(own, info)
}

// namedRuns are the runs that words name, all without a word, newest first,
// after what may have come to an end since was brought in.
func (a *app) namedRuns(ctx context.Context, words []string) ([]*spec.Record, error) {
	if len(words) == 0 {
		l, err := a.listRecords(ctx, "")
		return a.readable(l), err
	}
	l, err := a.runs().List("")
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{} // deployments, and runs as keyOf has them
	for _, word := range words {
		key, err := a.bringNamed(ctx, l, word)
		if err != nil {
			return nil, err
		}
		wanted[key] = true
	}
	if l, err = a.runs().List(""); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(a.readable(l), func(r *spec.Record) bool { return !wanted[r.Deployment] && !wanted[keyOf(r)] }), nil
}

// keyOf is like no name of a deployment.
func keyOf(r *spec.Record) string { return r.Host + "/" + r.Deployment + "/" + r.ID }

// readable are the records of l, after a word on what is none.
func (a *app) readable(l runs.Listing) []*spec.Record {
	for _, u := range l.Unreadable {
		a.say("warning: %s", oneLine(u))
	}
	return l.Records
}

// bringNamed finds out what a word names, the one run whose id begins so or
// else a deployment, and brings in its records.
func (a *app) bringNamed(ctx context.Context, l runs.Listing, word string) (string, error) {
	r, err := l.Find(word)
	if err == nil {
		if r.EndedAt == nil {
			_, err = a.bringIfThere(ctx, r.Deployment)
		}
		return keyOf(r), err
	}
	isName := slices.ContainsFunc(l.Records, func(r *spec.Record) bool { return r.Deployment == word })
	var none *runs.NotFoundError
	switch {
	case !isName && errors.As(err, &none) && len(none.Matches) > 0:
		return "", err
	case spec.ValidateName(word) != nil:
		return "", fail(exitNotFound, "see: agent-container runs list", "no run and no deployment %q", spec.Printable(word, 100))
	}
	_, err = a.listRecords(ctx, word)
	return word, err
}

// reported reads what belongs to the runs that are shown one by one.
func (a *app) reported(list []*spec.Record) []runs.Reported {
	var all []runs.Reported
	for i, r := range list {
		one := runs.Reported{Record: r}
		if i < runs.MaxBodies {
			var errOut, errDiff error
			one.Output, errOut = a.runs().Attachment(r, spec.OutputSuffix)
			one.Diff, errDiff = a.runs().Attachment(r, spec.DiffSuffix)
			if err := errors.Join(errOut, errDiff); err != nil {
				one.Lost = oneLine(err.Error())
				a.say("warning: %s", one.Lost)
			}
		}
		all = append(all, one)
	}
	return all
}
