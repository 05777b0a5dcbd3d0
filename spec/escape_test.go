package spec

import (
	"encoding/json"
	"testing"
)

func TestEscapeJSON(t *testing.T) {
	// What steers a terminal must leave a document escaped, and the document must mean the same; everything else must stay byte for byte.
	for _, text := range []string{"plain", "ünïcode 日本 🙂", "\x7f", "\u009b31m", "\u202e\u2066\u200e\u061c", "\u2028\u2029", "a\u009bb\x7fc", "\\u009b", ""} {
		plain, err := json.Marshal(map[string]string{"k": text})
		if err != nil {
			t.Fatal(err)
		}
		escaped := EscapeJSON(plain)
		for _, r := range string(escaped) {
			if steersTerminal(r) {
				t.Errorf("%q: %q is left", text, r)
			}
		}
		var back map[string]string
		if err := json.Unmarshal(escaped, &back); err != nil || back["k"] != text {
			t.Errorf("%q: comes back as %q, %v", text, back["k"], err)
		}
	}
	if same := `{"k":"ünïcode 日本 🙂"}`; string(EscapeJSON([]byte(same))) != same {
		t.Error("a harmless document was changed")
	}
}
