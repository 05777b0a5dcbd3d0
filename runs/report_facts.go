package runs

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// fact is a field of the record.
type fact struct {
	Name   string
	Values []string
	Code   bool // set like code
	At     stamp
}

// factList are the fields of a record that it has.
type factList []fact

func (l *factList) text(name string, code bool, values ...string) {
	values = slices.DeleteFunc(slices.Clone(values), func(s string) bool { return strings.TrimSpace(s) == "" })
	shown, more := lines(values, maxList, maxLine)
	if more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	if len(shown) > 0 {
		*l = append(*l, fact{Name: name, Values: shown, Code: code})
	}
}

func (l *factList) at(name string, t *time.Time) {
	if t != nil {
		*l = append(*l, fact{Name: name, At: stampOf(*t)})
	}
}

// facts are the fields of a record that a person may look for.
func facts(r *spec.Record) []fact {
	var l factList
	l.text("Run", true, r.ID)
	l.at("Started", &r.StartedAt)
	l.at("Agent started", r.AgentAt)
	l.at("Ended", r.EndedAt)
	l.text("Agent", false, r.Agent+" "+r.AgentVersion)
	l.text("Kind", false, string(r.Kind))
	l.text("Image", true, r.Image)
	l.text("Host", false, r.Host)
	if r.TaskSHA256 != "" {
		l.text("Task", true, size(r.TaskBytes), "sha256:"+r.TaskSHA256)
	}
	if repo := r.Repository; repo != nil {
		l.text("Repository", false, repo.State)
		l.text("Branch", true, repo.Branch)
		l.text("Start commit", true, repo.StartCommit)
		l.text("End commit", true, repo.EndCommit)
		l.text("Commits", true, repo.Commits...)
	}
	if e := r.Engine; e != nil {
		said := fmt.Sprintf("%s, exit code %d", e.Status, e.ExitCode)
		if e.OOMKilled {
			said += ", a process was killed for memory"
		}
		l.text("The engine says", false, said, e.Error)
		l.text("Container", false, e.StartedAt+" – "+e.FinishedAt)
	}
	l.at("Kept since", r.KeptAt)
	return l
}
