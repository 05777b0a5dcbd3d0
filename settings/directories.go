package settings

import (
	"errors"
	"os"
	"path/filepath"
)

// Directories are where the tool keeps its files. They are made on first use,
// 0700, with files 0600.
type Directories struct {
	Config string // the user's: settings.yaml, NAME.services.yaml, NAME.config/
	State  string // a cache that may be deleted: HOST/NAME/compose.yaml, locks, build logs
	Data   string // what must be kept: runs/HOST/NAME/ID.json
}

// FindDirectories resolves AGENT_CONTAINER_{CONFIG,STATE,DATA}_DIR, then
// $XDG_*_HOME/agent-container, then the XDG defaults below home. An empty
// variable counts as unset. A relative XDG one does too, as its specification
// says; a relative one of ours is an *Error.
func FindDirectories(env func(string) string) (Directories, error) {
	home := env("HOME")
	var d Directories
	for _, row := range []struct {
		dir      *string
		own, xdg string
		fallback []string
	}{
		{&d.Config, "AGENT_CONTAINER_CONFIG_DIR", "XDG_CONFIG_HOME", []string{".config"}},
		{&d.State, "AGENT_CONTAINER_STATE_DIR", "XDG_STATE_HOME", []string{".local", "state"}},
		{&d.Data, "AGENT_CONTAINER_DATA_DIR", "XDG_DATA_HOME", []string{".local", "share"}},
	} {
		switch {
		case filepath.IsAbs(env(row.own)):
			*row.dir = env(row.own)
		case env(row.own) != "":
			return d, &Error{Where: row.own, Problem: "not an absolute path"}
		case filepath.IsAbs(env(row.xdg)):
			*row.dir = filepath.Join(env(row.xdg), "agent-container")
		case filepath.IsAbs(home):
			*row.dir = filepath.Join(append(append([]string{home}, row.fallback...), "agent-container")...)
		default:
			return d, errors.New("neither HOME nor " + row.own + " names an absolute directory")
		}
	}
	return d, nil
}

// AuthorizedKeys is the user's collection of public keys that may attach.
func (d Directories) AuthorizedKeys() string { return filepath.Join(d.Config, "authorized_keys") }

// Deployment returns the state directory of a deployment.
func (d Directories) Deployment(host, name string) string { return filepath.Join(d.State, host, name) }

// ServicesFile returns the path of a deployment's services file.
func (d Directories) ServicesFile(name string) string {
	return filepath.Join(d.Config, name+".services.yaml")
}

// AgentConfig returns the directory of canonical configuration for an agent.
func (d Directories) AgentConfig(name, agent string) string {
	return filepath.Join(d.Config, name+".config", agent)
}

// MakePrivate creates dir and its missing parents, 0700.
func MakePrivate(dir string) error { return os.MkdirAll(dir, 0o700) }
