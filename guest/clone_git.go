package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-container/agent-container/spec"
)

// cloning is one clone: git with the user's environment, watched.
type cloning struct {
	*guest
	repo spec.Repo
	job  spec.Job
}

// clone makes dir. A branch or a tag is asked for by name; a commit is not
// something that git clone knows.
func (c *cloning) clone(dir string) error {
	args := []string{"clone", "--progress"}
	if c.job.Depth > 0 {
		args = append(args, "--depth", strconv.Itoa(c.job.Depth))
	}
	commit := c.repo.CommitID()
	switch {
	case commit:
		args = append(args, "--no-checkout")
	case c.repo.Ref != "":
		args = append(args, "--branch", c.repo.Ref)
	}
	if err := c.git(append(args, "--", c.repo.URL, dir)...); err != nil || !commit {
		return err
	}
	if _, err := c.guest.git("-C", dir, "cat-file", "-e", c.repo.Ref+"^{commit}"); err != nil {
		fetch := []string{"-C", dir, "fetch", "--progress"}
		if c.job.Depth > 0 {
			fetch = append(fetch, "--depth", strconv.Itoa(c.job.Depth))
		}
		if err := c.git(append(fetch, "origin", c.repo.Ref)...); err != nil {
			return err
		}
	}
	return c.git("-C", dir, "checkout", "--progress", "--detach", c.repo.Ref, "--")
}

// cloneConfig holds for the clone alone. Whoever wrote the repository is not
// trusted before anybody has looked at it: none of its hooks is run, and what is
// malformed in a way that git was once attacked with is refused. The three
// exceptions are harmless and in the history of well-known repositories.
var cloneConfig = []string{
	"core.hooksPath=/dev/null", "advice.detachedHead=false",
	"fetch.fsckObjects=true", "fetch.fsck.zeroPaddedFilemode=ignore", "fetch.fsck.badTimezone=ignore", "fetch.fsck.missingSpaceBeforeDate=ignore",
}

// sshCommand asks nobody, gives up on a host that does not answer, and takes the
// key of a host that it has never met, which is kept on the ssh volume: another
// key of that host is refused ever after.
const sshCommand = "ssh -o BatchMode=yes -o StrictHostKeyChecking=accept-new -o ConnectTimeout=20 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"

// git runs one git that may take long. What it says goes to the container's log,
// its progress to the status; a phase that is over ends it with its children.
func (c *cloning) git(args ...string) error {
	var config []string
	for _, kv := range cloneConfig {
		config = append(config, "-c", kv)
	}
	env, err := c.cloneEnvironment()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(c.ctx, "git", append(config, args...)...)
	cmd.Dir, cmd.Env = c.workspace, env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // a child of git's may hold its output open
	said := &gitOutput{secrets: c.secrets(), progressed: c.progressed}
	cmd.Stdout, cmd.Stderr = said, said
	err = cmd.Run()
	said.flush()
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case err != nil:
		return c.explain(said.lines, err)
	}
	return nil
}

// cloneEnvironment is the environment of a job without what would make this git
// another one, and told to ask nobody.
func (c *cloning) cloneEnvironment() ([]string, error) {
	env, err := c.environment()
	env = slices.DeleteFunc(env, func(e string) bool {
		return strings.HasPrefix(e, "GIT_") && !strings.HasPrefix(e, "GIT_SSL_") || strings.HasPrefix(e, "SSH_ASKPASS")
	})
	protocols := "https:ssh" // a submodule's and an LFS server's too: never a path, never a program
	if strings.HasPrefix(c.repo.URL, "http://") {
		protocols = "http:" + protocols
	}
	return append(env, "HOME="+c.home, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL="+protocols,
		"GIT_SSH_COMMAND="+sshCommand, "GIT_SSH_VARIANT=ssh", "GIT_LFS_FORCE_PROGRESS=1"), err
}

// gitOutput splits what git says into progress, which is told on, and lines,
// which are logged and kept for the reason of a failure.
type gitOutput struct {
	secrets    [][]byte
	progressed func(string)
	rest       []byte
	lines      []string
}

// maxGitLines is how many of the last lines are kept; a server may send remarks without end.
const maxGitLines = 50

func (o *gitOutput) Write(p []byte) (int, error) {
	o.rest = append(o.rest, p...)
	for {
		i := bytes.IndexAny(o.rest, "\r\n")
		if i < 0 {
			if len(o.rest) > 4096 {
				o.rest = o.rest[:0] // no line of git's
			}
			return len(p), nil
		}
		o.line(string(mask(o.rest[:i], o.secrets)))
		o.rest = o.rest[i+1:]
	}
}

func (o *gitOutput) flush() {
	o.line(string(mask(o.rest, o.secrets)))
	o.rest = nil
}

func (o *gitOutput) line(text string) {
	text = strings.TrimSpace(spec.Printable(text, 300))
	switch {
	case text == "":
		return
	case strings.Contains(text, "% (") || strings.Contains(text, "Enumerating objects: "):
		o.progressed(strings.TrimPrefix(text, "remote: "))
		return
	}
	o.progressed("")
	say("git: %s", text)
	o.lines = append(o.lines, text)
	o.lines = o.lines[max(0, len(o.lines)-maxGitLines):]
}

// explain turns git's last words into the reason of the failure.
func (c *cloning) explain(lines []string, err error) error {
	all := strings.Join(lines, "\n")
	has := func(texts ...string) bool {
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(all, t) })
	}
	last := err.Error()
	for _, l := range lines {
		if strings.HasPrefix(l, "fatal: ") || strings.HasPrefix(l, "error: ") || strings.HasPrefix(l, "ERROR: ") {
			last = l
			if !strings.Contains(l, "Could not read from remote repository") {
				break // the first says what happened, the others what followed
			}
		}
	}
	for _, l := range lines { // LFS: what failed, before what git makes of it
		if strings.Contains(l, "Error downloading object") || strings.Contains(l, "batch response: ") {
			last = "LFS: " + l
		}
	}
	variable := c.job.Credentials[c.repo.TokenHost()]
	switch {
	case c.repo.SSH && has("Permission denied ("):
		return errPending
	case has("REMOTE HOST IDENTIFICATION HAS CHANGED"), has("Host key verification failed"):
		return fmt.Errorf("%s shows another host key than before; if that is right, forget the old one: agent-container exec %s ssh-keygen -R %s",
			c.repo.Host, c.name, knownHost(c.repo.Host))
	case has("could not read Username", "could not read Password") && variable == "":
		return fmt.Errorf("%s asks for a login; name the variable that holds a token for it in settings.yaml, git.credentials, and pass it with --env", c.repo.Host)
	case has("could not read Username", "could not read Password"):
		return fmt.Errorf("%s asks for a login; pass a token with --env %s", c.repo.Host, variable)
	case has("Authentication failed", "The requested URL returned error: 401", "The requested URL returned error: 403") && variable != "":
		return fmt.Errorf("%s refused the token in %s (%s)", c.repo.Host, variable, last)
	case has("Remote branch ", "couldn't find remote ref", "not our ref"):
		return fmt.Errorf("%s has no branch, tag or commit %s", c.repo.URL, c.repo.Ref)
	}
	return errors.New(last)
}

// knownHost is host as ssh writes it in known_hosts.
func knownHost(host string) string {
	name, port, ok := strings.Cut(host, ":")
	if !ok || port == "22" {
		return name
	}
	return "[" + name + "]:" + port
}

// credential is git's credential helper for the hosts that a token is named for.
// git asks it only where its configuration names it; it looks again at whom the
// token is for. It keeps nothing and is asked every time, so the token is
// nowhere but in the filled environment.
func (g *guest) credential(args []string) error {
	if len(args) != 1 || args[0] != "get" {
		return nil // store and erase
	}
	question, err := io.ReadAll(io.LimitReader(os.Stdin, 64<<10))
	if err != nil {
		return err
	}
	asked := strings.Split(string(question), "\n")
	job, err := g.job()
	if err != nil {
		return err
	}
	env, err := g.userEnvironment()
	if err != nil {
		return err
	}
	token := lookup(env, job.Credentials[strings.ToLower(lookup(asked, "host"))])
	if lookup(asked, "protocol") != "https" || token == "" || strings.ContainsAny(token, "\r\n") {
		return nil
	}
	// The name says to GitHub that it is a token; other servers take any.
	fmt.Printf("username=x-access-token\npassword=%s\n", token)
	return nil
}
