package panes

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// parseProcargs reads what macOS answers to sysctl KERN_PROCARGS2: the number of
// arguments, the path of the program, NULs up to a word's boundary, the arguments, each
// with a NUL behind it, and then the environment, of which nothing is read.
func parseProcargs(b []byte) ([]string, error) {
	odd := errors.New("its arguments are not understood")
	if len(b) < 4 {
		return nil, odd
	}
	count := int(int32(binary.NativeEndian.Uint32(b)))
	_, rest, ok := bytes.Cut(b[4:], []byte{0})
	if !ok || count <= 0 || count > len(b) {
		return nil, odd
	}
	rest = bytes.TrimLeft(rest, "\x00")
	var argv []string
	for range count {
		word, after, ok := bytes.Cut(rest, []byte{0})
		if !ok {
			return nil, odd
		}
		argv, rest = append(argv, string(word)), after
	}
	return argv, nil
}
