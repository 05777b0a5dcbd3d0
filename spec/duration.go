package spec

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a time.Duration that is kept as text, such as "1h30m0s".
type Duration time.Duration

// String returns d as ParseDuration reads it.
func (d Duration) String() string { return time.Duration(d).String() }

// Bounds of a time limit. What is shorter cannot be kept exactly; what is
// longer is no limit that anybody would wait for.
const (
	minDuration = Duration(time.Second)
	maxDuration = Duration(30 * 24 * time.Hour)
)

// ParseDuration reads a time limit of one second to thirty days in Go's form:
// "90s", "1h30m". A number without a unit is refused: whether it means seconds
// or minutes differs from tool to tool.
func ParseDuration(text string) (Duration, error) {
	parsed, err := time.ParseDuration(text)
	d := Duration(parsed)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time such as 90s, 15m or 1h30m", text)
	}
	if d < minDuration || d > maxDuration {
		return 0, fmt.Errorf("%q is not between 1s and 720h", text)
	}
	return d, nil
}

// MarshalJSON writes d as its text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(text)
	*d = Duration(parsed)
	return err
}
