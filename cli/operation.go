package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/settings"
)

// operation is the up or redeploy that was begun last on a deployment. Its file
// is there from the lock until the command knows how it ended: one that is found
// says that the command was killed or interrupted on the way. The same command
// once more then goes on where it was, and does not run a task that has been
// started, and is billed, a second time.
type operation struct {
	Digest string `json:"digest"` // of the command, the spec and the task
	Old    string `json:"old"`    // id of the container that was to be replaced, or empty
}

// operationFile is its name in the deployment's state directory.
const operationFile = "operation.json"

func newOperation(verb string, d *deployment, old *engine.Container) operation {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(verb), []byte(d.spec.Label()), d.fill.task} {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	op := operation{Digest: hex.EncodeToString(h.Sum(nil))}
	if old != nil {
		op.Old = old.ID
	}
	return op
}

func (a *app) operationPath(name string) string {
	return filepath.Join(a.dirs.Deployment(engine.LocalHost, name), operationFile)
}

// beginOperation notes op. The caller holds the deployment's lock.
func (a *app) beginOperation(name string, op operation) error {
	b, err := json.Marshal(op)
	if err != nil {
		return err
	}
	return renameio.WriteFile(a.operationPath(name), b, 0o600, renameio.WithTempDir(a.dirs.Deployment(engine.LocalHost, name)))
}

// endOperation forgets what was begun. It is a cache: what cannot be removed is
// overwritten by the next operation.
func (a *app) endOperation(name string) { _ = os.Remove(a.operationPath(name)) }

// hasOperation reports whether there is anything that was begun.
func (a *app) hasOperation(name string) bool {
	_, err := os.Stat(a.operationPath(name))
	return err == nil
}

// wasBegun reports whether verb on d is what was begun last, and has started
// found since.
func (a *app) wasBegun(verb string, d *deployment, found *engine.Container) bool {
	b, err := settings.ReadRegular(a.operationPath(d.spec.Name), 4096)
	var op operation
	if err != nil || json.Unmarshal(b, &op) != nil {
		return false // none, or unreadable, which says nothing
	}
	return op.Digest == newOperation(verb, d, nil).Digest && op.Old != found.ID && found.State.Status != "created"
}
