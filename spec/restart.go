package spec

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Restart says how often a failed headless job is started again. The zero
// value is "no": retrying an agent starts it over, and every attempt is billed.
type Restart struct {
	OnFailure bool
	Max       int // attempts after the first; 0 means without limit, with OnFailure only
}

// ParseRestart reads "no", "on-failure" or "on-failure:N" (N ≥ 1). "always" and
// "unless-stopped" are refused with the reason.
func ParseRestart(text string) (Restart, error) {
	switch text {
	case "no":
		return Restart{}, nil
	case "on-failure":
		return Restart{OnFailure: true}, nil
	case "always", "unless-stopped":
		return Restart{}, fmt.Errorf("%q would start a finished job again, and every attempt is billed: use no, on-failure or on-failure:N", text)
	}
	if count, ok := strings.CutPrefix(text, "on-failure:"); ok {
		if n, err := strconv.Atoi(count); err == nil && n >= 1 && n <= 1000 && strconv.Itoa(n) == count {
			return Restart{OnFailure: true, Max: n}, nil
		}
	}
	return Restart{}, fmt.Errorf("%q is not one of no, on-failure, on-failure:N (N from 1 to 1000)", text)
}

// String returns r as ParseRestart reads it; Compose uses the same words.
func (r Restart) String() string {
	switch {
	case !r.OnFailure:
		return "no"
	case r.Max == 0:
		return "on-failure"
	}
	return "on-failure:" + strconv.Itoa(r.Max)
}

// Attempts returns how often a job may be tried in all, 0 for without end.
func (r Restart) Attempts() int {
	switch {
	case !r.OnFailure:
		return 1
	case r.Max == 0:
		return 0
	}
	return r.Max + 1
}

// Fewer reports whether r starts a failed job again less often than other.
func (r Restart) Fewer(other Restart) bool {
	return r.rank() < other.rank()
}

// rank orders policies by how many attempts they allow.
func (r Restart) rank() int {
	switch {
	case !r.OnFailure:
		return 0
	case r.Max == 0:
		return 1 << 30
	}
	return r.Max
}

// MarshalJSON writes r as its text.
func (r Restart) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Restart) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	var err error
	*r, err = ParseRestart(text)
	return err
}
