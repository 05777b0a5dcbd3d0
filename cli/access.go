package cli

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/crypto/ssh"

	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// maxAccessFile bounds a collection of public keys.
const maxAccessFile = 1 << 20

// accessKeys are the lines of authorized_keys for a deployment: the user's
// collection, or where there is none our own key, and the files that were typed.
// With check nothing is made, and our own key left out while there is none.
func (a *app) accessKeys(s spec.Spec, check bool) ([]byte, error) {
	all := bytes.NewBuffer([]byte{})
	collection, err := readKeys(a.dirs.AuthorizedKeys())
	switch {
	case absent(err) && check:
	case absent(err):
		// No collection was made: our own key, so that attach works at once.
		own, err := a.attachKey()
		if err != nil {
			return nil, err
		}
		all.Write(own)
	case err != nil:
		return nil, err
	default:
		all.Write(collection) // without a key in it, it lets nobody in
	}
	for _, file := range s.AccessFiles {
		keys, err := typedKeys(file)
		if err != nil {
			return nil, err
		}
		all.Write(keys)
	}
	return all.Bytes(), nil
}

// typedKeys reads a file that --authorized-key names.
func typedKeys(file string) ([]byte, error) {
	keys, err := readKeys(file)
	if absent(err) {
		err = refuse("name a file of public keys; without them: --authorized-key none", "--authorized-key: %w", err)
	}
	return keys, err
}

// readKeys reads a file of public keys, comments and blank lines left out. What
// is no public key is refused by its line, and never shown: it may be a private
// one.
func readKeys(path string) ([]byte, error) {
	content, err := settings.ReadRegular(path, maxAccessFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, refuse("correct it", "keys: %w", err)
	}
	var keys bytes.Buffer
	for i, line := range strings.Split(strings.TrimPrefix(string(content), "\uFEFF"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.Contains(line, "PRIVATE KEY") {
			return nil, refuse("put the public key there, from the file that ends in .pub", "%s:%d: a private key", path, i+1)
		}
		if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err != nil {
			return nil, refuse("write one public key a line, as ssh-keygen prints it", "%s:%d: not a public key", path, i+1)
		}
		keys.WriteString(line + "\n")
	}
	return keys.Bytes(), nil
}

// attachKeyPath is the private key that we attach with where the user has made
// no collection.
func (a *app) attachKeyPath() string { return filepath.Join(a.dirs.Data, "attach_key") }

// attachKey returns the public line of our own key, making the key once.
func (a *app) attachKey() ([]byte, error) {
	path := a.attachKeyPath()
	content, err := settings.ReadRegular(path, maxAccessFile)
	if errors.Is(err, fs.ErrNotExist) {
		if content, err = makeKey(path); err != nil {
			return nil, fmt.Errorf("key for attach: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(content)
	if err != nil {
		return nil, fail(exitFailed, "move it away to have a new one made, then redeploy", "%s is not a private key that can be used", path)
	}
	return ssh.MarshalAuthorizedKey(signer.PublicKey()), nil
}

// makeKey makes an ed25519 key. Of two processes at once the first one's stays.
func makeKey(path string) ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "agent-container attach")
	if err != nil {
		return nil, err
	}
	if err := settings.MakePrivate(filepath.Dir(path)); err != nil {
		return nil, err
	}
	scratch, err := renameio.TempFile("", path)
	if err != nil {
		return nil, err
	}
	defer scratch.Cleanup()
	content := pem.EncodeToMemory(block)
	if _, err := scratch.Write(content); err != nil {
		return nil, err
	}
	if err := errors.Join(scratch.Chmod(0o600), scratch.Sync()); err != nil {
		return nil, err
	}
	if err := os.Link(scratch.Name(), path); errors.Is(err, fs.ErrExist) {
		return settings.ReadRegular(path, maxAccessFile)
	} else if err != nil {
		return nil, err
	}
	return content, nil
}
