package images

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"

	"github.com/agent-container/agent-container/spec"
)

// Gateway is the gateway's image: the guest, the directory of its fill, and
// nothing else that a connection through it could be used for.
type Gateway struct{ guest []byte }

// Gateway returns the gateway's image for an engine of architecture arch, or
// ErrNoGuest.
func (s Source) Gateway(arch string) (Gateway, error) {
	guest, err := s.guest(arch)
	return Gateway{guest}, err
}

// Digest names the content: 16 hexadecimal digits.
func (g Gateway) Digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "gateway 1 %x\n", sha256.Sum256(g.guest))
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// WriteTar writes the image's files.
func (g Gateway) WriteTar(w io.Writer) error {
	t := tar.NewWriter(w)
	for _, dir := range []string{path.Dir(spec.ContainerRunDir), spec.ContainerRunDir} {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755}); err != nil {
			return err
		}
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: spec.GatewayGuest[1:], Mode: 0o755, Size: int64(len(g.guest))}); err != nil {
		return err
	}
	if _, err := t.Write(g.guest); err != nil {
		return err
	}
	return t.Close()
}
