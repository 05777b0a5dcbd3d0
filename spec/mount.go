package spec

import (
	"fmt"
	"path"
	"strings"
)

// Mount is a directory of the host that the container sees, read-only.
type Mount struct {
	Source string `json:"source"` // absolute host path
	Path   string `json:"path"`   // where it is in the container
}

// String renders m as a user types it.
func (m Mount) String() string { return m.Source + ":" + m.Path }

// MountDir is where a Mount is that names no place of its own.
const MountDir = "/mnt"

// writableReason is why no host directory is mounted to be written.
const writableReason = "a host directory is an input, and read-only: what the container writes lives on volumes"

// ParseMount reads HOSTDIR[:PATH]. Without a PATH it is empty. The last colon
// that is followed by a path divides them, so that a HOSTDIR with a colon in its
// name is written with a PATH. The error is an *Error.
func ParseMount(text string) (Mount, error) {
	refused := func(problem, hint string) (Mount, error) {
		return Mount{}, &Error{Field: "--mount", Problem: problem, Hint: hint}
	}
	text, err := WithoutAccess("--mount", text)
	if err != nil {
		return Mount{}, err
	}
	i := strings.LastIndex(text, ":")
	m := Mount{Source: text}
	if i >= 0 {
		m = Mount{Source: text[:i], Path: text[i+1:]}
	}
	switch {
	case m.Source == "":
		return refused("the host directory is missing", "write --mount HOSTDIR, or --mount HOSTDIR:PATH")
	case i >= 0 && !path.IsAbs(m.Path):
		return refused(fmt.Sprintf("%q is no absolute path in the container", Printable(m.Path, 100)),
			"write --mount HOSTDIR:/PATH; a colon in HOSTDIR's name needs a PATH too")
	}
	return m, nil
}

// WithoutAccess takes ":ro" off a host directory, which is true of every one,
// and refuses ":rw" with the reason.
func WithoutAccess(field, text string) (string, error) {
	if strings.HasSuffix(text, ":rw") {
		return "", &Error{Field: field, Problem: writableReason, Hint: "drop :rw; for a directory that is written: --workspace persistent"}
	}
	return strings.TrimSuffix(text, ":ro"), nil
}

// takenPaths are the places in the container that hold what makes it work. None
// is mounted over, nor what is above or below.
var takenPaths = []string{
	"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr",
	ContainerWorkspace, ContainerHome, ContainerAgentDir, ContainerRunDir, ContainerRunsDir, ContainerSecretsDir,
}

// sharedPaths are directories that programs write to, and may be mounted below.
var sharedPaths = []string{"/tmp", "/var/tmp"}

// ValidateMounts returns an *Error for the first of mounts that cannot be.
func ValidateMounts(mounts []Mount) error {
	for i, m := range mounts {
		refused := func(format string, args ...any) error {
			return &Error{Field: "--mount", Problem: Printable(fmt.Sprintf(format, args...), 1000), Hint: fmt.Sprintf("write --mount HOSTDIR:PATH with another PATH, such as %s/NAME", MountDir)}
		}
		switch {
		case !path.IsAbs(m.Path) || path.Clean(m.Path) != m.Path || m.Path == "/":
			return refused("%q is no clean absolute path in the container", m.Path)
		case m.Path != Printable(m.Path, len(m.Path)):
			return refused("%q holds a control character", m.Path)
		}
		for _, taken := range takenPaths {
			if overlap(m.Path, taken) {
				return refused("%s overlaps the container's own %s", m.Path, taken)
			}
		}
		for _, shared := range sharedPaths {
			if within(shared, m.Path) {
				return refused("%s overlaps the container's own %s", m.Path, shared)
			}
		}
		for _, other := range mounts[:i] {
			if overlap(m.Path, other.Path) {
				return refused("%s and %s both want %s", other.Source, m.Source, m.Path)
			}
		}
	}
	return nil
}

// overlap reports whether one of two clean paths is the other, or below it.
func overlap(a, b string) bool { return within(a, b) || within(b, a) }

func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
