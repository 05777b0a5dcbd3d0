package engine

import (
	"errors"
	"testing"

	"github.com/agent-container/agent-container/process"
)

func said(stderr string) error {
	return &process.ExitError{Argv: []string{"docker"}, Code: 1, Stderr: stderr}
}

func TestFailuresAreToldApart(t *testing.T) {
	// What is gone, an engine that is lost and everything else must never be taken for one another. The texts are what docker 26.1 and 28.2 print; the last lost one is docker 29's.
	for _, row := range []struct {
		text                string
		missing, path, lost bool
	}{
		{"Error response from daemon: No such container: nope", true, true, false},
		{"Error response from daemon: get nope: no such volume", true, true, false},
		{"Error response from daemon: network nope not found\nexit status 1", true, true, false},
		{"Error response from daemon: error while removing network: unknown network agent-container id d890fa3aad76", true, true, false},
		{"Error response from daemon: No such image: nope:latest", true, true, false},
		{"Error response from daemon: No such container: a\nError response from daemon: No such container: b\n", true, true, false},
		{"Error response from daemon: Could not find the file /nope in container x", false, true, false},
		{"Error response from daemon: No such container: a\nError response from daemon: cannot remove b: device busy", false, false, false},
		{"Error response from daemon: open /var/lib/x: no such file or directory", false, false, false},
		{"Error response from daemon: network x has active endpoints", false, false, false},
		{"", false, false, false},
		{"Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?", false, false, true},
		{"ERROR: Cannot connect to the Docker daemon at unix:///x.sock. Is the docker daemon running?", false, false, true},
		{"error during connect: Get \"http://x\": EOF", false, false, true},
		{"failed to connect to the docker API at unix:///x.sock; check if the path is correct: dial unix /x.sock: connect: no such file or directory", false, false, true},
		{"unknown flag: --project-name\n\nUsage:  docker [OPTIONS] COMMAND [ARG...]", false, false, true},
		{"unknown flag: --load\n\nUsage:  docker [OPTIONS] COMMAND [ARG...]", false, false, true},
		{"docker: 'compose' is not a docker command.", false, false, true},
	} {
		err := said(row.text)
		var gone *UnreachableError
		if missing(err) != row.missing || missingPath(err) != row.path || errors.As(lost(err), &gone) != row.lost {
			t.Errorf("%q: missing %v, path %v, lost %v", row.text, missing(err), missingPath(err), errors.As(lost(err), &gone))
		}
	}
	if other := errors.New("no such container"); missing(other) || lost(other) != other {
		t.Error("an error that no command made was read as one")
	}
}

func TestWhatTheEngineIsStillAtIsTold(t *testing.T) {
	// A name that is taken must be told with its holder, and a removal under way from one that fails. The texts are docker 26.1's.
	for text, want := range map[string]string{
		`Error response from daemon: Conflict. The container name "/9b3eb12557ff_agent-container-x" is already in use by container "f395e0ac". You have to remove (or rename) that container to be able to reuse that name.`: "f395e0ac",
		`Error response from daemon: Pool overlaps with other one on this address space`: "",
	} {
		if id, taken := NameTaken(said(text)); id != want || taken != (want != "") {
			t.Errorf("%q: holder %q, %v", text, id, taken)
		}
	}
	removing := "Error response from daemon: removal of container a is already in progress\n"
	for text, want := range map[string]bool{
		removing: true,
		removing + "Error response from daemon: No such container: b":         true,
		removing + "Error response from daemon: cannot remove b: device busy": false,
		"": false,
	} {
		if beingRemoved(said(text)) != want {
			t.Errorf("%q: being removed is not %v", text, want)
		}
	}
}
