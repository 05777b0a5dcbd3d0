package spec

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// EscapeJSON replaces, in a JSON document, the characters that encoding/json
// leaves as they are although a terminal obeys them: DEL, the C1 controls
// (U+009B begins an escape sequence) and the marks that turn the direction of
// text. A byte that is no UTF-8, which a terminal may take for a C1 control,
// becomes the mark that JSON's readers take it for. All of them can only stand
// in strings, so the document means the same.
func EscapeJSON(document []byte) []byte {
	if utf8.Valid(document) && !bytes.ContainsFunc(document, steersTerminal) {
		return document
	}
	out := make([]byte, 0, len(document)+64)
	for len(document) > 0 {
		r, size := utf8.DecodeRune(document)
		if steersTerminal(r) || r == utf8.RuneError && size == 1 {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = append(out, document[:size]...)
		}
		document = document[size:]
	}
	return out
}

// steersTerminal reports whether a terminal may obey r, C0 controls apart.
func steersTerminal(r rune) bool {
	switch {
	case r >= 0x7f && r < 0xa0, r == '\u2028', r == '\u2029': // controls, line ends
		return true
	case r == '\u061c', r == '\u200e', r == '\u200f', r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069': // direction
		return true
	}
	return false
}
