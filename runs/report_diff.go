package runs

import (
	"slices"
	"strings"

	"github.com/agent-container/agent-container/spec"
)

// changesView is what a run did to the repository.
type changesView struct {
	Heading        heading
	Files          []*fileView
	Added, Removed string
	Count          string   // "3 files"
	Paths          []string // when there is no diff, or not all of it
	More           int      // paths that are left out
	Cut            bool
	Hint           string
	Absent         string
	Open           bool
}

// fileView is the diff of one file.
type fileView struct {
	Path           string
	Added, Removed string
	Parts          []part
	Open           bool

	added, removed, lines int
}

// part is a stretch of lines of one kind: add, del, hunk, meta or same.
type part struct{ Kind, Text string }

// Diffs up to openLines are shown open when a report is about one run.
const (
	openLines = 400
	maxLines  = 5000
)

func newChanges(v *runView, diff []byte, b *budget) *changesView {
	c := &changesView{Heading: heading{v.Sub, "Changes"}, Open: !v.Sub, Hint: "agent-container runs show " + v.ID + " --diff"}
	repo := v.record.Repository
	if repo != nil {
		c.Count = count(len(repo.Paths), "file")
	}
	if len(diff) == 0 && (repo == nil || len(repo.Paths) == 0) {
		c.Absent = noChanges(v.record)
		return c
	}
	n := b.take(min(len(diff), maxShown))
	c.Cut = n < len(diff)
	total := c.read(spec.PrintableText(string(diff[:n])))
	if len(c.Files) > 0 && (repo == nil || len(c.Files) > len(repo.Paths)) {
		c.Count = count(len(c.Files), "file")
	}
	added, removed := 0, 0
	for _, f := range c.Files {
		f.Added, f.Removed, f.Open = some(f.added), some(f.removed), total <= openLines
		added, removed = added+f.added, removed+f.removed
	}
	c.Added, c.Removed = some(added), some(removed)
	if repo != nil && (c.Cut || len(diff) == 0) {
		c.Paths, c.More = lines(repo.Paths, maxList, maxLine)
	}
	return c
}

// some is a number, or nothing when there is none.
func some(n int) string {
	if n == 0 {
		return ""
	}
	return grouped(int64(n))
}

// noChanges says why there are none.
func noChanges(r *spec.Record) string {
	switch {
	case r.EndedAt == nil:
		return "They are looked for when the run is over."
	case r.Repository == nil:
		return "The repository was not looked at."
	case r.Repository.State == "none":
		return "There was no repository in the workspace."
	case r.Repository.State == "unreadable":
		return "The repository could not be read."
	}
	return "It changed nothing in the repository."
}

// read takes a diff of git apart and returns how many lines it kept. Only what
// stands before a file's first hunk is about the file: a changed line may hold
// anything.
func (c *changesView) read(diff string) (total int) {
	var f *fileView
	inHunk := false
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "diff --git "); ok || f == nil {
			if len(c.Files) == maxList {
				c.Cut = true
				return total
			}
			f, inHunk = &fileView{Path: nameOf(name, line)}, false
			c.Files = append(c.Files, f)
		}
		if total == maxLines {
			c.Cut = true
			return total
		}
		total++
		inHunk = inHunk || strings.HasPrefix(line, "@@ ")
		f.add(kindOf(line, inHunk), line)
	}
	return total
}

// kindOf is the kind of a line of a diff.
func kindOf(line string, inHunk bool) string {
	switch {
	case !inHunk:
		return "meta"
	case strings.HasPrefix(line, "+"):
		return "add"
	case strings.HasPrefix(line, "-"):
		return "del"
	case strings.HasPrefix(line, "@@ "):
		return "hunk"
	case strings.HasPrefix(line, " "), line == "":
		return "same"
	}
	return "meta"
}

// add puts a line to the file's last part, or to a new one of its kind.
func (f *fileView) add(kind, line string) {
	switch kind {
	case "add":
		f.added++
	case "del":
		f.removed++
	case "meta":
		if f.rename(line); nameOnly(line) {
			return
		}
	}
	if n := len(f.Parts); n > 0 && f.Parts[n-1].Kind == kind && f.lines < 200 {
		f.Parts[n-1].Text += line + "\n"
		f.lines++
		return
	}
	f.Parts = append(f.Parts, part{kind, line + "\n"})
	f.lines = 1
}

// nameOnly reports whether a line before the first hunk says no more than the
// file's name does.
func nameOnly(line string) bool {
	return slices.ContainsFunc([]string{"diff --git ", "index ", "--- a/", "--- \"a/", "--- /dev/null", "+++ b/", "+++ \"b/", "+++ /dev/null"}, func(prefix string) bool {
		return strings.HasPrefix(line, prefix)
	})
}

// rename takes a file's name from where it is said without the other one.
func (f *fileView) rename(line string) {
	for _, prefix := range []string{"--- a/", "--- \"a/", "+++ b/", "+++ \"b/", "rename to "} {
		if name, ok := strings.CutPrefix(line, prefix); ok {
			f.Path = spec.Printable(strings.TrimSuffix(strings.TrimSuffix(name, "\t"), `"`), maxLine)
		}
	}
}

// nameOf is a first name for a file, from "a/NAME b/NAME".
func nameOf(names, line string) string {
	if names == "" {
		return "(no file)"
	}
	half := len(names) / 2
	if a, b := names[:half], strings.TrimPrefix(names[half:], " "); strings.TrimPrefix(a, "a/") == strings.TrimPrefix(b, "b/") {
		names = strings.TrimPrefix(a, "a/")
	}
	return spec.Printable(names, maxLine)
}
