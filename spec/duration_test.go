package spec

import (
	"encoding/json"
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	// A time limit must be a Go duration of a second to thirty days; a bare number is refused, its unit is a guess.
	for text, want := range map[string]time.Duration{
		"1s": time.Second, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "720h": 720 * time.Hour, "1.5h": 90 * time.Minute,
		"": 0, "90": 0, "0s": 0, "999ms": 0, "-1m": 0, "721h": 0, "1d": 0, "ever": 0, "9999999999h": 0, " 1m": 0,
	} {
		got, err := ParseDuration(text)
		if (err == nil) != (want > 0) || time.Duration(got) != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestDurationJSON(t *testing.T) {
	// Limits must read back from their JSON as they were, and what is no time be refused.
	want := Limits{Pids: 1, Run: Duration(90 * time.Minute), Start: Duration(2 * time.Second)}
	b, err := json.Marshal(want)
	if err != nil || string(b) != `{"pids":1,"timeout":"1h30m0s","start_timeout":"2s"}` {
		t.Fatalf("%s, %v", b, err)
	}
	var got Limits
	if err := json.Unmarshal(b, &got); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{`{"timeout":5}`, `{"timeout":"x"}`} {
		if json.Unmarshal([]byte(bad), &got) == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestAttemptsOfAPolicy(t *testing.T) {
	// A policy must say how often a job may be tried in all.
	for text, want := range map[string]int{"no": 1, "on-failure": 0, "on-failure:1": 2, "on-failure:3": 4} {
		r, err := ParseRestart(text)
		if err != nil || r.Attempts() != want {
			t.Errorf("%s: %d attempts, %v", text, r.Attempts(), err)
		}
	}
}
