package recognise

import (
	"path"
	"slices"

	"github.com/agent-container/agent-container/spec"
)

// interpreters run the agents that are scripts: their first argument is the script.
var interpreters = []string{"node", "nodejs", "bun", "deno", "python", "python3", "sh", "dash", "bash"}

// Host returns the agent of spec.Agents that argv itself is, on the host: by the
// base name of its executable, exactly, or of the script that an interpreter got as
// its first argument.
func Host(argv []string) (agent string, ok bool) {
	if len(argv) > 1 && slices.Contains(interpreters, path.Base(argv[0])) {
		argv = argv[1:]
	}
	if len(argv) == 0 || argv[0] == "" {
		return "", false
	}
	name := path.Base(argv[0])
	i := slices.IndexFunc(spec.Agents, func(a spec.Agent) bool { return a.Executable == name })
	if i < 0 {
		return "", false
	}
	return spec.Agents[i].Name, true
}

// Runtime returns the runtime whose program is called so: docker for docker-compose.
func Runtime(program string) (name string, ok bool) {
	rt, ok := runtimes[program]
	return rt.name, ok
}
