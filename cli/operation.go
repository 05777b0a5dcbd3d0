package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// operation is the up or redeploy that was begun last on a deployment. Its note
// is there from the lock until the command knows how it ended: one that is found
// says that the command was killed or interrupted on the way. The same command
// once more then goes on where it was, and does not run a task that has been
// started, and is billed, a second time.
type operation struct {
	Digest string `json:"digest"` // of the command and of all that it deploys
	Old    string `json:"old"`    // id of the container that was to be replaced, or empty
}

// Names of its files in the deployment's state directory. The lock is held as
// long as the command lives, also while it follows a run.
const (
	operationFile = "operation.json"
	operationLock = "operation.lock"
)

// resumeWithin is how long after the end of a job the same command counts as a
// second try, and not as the order to run it anew: a nightly job is ordered every
// night.
const resumeWithin = time.Hour

func newOperation(verb string, d *deployment, old *engine.Container) (operation, error) {
	h := sha256.New()
	services, err := d.services.JSON()
	task := d.fill.task
	if d.fill.carried {
		task = nil // the same command finds it no more once an agent has it
	}
	parts := [][]byte{[]byte(verb), []byte(d.spec.Label()), task, d.fill.env.encode(), d.fill.ca, services}
	for _, c := range d.fill.config {
		parts = append(parts, []byte(c.path), c.content)
	}
	for _, part := range parts {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	op := operation{Digest: hex.EncodeToString(h.Sum(nil))}
	if old != nil {
		op.Old = old.ID
	}
	return op, err
}

func (a *app) operationPath(name, file string) string {
	return filepath.Join(a.dirs.Deployment(engine.LocalHost, name), file)
}

// beginOperation notes what is begun. The caller holds the deployment's lock.
func (a *app) beginOperation(verb string, d *deployment, old *engine.Container) error {
	name := d.spec.Name
	op, err := newOperation(verb, d, old)
	if err != nil {
		return err
	}
	b, err := json.Marshal(op)
	if err != nil {
		return err
	}
	// What another command still follows is about to be replaced.
	a.operating = lockFile(a.operationPath(name, operationLock))
	if _, err := a.operating.TryLock(); err != nil {
		return lockError(a.operating, err)
	}
	a.noted = b
	return renameio.WriteFile(a.operationPath(name, operationFile), b, 0o600)
}

// endOperation forgets what was begun, but for what another command has begun since
// this one did. It is a cache: what cannot be removed is overwritten by the next
// operation.
func (a *app) endOperation(name string) {
	path := a.operationPath(name, operationFile)
	if b, err := settings.ReadRegular(path, maxOperation); a.noted == nil || err == nil && bytes.Equal(b, a.noted) {
		_ = os.Remove(path)
	}
	if a.operating != nil {
		_ = a.operating.Unlock()
	}
}

// maxOperation bounds what is read of an operation's note.
const maxOperation = 4096

// isReplaced reports whether what was begun last is to replace c: the end of c is not
// its end.
func (a *app) isReplaced(c *engine.Container) bool {
	b, err := settings.ReadRegular(a.operationPath(c.Deployment(), operationFile), maxOperation)
	var op operation
	return err == nil && json.Unmarshal(b, &op) == nil && op.Old == c.ID
}

// hasOperation reports whether there is anything that was begun.
func (a *app) hasOperation(name string) bool {
	_, err := os.Stat(a.operationPath(name, operationFile))
	return err == nil
}

// wasBegun reports whether verb on d is what was begun last, and has started
// found since. It returns a *busyError while the command that did is at work.
func (a *app) wasBegun(verb string, d *deployment, found *engine.Container) (bool, error) {
	b, err := settings.ReadRegular(a.operationPath(d.spec.Name, operationFile), maxOperation)
	var op operation
	if err != nil || json.Unmarshal(b, &op) != nil {
		return false, nil // none, or unreadable, which says nothing
	}
	now, err := newOperation(verb, d, nil)
	if err != nil || op.Digest != now.Digest || op.Old == found.ID || found.State.Status == "created" {
		return false, err
	}
	if !found.State.Alive() && (d.spec.Mode != spec.Headless || time.Since(found.State.FinishedAt) > resumeWithin) {
		return false, nil
	}
	a.operating = lockFile(a.operationPath(d.spec.Name, operationLock))
	held, err := a.operating.TryLock()
	if err := lockError(a.operating, err); err != nil {
		return false, err
	}
	if !held {
		return false, &busyError{name: d.spec.Name, holder: "the same command, which follows what it has started"}
	}
	a.noted = b
	return true, nil
}
