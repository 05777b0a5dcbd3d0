package compose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/agent-container/agent-container/spec"
)

// Services are the user's own sidecars, read and checked.
type Services struct {
	File    string // what errors call it
	Brought bool   // a project brings them: they are nothing that the user wrote
	project *types.Project
}

// JSON is the services as they were read, for comparing; nothing for nil.
func (s *Services) JSON() ([]byte, error) {
	if s == nil {
		return nil, nil
	}
	return s.project.MarshalJSON()
}

// Names returns the services' names in order.
func (s *Services) Names() []string { return slices.Sorted(maps.Keys(s.project.Services)) }

// Pulled returns the images of the services that may come from a registry, by
// service. One whose pull policy says never, or that is built, is not among
// them.
func (s *Services) Pulled() map[string]string {
	images := map[string]string{}
	for name, svc := range s.project.Services {
		if svc.Build == nil && svc.PullPolicy != types.PullPolicyNever {
			images[name] = svc.Image
		}
	}
	return images
}

// Built lists the services that are built.
func (s *Services) Built() []string {
	var names []string
	for _, name := range s.Names() {
		if s.project.Services[name].Build != nil {
			names = append(names, name)
		}
	}
	return names
}

// VolumeNames returns the engine's names of the volumes that deployment name
// gets for its services; external ones are the user's and not among them.
func (s *Services) VolumeNames(name string) []string {
	var names []string
	for _, v := range slices.Sorted(maps.Keys(s.project.Volumes)) {
		if !bool(s.project.Volumes[v].External) {
			names = append(names, ServiceVolumeName(name, v))
		}
	}
	return names
}

// ServicesError is a refusal of a services file.
type ServicesError struct {
	File    string
	Line    int // 0 where it concerns the file as a whole
	Problem string
	Hint    string
}

// Error is one line: names in the file, and what Compose says of them, may hold
// anything.
func (e *ServicesError) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return spec.Printable(where+": "+e.Problem, maxProblem)
}

// maxProblem bounds a refusal.
const maxProblem = 4096

// What a services file may hold. Everything else is refused by name: a list of
// what is forbidden would miss the key that a later Compose version adds.
var (
	topKeys     = []string{"services", "volumes", "version"}
	serviceKeys = []string{
		"build", "command", "cpus", "depends_on", "entrypoint", "env_file", "environment", "expose", "healthcheck",
		"hostname", "image", "init", "mem_limit", "mem_reservation", "pids_limit", "platform", "pull_policy",
		"read_only", "shm_size", "stop_grace_period", "stop_signal", "sysctls", "tmpfs", "ulimits", "user",
		"volumes", "working_dir",
	}
	volumeKeys = []string{"driver", "driver_opts", "external", "labels", "name"}
)

// rules are what a services file may hold, and take from the environment.
type rules struct {
	service, volume []string // keys
	variable        template.ReplacementFunc
}

// own are the rules of the user's own file.
var own = rules{serviceKeys, volumeKeys, onlySetVariables}

// reservedServices are names of our own.
var reservedServices = []string{AgentService, "egress"}

// ParseServices reads the user's own services file. name is the deployment's,
// file is what errors call it, dir is what relative paths in it start from and
// env is what it may interpolate. The error is a *ServicesError.
func ParseServices(ctx context.Context, name, file, dir string, content []byte, env map[string]string) (*Services, error) {
	return parseServices(ctx, name, file, dir, content, env, own)
}

func parseServices(ctx context.Context, name, file, dir string, content []byte, env map[string]string, r rules) (*Services, error) {
	if err := checkServiceKeys(file, content, r); err != nil {
		return nil, err
	}
	details := types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: file, Content: content}},
		Environment: env,
	}
	project, err := loadServices(ctx, details, name, r)
	if err != nil {
		return nil, &ServicesError{File: file, Problem: firstLine(err.Error())}
	}
	s := &Services{File: file, project: project}
	if err := s.check(file); err != nil {
		return nil, err
	}
	return s, s.allWritable(file)
}

// loadServices is Compose's own reading. It panics at some files that its schema
// lets pass, such as ulimits {A: {hard: null}} (compose-go 2.16.2).
func loadServices(ctx context.Context, details types.ConfigDetails, name string, r rules) (p *types.Project, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("unreadable for Compose: %v", reason)
		}
	}()
	return loader.LoadWithContext(ctx, details, func(o *loader.Options) {
		o.SetProjectName(ProjectName(name), true)
		o.SkipInclude, o.SkipExtends = true, true
		o.Interpolate.Substitute = func(text string, lookup template.Mapping) (string, error) {
			return template.SubstituteWithOptions(text, lookup, template.WithoutLogging, template.WithReplacementFunction(r.variable))
		}
	})
}

// onlySetVariables makes a variable that is not set an error. Compose takes it
// for empty: an empty password, say, is not what anybody meant.
func onlySetVariables(text string, lookup template.Mapping, c *template.Config) (string, error) {
	value, known, err := template.DefaultReplacementAppliedFunc(text, lookup, c)
	if err == nil && !known {
		name := strings.Trim(text, "${}")
		err = fmt.Errorf("variable %s is not set: export it, or write ${%s:-default}", name, name)
	}
	return value, err
}

// check refuses what an allowed key can still hold.
func (s *Services) check(file string) error {
	for _, name := range s.Names() {
		svc := s.project.Services[name]
		for _, v := range svc.Volumes {
			if why := NeverShown(v.Source); v.Type == types.VolumeTypeBind && why != "" {
				return &ServicesError{File: file, Problem: fmt.Sprintf("service %q mounts %s, which %s", name, v.Source, why)}
			}
		}
		if svc.Build != nil && (svc.Build.Privileged || len(svc.Build.Entitlements) > 0 || svc.Build.Network == "host") {
			return &ServicesError{File: file, Problem: fmt.Sprintf("service %q asks for a privileged build", name)}
		}
		for k := range svc.Environment {
			if strings.Contains(k, "$") { // Compose interpolates values only, and we escape both
				return &ServicesError{File: file, Problem: fmt.Sprintf("service %q has a variable %q with a $ in its name", name, k)}
			}
		}
		for k := range svc.Sysctls {
			if !strings.HasPrefix(k, "net.") {
				return &ServicesError{File: file, Problem: fmt.Sprintf("service %q sets sysctl %s: only net.* is its own", name, k)}
			}
		}
	}
	for name, v := range s.project.Volumes {
		// The local driver's options can make a volume of any host directory.
		if device := v.DriverOpts["device"]; strings.HasPrefix(device, "/") && NeverShown(device) != "" {
			return &ServicesError{File: file, Problem: fmt.Sprintf("volume %q is %s, which %s", name, device, NeverShown(device))}
		}
	}
	return nil
}

// firstLine returns the first line of text, with the next one where it only
// announces that.
func firstLine(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	if strings.HasSuffix(line, ":") {
		next, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
		line += " " + strings.TrimSpace(next)
	}
	return line
}

// IsServicesError reports whether err is a refusal of a services file.
func IsServicesError(err error) bool {
	var e *ServicesError
	return errors.As(err, &e)
}
