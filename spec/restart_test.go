package spec

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseRestart(t *testing.T) {
	// A restart policy must be one of three forms, and its text and JSON must read back as the same.
	for text, want := range map[string]Restart{
		"no":              {},
		"on-failure":      {OnFailure: true},
		"on-failure:1":    {OnFailure: true, Max: 1},
		"on-failure:1000": {OnFailure: true, Max: 1000},
	} {
		got, err := ParseRestart(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("ParseRestart(%q) = %+v %q, %v", text, got, got, err)
		}
		var back Restart
		b, _ := json.Marshal(got)
		if err := json.Unmarshal(b, &back); err != nil || back != want || string(b) != `"`+text+`"` {
			t.Errorf("JSON of %q is %s and reads back as %+v, %v", text, b, back, err)
		}
	}
}

func TestParseRestartRefuses(t *testing.T) {
	// What resurrects a finished job must be refused with the reason, and anything else with the forms there are.
	for text, want := range map[string]string{
		"always":                          "every attempt is billed",
		"unless-stopped":                  "every attempt is billed",
		"":                                "is not one of",
		"No":                              "is not one of",
		"on-failure:":                     "is not one of",
		"on-failure:0":                    "is not one of",
		"on-failure:-1":                   "is not one of",
		"on-failure:+1":                   "is not one of",
		"on-failure:01":                   "is not one of",
		"on-failure:1.5":                  "is not one of",
		"on-failure:1001":                 "is not one of",
		"on-failure:3 ":                   "is not one of",
		"on-failure:99999999999999999999": "is not one of",
		"false":                           "is not one of",
	} {
		if got, err := ParseRestart(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRestart(%q) = %v, %v; want an error with %q", text, got, err, want)
		}
	}
	for _, text := range []string{`"always"`, `3`, `null`, `{"OnFailure":true}`} {
		var r Restart
		if err := json.Unmarshal([]byte(text), &r); err == nil {
			t.Errorf("JSON %s was read as %v", text, r)
		}
	}
}

func TestRestartFewer(t *testing.T) {
	// Fewer must order the policies by how many attempts they allow, strictly.
	order := []string{"no", "on-failure:1", "on-failure:2", "on-failure:1000", "on-failure"}
	for i, a := range order {
		for j, b := range order {
			left, _ := ParseRestart(a)
			right, _ := ParseRestart(b)
			if got := left.Fewer(right); got != (i < j) {
				t.Errorf("%s fewer than %s = %v", a, b, got)
			}
		}
	}
}
