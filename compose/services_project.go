package compose

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
)

// foreign are the rules of a file that a project brings: it comes from a
// repository, and a service of it must reach nothing of the host that it is not
// given: no file, no variable, nothing that exists already.
var foreign = rules{
	slices.DeleteFunc(slices.Clone(serviceKeys), func(key string) bool {
		return slices.Contains([]string{"build", "env_file", "pids_limit"}, key) // processes: the user's limit counts
	}),
	[]string{"labels"},
	noVariables,
}

// ParseProjectServices reads the services file of a project, which may hold
// less than the user's own: see ParseServices. The error is a *ServicesError.
func ParseProjectServices(ctx context.Context, name, file, dir string, content []byte) (*Services, error) {
	s, err := parseServices(ctx, name, file, dir, content, nil, foreign)
	if err != nil {
		return nil, err
	}
	s.Brought = true
	for _, service := range s.Names() {
		svc := s.project.Services[service]
		for _, v := range svc.Volumes {
			if v.Type != types.VolumeTypeVolume && v.Type != types.VolumeTypeTmpfs {
				return nil, &ServicesError{File: file, Hint: ownFileHint, Problem: fmt.Sprintf("service %q mounts %s: a project's services have volumes of their own only", service, v.Source)}
			}
		}
		for _, variable := range slices.Sorted(maps.Keys(svc.Environment)) {
			if svc.Environment[variable] == nil { // Compose would take it from the user's environment
				return nil, &ServicesError{File: file, Hint: "give it a value there, or put the file into your own config directory",
					Problem: fmt.Sprintf("service %q has the variable %s without a value: a project takes none of yours", service, variable)}
			}
		}
	}
	return s, nil
}

const ownFileHint = "put the file into your own config directory, if you want that"

// noVariables makes every variable an error; a doubled dollar sign is none.
func noVariables(text string, _ template.Mapping, _ *template.Config) (string, error) {
	if text == "$$" {
		return "$", nil
	}
	return "", fmt.Errorf("%s: a project's services take no variable from your environment; write $$ for a dollar sign", strings.TrimSpace(text))
}
