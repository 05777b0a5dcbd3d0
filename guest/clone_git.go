package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
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
	if err := c.run(append(args, "--", c.repo.URL, dir)...); err != nil || !commit {
		return err
	}
	if _, err := c.git("-C", dir, "cat-file", "-e", c.repo.Ref+"^{commit}"); err != nil {
		fetch := []string{"-C", dir, "fetch", "--progress"}
		if c.job.Depth > 0 {
			fetch = append(fetch, "--depth", strconv.Itoa(c.job.Depth))
		}
		if err := c.run(append(fetch, "origin", c.repo.Ref)...); err != nil {
			return err
		}
	}
	return c.run("-C", dir, "checkout", "--progress", "--detach", c.repo.Ref, "--")
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

// run runs one git that may take long. What it says goes to the container's log,
// its progress to the status; a phase that is over ends it with its children.
func (c *cloning) run(args ...string) error {
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
	watched := make(chan struct{})
	go c.watchLFS(watched)
	err = cmd.Run()
	close(watched)
	said.flush()
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay): // git has ended well; a connection of ssh's goes on
		return c.explain(said.lines, err)
	}
	return nil
}

// lfsProgress is where git-lfs notes how far it is: to git it says nothing while
// one large object comes.
func (c *cloning) lfsProgress() string { return c.fill("lfs-progress") }

// watchLFS tells what git-lfs notes, until done.
func (c *cloning) watchLFS(done <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var size int64
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if info, err := os.Stat(c.lfsProgress()); err == nil && info.Size() != size {
				size = info.Size()
				c.progressed("LFS objects")
			}
		}
	}
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
		"GIT_SSH_COMMAND="+sshCommand, "GIT_SSH_VARIANT=ssh", "GIT_LFS_PROGRESS="+c.lfsProgress()), err
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

// reasons are what git and ssh say, with the host that said it.
var (
	askedLogin = regexp.MustCompile(`could not read (?:Username|Password) for '(?:https?://)?(?:[^'@]*@)?([^'/]+)`)
	wrongLogin = regexp.MustCompile(`(?:Authentication failed for|unable to access) 'https?://(?:[^'@/]*@)?([^'/]+)[^']*'(?:$|: The requested URL returned error: 40[13])`)
	unknownKey = regexp.MustCompile(`(?:^|@)([^@: ]+): Permission denied \(`)
	changedKey = regexp.MustCompile(`[Hh]ost key for (\S+) has changed`)
	otherKey   = regexp.MustCompile(`Host key verification failed`)
	missingRef = regexp.MustCompile(`Remote branch .* not found|couldn't find remote ref|not our ref`)
	lfsFailed  = regexp.MustCompile(`Error downloading object|batch response: `)
	sshSays    = regexp.MustCompile(`^(?:ssh: |Connection |Timeout, server |kex_exchange_identification: |ERROR: )`)
	gitSays    = regexp.MustCompile(`^(?:fatal|error): `)
	noneSays   = regexp.MustCompile(`Could not read from remote repository`)
)

// find returns what pattern finds first in lines: its group, or the whole line.
func find(lines []string, pattern *regexp.Regexp) string {
	for _, l := range lines {
		if m := pattern.FindStringSubmatch(l); m != nil {
			if len(m) > 1 {
				return m[1]
			}
			return l
		}
	}
	return ""
}

// explain turns git's words into the reason of the failure. Each is about the
// host that it names, which may be a submodule's, an LFS server's or one behind a
// redirect.
func (c *cloning) explain(lines []string, err error) error {
	own, _, _ := strings.Cut(c.repo.Host, ":") // ssh names the host without its port
	if host := find(lines, unknownKey); c.repo.SSH && strings.EqualFold(host, own) {
		return errPending
	} else if host != "" && (c.repo.SSH || find(lines, noneSays) != "") {
		return fmt.Errorf("%s does not know this container's SSH key; register it there: agent-container ssh-key show %s", host, c.name)
	}
	if host := find(lines, changedKey); host != "" {
		return fmt.Errorf("%s shows another host key than before; if that is right, forget the old one: agent-container exec %s ssh-keygen -R '%s'", host, c.name, host)
	}
	if host := find(lines, askedLogin); host != "" {
		return c.wantsLogin(strings.ToLower(host))
	}
	last := c.lastWord(lines, err)
	if host := strings.ToLower(find(lines, wrongLogin)); host != "" && c.job.Credentials[host] != "" {
		return fmt.Errorf("%s refused the token in %s (%s)", host, c.job.Credentials[host], last)
	}
	if find(lines, missingRef) != "" && c.repo.Ref != "" {
		return fmt.Errorf("%s has no branch, tag or commit %s", c.repo.URL, c.repo.Ref)
	}
	return errors.New(last)
}

func (c *cloning) wantsLogin(host string) error {
	variable := c.job.Credentials[host]
	env, _ := c.userEnvironment() // an unreadable one was the end of the set-up
	switch {
	case variable == "":
		return fmt.Errorf("%s asks for a login; name the variable that holds a token for it in settings.yaml, git.credentials, and pass it with --env", host)
	case lookup(env, variable) == "":
		return fmt.Errorf("%s asks for a login; pass a token with --env %s", host, variable)
	}
	return fmt.Errorf("%s asks for a login, and what is in %s is no token", host, variable)
}

// lastWord is the line that says what happened: of LFS, of ssh, or the first of
// git's own; those after it say what followed.
func (c *cloning) lastWord(lines []string, err error) string {
	if l := find(lines, lfsFailed); l != "" {
		return "LFS: " + l
	}
	for _, pattern := range []*regexp.Regexp{sshSays, otherKey, gitSays} {
		if l := find(lines, pattern); l != "" {
			return l
		}
	}
	return err.Error()
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
