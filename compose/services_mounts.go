package compose

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// hostOnly are the host's directories that no container is given any part of,
// read-only or not: through /proc/PID/root a process of the same user reaches, and
// writes, all that it may; devices are no files; and an engine's own data is
// everybody's.
var hostOnly = []string{"/proc", "/sys", "/dev", "/var/lib/docker", "/var/lib/containerd", "/var/lib/containers"}

// NeverShown returns why a host path may be mounted into no container, or "".
func NeverShown(source string) string {
	if holdsSocket(source) {
		return "may hold an engine's socket, which is root on the host, read-only too"
	}
	clean := path.Clean("/" + filepath.ToSlash(source))
	for _, dir := range hostOnly {
		if clean == dir || strings.HasPrefix(clean, dir+"/") || strings.HasPrefix(dir, clean+"/") {
			return "is, or holds, a part of " + dir + ", through which the host is reached, read-only too"
		}
	}
	return ""
}

// holdsSocket reports whether a host path is, or contains, the place of an
// engine's socket.
func holdsSocket(source string) bool {
	clean := filepath.ToSlash(filepath.Clean(source))
	if below, ok := strings.CutPrefix(clean+"/", "/var/run/"); ok { // a link to /run
		clean = path.Clean("/run/" + below)
	}
	if strings.HasSuffix(clean, ".sock") || slices.Contains([]string{"/", "/run", "/var", "/run/user"}, clean) {
		return true
	}
	for _, dir := range []string{"/run/docker", "/run/podman", "/run/containerd"} {
		if clean == dir || strings.HasPrefix(clean, dir+"/") {
			return true
		}
	}
	// Rootless engines keep theirs in the user's directory there.
	user, ok := strings.CutPrefix(clean, "/run/user/")
	return ok && (!strings.Contains(user, "/") || strings.Contains(user+"/", "/podman/"))
}
