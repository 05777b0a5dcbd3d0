package runs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// stamp is a point in time for machines and for people, both in UTC.
type stamp struct{ Machine, Day, Clock string }

func stampOf(t time.Time) stamp {
	t = t.UTC()
	return stamp{t.Format(time.RFC3339), t.Format("2 Jan 2006"), t.Format("15:04:05")}
}

// secondsBetween has no bound, unlike time.Sub: a record may say the year 1 and
// the year 9999.
func secondsBetween(a, b time.Time) float64 {
	return float64(b.Unix()-a.Unix()) + float64(b.Nanosecond()-a.Nanosecond())/1e9
}

// duration renders seconds in the two units that matter.
func duration(s float64) string {
	const minute, hour, day = 60, 3600, 86400
	switch whole := int64(math.Round(s)); {
	case s < 0.9995:
		return fmt.Sprintf("%d ms", int64(math.Round(s*1000)))
	case s < 59.95:
		return strings.TrimSuffix(strconv.FormatFloat(s, 'f', 1, 64), ".0") + " s"
	case whole < hour:
		return fmt.Sprintf("%d min %02d s", whole/minute, whole%minute)
	case whole < day:
		return fmt.Sprintf("%d h %02d min", whole/hour, whole%hour/minute)
	default:
		return fmt.Sprintf("%s d %d h", grouped(whole/day), whole%day/hour)
	}
}

// size renders a number of bytes.
func size(n int64) string {
	if n < 0 {
		return "–"
	}
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1023.95 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + " " + units[i]
}

// addBytes adds without going round; what is negative is not counted.
func addBytes(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + max(b, 0)
}

// grouped renders a number with thin spaces between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return sign + s
}

// count renders "1 run" and "2 runs".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(int64(n)) + " " + noun + "s"
}

// period says from when to when rows go.
func period(rows []*runView) string {
	var first, last time.Time
	for i, v := range rows {
		end := v.record.StartedAt
		if v.record.EndedAt != nil && v.record.EndedAt.After(end) {
			end = *v.record.EndedAt
		}
		if i == 0 || v.record.StartedAt.Before(first) {
			first = v.record.StartedAt
		}
		if i == 0 || end.After(last) {
			last = end
		}
	}
	if len(rows) == 0 {
		return ""
	}
	a, b := stampOf(first), stampOf(last)
	switch {
	case a == b:
		return fmt.Sprintf("%s, %s UTC", a.Day, a.Clock)
	case a.Day == b.Day:
		return fmt.Sprintf("%s, %s – %s UTC", a.Day, a.Clock, b.Clock)
	}
	return fmt.Sprintf("%s, %s – %s, %s UTC", a.Day, a.Clock, b.Day, b.Clock)
}
