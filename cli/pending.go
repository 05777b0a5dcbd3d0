package cli

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/crypto/ssh"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// pendingFailure says that a deployment waits for its key, and how it goes on.
// Whoever reads only the exit code takes it down and tries again, and loses the
// key: so that is said, too.
func (a *app) pendingFailure(ctx context.Context, e *engine.Engine, s spec.Spec, answer *deploymentAnswer) error {
	key, err := a.containerKey(ctx, e, s.Name)
	if err == nil && key == "" {
		err = errors.New("it has none")
	}
	if err != nil {
		return fmt.Errorf("the SSH key of %s: %w", s.Name, err)
	}
	host := s.Repo
	if r, _, err := spec.ParseRepo(s.Repo); err == nil {
		host = r.Host
	}
	a.say("register this SSH key at %s, with the right to read (and to push, if it shall):", host)
	a.say("%s", key)
	a.say("do not take %s down to try again: its key would be lost, and with it the registration", s.Name)
	answer.SSHKey, answer.State, answer.Detail = key, string(spec.Pending), spec.PhaseSSHKey
	f := fail(exitPending, "when the key is registered: agent-container redeploy "+s.Name, "%s waits: %s does not know its SSH key yet, and no agent was started", s.Name, host)
	f.data, f.result = answer, true
	return f
}

// waitsForKey returns the failure that says so when a job that clones over SSH
// waits for its key, and nil when it can be followed: once the clone is over, and
// at once for any other job. A signal is left to whoever follows.
func (a *app) waitsForKey(ctx context.Context, e *engine.Engine, s spec.Spec) error {
	if !s.ClonesBySSH() {
		return nil
	}
	status, err := a.await(ctx, e, s)
	switch {
	case context.Cause(ctx) != nil:
		return nil
	case err != nil:
		return afterStart(err)
	case status.State != spec.Pending:
		return nil
	}
	_, err = a.awaitAndReport(ctx, e, s, true)
	return err
}

// keyFile is where the public half of a container's own key is kept, in its
// state directory: it can be shown while the engine is away.
const keyFile = "ssh_key.pub"

// containerKey reads the public half of a container's own key, running or not,
// and keeps it; "" when it has none.
func (a *app) containerKey(ctx context.Context, e *engine.Engine, name string) (string, error) {
	var key string
	_, err := e.CopyOut(ctx, compose.ProjectName(name), spec.ContainerHome+"/.ssh/"+spec.SSHKeyFile+".pub", 64<<10, func(t *tar.Reader) error {
		if _, err := t.Next(); err != nil {
			return err
		}
		content, err := io.ReadAll(io.LimitReader(t, 16<<10))
		if err != nil {
			return err
		}
		key, err = publicKey(name, content)
		return err
	})
	if err != nil || key == "" {
		return "", err
	}
	return key, a.keepKey(name, key)
}

// publicKey reads a line that a container wrote, and returns it with the comment
// that is ours.
func publicKey(name string, content []byte) (string, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey(content)
	if err != nil {
		return "", fmt.Errorf("the container holds no public key that can be read: %w", err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " agent-container " + name, nil
}

func (a *app) keepKey(name, key string) error {
	dir := a.dirs.Deployment(engine.LocalHost, name)
	if err := settings.MakePrivate(dir); err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, keyFile), []byte(key+"\n"), 0o600)
}

// keptKey is the public half that was seen last, "" when none was.
func (a *app) keptKey(name string) (string, error) {
	path := filepath.Join(a.dirs.Deployment(engine.LocalHost, name), keyFile)
	content, err := settings.ReadRegular(path, 16<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	key, err := publicKey(name, content)
	if err != nil {
		return "", fail(exitFailed, "remove it; it is a cache", "%s holds no public key", path)
	}
	return key, nil
}
