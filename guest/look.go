package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// tmuxTime bounds one question to tmux: a server that the agent has stopped
// never answers.
const tmuxTime = 3 * time.Second

// look prints how the session and the repository are, as one JSON document. It
// changes nothing, and takes no longer than git and tmux are given.
func (g *guest) look(args []string) error {
	if len(args) != 0 {
		return errors.New("usage: look")
	}
	var l spec.Look
	var both sync.WaitGroup
	both.Go(func() { l.Session = g.lookAtSession() })
	both.Go(func() { l.Repository = g.lookAtRepository() })
	if s, err := g.readStatus(); err == nil {
		l.Status = s.String()
	}
	both.Wait()
	return json.NewEncoder(os.Stdout).Encode(l)
}

// lookAtSession asks tmux. Only a session that has begun can have ended.
func (g *guest) lookAtSession() spec.Session {
	lines, err := g.tmux("list-windows", "-t", "=main", "-F", "#{session_attached}\t#{window_index}\t#{window_active}\t#{window_name}\t#{pane_current_command}")
	var exit *exec.ExitError
	switch status, unknown := g.readStatus(); {
	case err == nil:
		return g.session(lines)
	case !errors.As(err, &exit) || exit.ExitCode() != 1:
		return spec.Session{State: spec.SessionUnreadable}
	case g.mode == spec.Interactive && unknown == nil && status.State == spec.Ready:
		return spec.Session{State: spec.SessionEnded}
	}
	return spec.Session{State: spec.SessionNone}
}

// session reads tmux's list of windows, one a line. A name may hold anything,
// also a line's end: what is no window is passed over.
func (g *guest) session(lines string) spec.Session {
	s := spec.Session{State: spec.SessionAlive}
	own := filepath.Base(override(spec.EnvGuest, spec.ContainerGuest))
	for line := range strings.Lines(lines) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 5)
		if len(f) < 5 || len(s.Windows) == spec.MaxWindows {
			continue
		}
		w := spec.Window{Name: f[3], Command: f[4], Active: f[2] == "1"}
		var err error
		if w.Index, err = strconv.Atoi(f[1]); err != nil {
			continue
		}
		if w.Command == own {
			w.Command = g.agent.Executable // which runs under it, in its window
		}
		s.Clients, _ = strconv.Atoi(f[0])
		s.Windows = append(s.Windows, w)
	}
	return s
}

// tmux asks the server that the session's programs and whoever attaches use.
func (g *guest) tmux(args ...string) (string, error) {
	env, err := g.environment()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), tmuxTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u"}, args...)...)
	cmd.Env, cmd.WaitDelay = env, time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		err = ctx.Err() // not the status that KILL gave it
	}
	return string(out), err
}

// lookAtRepository asks git. What cannot be counted in time is left out.
func (g *guest) lookAtRepository() spec.WorkTree {
	now := g.startRepository()
	t := spec.WorkTree{State: now.State, Branch: now.Branch, Head: now.StartCommit}
	if t.State != "ok" && t.State != "detached" {
		return t
	}
	t.Remote = g.remote()
	changed, err := g.git("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal")
	if err != nil {
		return t
	}
	n := strings.Count(changed, "\x00")
	t.Uncommitted = &n
	if err := g.countUnpushed(now); err == nil && now.Remote {
		t.Unpushed = &now.Unpushed
	}
	return t
}

// remote is where the repository is pushed to: origin, or the first there is.
func (g *guest) remote() string {
	out, err := g.git("remote")
	names := strings.Fields(out)
	if err != nil || len(names) == 0 {
		return ""
	}
	name := names[0]
	if slices.Contains(names, "origin") {
		name = "origin"
	}
	place, err := g.git("remote", "get-url", "--", name)
	if err != nil {
		return name
	}
	return withoutLogin(strings.TrimSpace(place))
}

// withoutLogin takes out of a repository's address what may log in there: the
// user of a web address may be a token. What cannot be read is not shown.
func withoutLogin(place string) string {
	if !strings.Contains(place, "://") {
		return place // a path, or USER@HOST:PATH, which has room for no password
	}
	u, err := url.Parse(place)
	if err != nil || u.Opaque != "" {
		return "(unreadable)"
	}
	user := u.User.Username()
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	if user != "" && !strings.HasPrefix(u.Scheme, "http") {
		u.User = url.User(user)
	}
	return u.String()
}
