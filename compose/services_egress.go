package compose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ProxyVariable reports whether a variable sends programs to a proxy, or keeps
// them from one, in whatever case it is written.
func ProxyVariable(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasSuffix(upper, "_PROXY") || strings.HasSuffix(upper, "_NOPROXY")
}

// CheckInside refuses what a service cannot have in the gateway's namespace,
// where all are but those outside. The error is a *ServicesError.
func (s *Services) CheckInside(outside []string) error {
	for _, name := range s.Names() {
		if slices.Contains(outside, name) {
			continue
		}
		svc := s.project.Services[name]
		refuse := func(format string, args ...any) error {
			return &ServicesError{File: s.File, Problem: fmt.Sprintf("service %q "+format, append([]any{name}, args...)...), Hint: "take it out, or leave the service outside: egress.outside"}
		}
		if svc.Hostname != "" {
			return refuse("has a hostname, which belongs to the network that it shares with the agent where egress is declared; it is reached by its own name and at localhost")
		}
		if keys := slices.Sorted(maps.Keys(svc.Sysctls)); len(keys) > 0 { // all are net.*
			return refuse("sets sysctl %s, of the network that it shares with the agent where egress is declared", keys[0])
		}
		for _, variable := range slices.Sorted(maps.Keys(svc.Environment)) {
			if ProxyVariable(variable) {
				return refuse("has the variable %s: where egress is declared programs connect directly, and the gateway decides", variable)
			}
		}
	}
	return nil
}
