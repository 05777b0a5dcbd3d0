package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/crypto/ssh"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/spec"
)

func accessCommand() command {
	return command{
		name: "access", group: groupKeys, usage: "see and change who may attach over ssh",
		sub: []command{
			{name: "list", aliases: []string{"ls"}, args: "NAME", usage: "list the keys that a deployment lets in", min: 1, max: 1, run: (*app).accessList},
			{name: "add", args: "NAME FILE", usage: "let in the public keys of a file, from now on and after restarts", min: 2, max: 2, run: (*app).accessAdd},
			{name: "remove", args: "NAME FINGERPRINT", usage: "let a key in no longer that was added", min: 2, max: 2, run: (*app).accessRemove},
		},
	}
}

// admitted is a key that a deployment lets in.
type admitted struct {
	Fingerprint string `json:"fingerprint"`
	Type        string `json:"type"`
	Comment     string `json:"comment,omitempty"`
	Managed     bool   `json:"managed"` // from your collection or --authorized-key; rewritten at every start

	body string // the key itself, as in the file
}

type accessAnswer struct {
	Name string     `json:"name"`
	Keys []admitted `json:"keys"`
}

func (t accessAnswer) text(w io.Writer) {
	var rows [][]string
	for _, k := range t.Keys {
		origin := "added"
		if k.Managed {
			origin = "collection"
		}
		rows = append(rows, []string{k.Fingerprint, k.Type, origin, spec.Printable(k.Comment, 60)})
	}
	table(w, []string{"FINGERPRINT", "TYPE", "FROM", "COMMENT"}, rows)
}

func (a *app) accessList(ctx context.Context, c *ucli.Context) (any, error) {
	e, found, s, err := a.named(ctx, c)
	if err != nil {
		return nil, err
	}
	keys, err := a.admittedKeys(ctx, e, found)
	return accessAnswer{s.Name, keys}, err
}

// admittedKeys reads a container's authorized_keys, running or not.
func (a *app) admittedKeys(ctx context.Context, e *engine.Engine, c *engine.Container) ([]admitted, error) {
	keys := []admitted{}
	_, err := e.CopyOut(ctx, c.ID, spec.ContainerHome+"/.ssh/authorized_keys", 4*maxAccessFile, func(t *tar.Reader) error {
		if _, err := t.Next(); err != nil {
			return err
		}
		content, err := io.ReadAll(io.LimitReader(t, 4*maxAccessFile))
		keys = append(keys, parseAdmitted(string(content))...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("authorized_keys of %s: %w", c.Deployment(), err)
	}
	return keys, nil
}

func parseAdmitted(content string) []admitted {
	var keys []admitted
	managed := false
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, spec.AccessBegin):
			managed = true
		case line == spec.AccessEnd:
			managed = false
		}
		key, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			continue // a comment, or what sshd passes over too
		}
		body := strings.Fields(string(ssh.MarshalAuthorizedKey(key)))[1]
		keys = append(keys, admitted{ssh.FingerprintSHA256(key), key.Type(), comment, managed, body})
	}
	return keys
}

func (a *app) accessAdd(ctx context.Context, c *ucli.Context) (any, error) {
	// What cannot be read is refused before the engine is asked.
	keys, err := readKeys(c.Args().Get(1))
	if absent(err) {
		return nil, refuse("name a file of public keys", "%w", err)
	}
	if err == nil && len(keys) == 0 {
		err = refuse("name a file of public keys", "%s holds no key", c.Args().Get(1))
	}
	if err != nil {
		return nil, err
	}
	return a.changeAccess(ctx, c, "add", func([]admitted) ([]byte, error) { return keys, nil })
}

func (a *app) accessRemove(ctx context.Context, c *ucli.Context) (any, error) {
	wanted := c.Args().Get(1)
	return a.changeAccess(ctx, c, "remove", func(keys []admitted) ([]byte, error) {
		for _, k := range keys {
			if k.Fingerprint == wanted && k.Managed {
				hint := "take it out of " + a.dirs.AuthorizedKeys() + " or the file of --authorized-key"
				if _, err := os.Stat(a.dirs.AuthorizedKeys()); absent(err) {
					hint = "it is our own key; make a collection of yours in its place: " + a.dirs.AuthorizedKeys()
				}
				return nil, refuse(hint+", then: agent-container redeploy "+c.Args().First(),
					"%s comes from your collection and would be back at the next start", wanted)
			}
			if k.Fingerprint == wanted {
				return []byte(k.body + "\n"), nil
			}
		}
		return nil, fail(exitNotFound, "see: agent-container access list "+c.Args().First(), "no key %s", spec.Printable(wanted, 100))
	})
}

// changeAccess has the guest of a running deployment change the lines outside
// our region.
func (a *app) changeAccess(ctx context.Context, c *ucli.Context, verb string, input func([]admitted) ([]byte, error)) (any, error) {
	e, found, s, err := a.beginChange(ctx, c)
	if err != nil {
		return nil, err
	}
	if !s.HasSSH() || found.State.Status != "running" {
		next := "run: agent-container start " + s.Name
		if !s.HasSSH() {
			next = "run: agent-container redeploy " + s.Name + " --ssh"
		}
		return nil, fail(exitNotFound, next, "no sshd runs in %s: it is %s, %s", s.Name, s.Mode, found.State.Status)
	}
	release, err := a.lock(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	keys, err := a.admittedKeys(ctx, e, found)
	if err != nil {
		return nil, err
	}
	stdin, err := input(keys)
	if err != nil {
		return nil, err
	}
	streams := engine.Streams{In: bytes.NewReader(stdin), Out: a.err, Err: a.err}
	if err := e.Exec(ctx, compose.ProjectName(s.Name), []string{spec.ContainerGuest, "access", verb}, streams); err != nil {
		return nil, fail(exitFailed, "", "change who may attach to %s: %w", s.Name, err)
	}
	keys, err = a.admittedKeys(ctx, e, found)
	return accessAnswer{s.Name, keys}, err
}
