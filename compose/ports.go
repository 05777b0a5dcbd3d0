package compose

import (
	"fmt"
	"strconv"
	"strings"
)

// PortRange is the host's ports that deployments get for their sshd.
type PortRange struct{ First, Last int }

// ParsePortRange reads "22000-22999", or one port.
func ParsePortRange(text string) (PortRange, error) {
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := strconv.ParseUint(last, 10, 16)
	r := PortRange{int(a), int(b)}
	if errA != nil || errB != nil || r.First < 1024 || r.Last < r.First {
		return PortRange{}, fmt.Errorf("%q is not a range of ports from 1024 to 65535, such as 22000-22999", text)
	}
	return r, nil
}

// Free returns the first port of r that is not taken, or an error.
func (r PortRange) Free(taken func(int) bool) (int, error) {
	for p := r.First; p <= r.Last; p++ {
		if !taken(p) {
			return p, nil
		}
	}
	return 0, fmt.Errorf("all ports of %d-%d are taken", r.First, r.Last)
}
