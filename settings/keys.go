// Package settings reads settings.yaml of the user and of a project, and says
// of every value where it came from.
package settings

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/spec"
)

// Key is one row of the table of settings.
type Key struct {
	Name    string // as in settings.yaml; a dot means nesting
	Values  string // what it takes, for docs and help
	Default string
	Unset   string // what no value means, for people; "not limited" where it is empty
	Doc     string

	check func(value string) error

	// A project comes from a repository. It may set a key only where project
	// says so; with narrower, only to a value that narrows the user's.
	project  projectRule
	narrower func(project, user string) bool

	boolean bool                                   // a YAML boolean, never the text "false"
	list    func(words []string) ([]string, error) // a YAML list; checks its entries and puts them in order
	argv    bool                                   // a YAML list, a command and its arguments in order, none with a blank
	pairs   bool                                   // a YAML mapping; its text is "KEY=VALUE ...", sorted, over the default's
}

type projectRule int

const (
	never   projectRule = iota // refused
	choice                     // the project's wish counts
	narrows                    // the narrower of the two counts
)

// Keys is the table of settings, in the order in which context prints them.
var Keys = []Key{
	{Name: "runtime", Values: "docker", Default: "", Doc: "the container engine; found when not set", check: oneOf("docker")},
	{Name: "agent", Values: strings.Join(spec.AgentNames(), ", "), Default: spec.Agents[0].Name, Doc: "the agent of a new deployment",
		check: func(v string) error { _, err := spec.LookupAgent(v); return err }, project: choice},
	{Name: "mode", Values: words(spec.Modes), Default: string(spec.Modes[0]), Doc: "the mode of a new deployment",
		check: oneOf(spec.Texts(spec.Modes)...), project: choice},
	{Name: "workspace", Values: words(spec.Workspaces), Default: string(spec.Workspaces[0]), Doc: "what is mounted at /workspace",
		check: oneOf(spec.Texts(spec.Workspaces)...), project: choice},
	{Name: "headless_restart", Values: "no, on-failure, on-failure:N", Default: "no", Doc: "how often a failed job is started again; every attempt is billed",
		check: func(v string) error { _, err := spec.ParseRestart(v); return err }, project: narrows, narrower: fewerRestarts},
	{Name: "record_task", Values: "true, false", Default: "true", Doc: "whether run records hold the task's text",
		boolean: true, project: narrows, narrower: func(p, u string) bool { return p == "false" && u == "true" }},
	{Name: "base_image", Values: "image reference", Default: "debian:trixie-slim", Doc: "what agent images are built on; made on this machine when no registry answers",
		check: plainWord},
	{Name: "ca_bundle", Values: "auto, none, a path", Default: "auto", Doc: "CA certificates for builds and containers; auto takes the file of SSL_CERT_FILE or NODE_EXTRA_CA_CERTS",
		check: autoNoneOrPath},
	{Name: "ssh_bind", Values: "address, none", Default: "127.0.0.1", Doc: "where the sshd of sessions is published on the host; none for nowhere",
		check: addressOrNone},
	{Name: "ssh_ports", Values: "range", Default: "22000-22999", Doc: "the ports that it gets there",
		check: func(v string) error { _, err := compose.ParsePortRange(v); return err }},
	{Name: "subnet_pool", Values: "IPv4 network", Default: "10.213.0.0/16", Doc: "where networks of deployments with services come from",
		check: func(v string) error { _, err := compose.ParsePool(v); return err }},
	{Name: "git.credentials", Values: "host: name of a variable", Default: "github.com=GH_TOKEN", Doc: "which variable of the agent's environment holds the token for an https git server",
		check: func(v string) error { _, err := ParseCredentials(v); return err }, pairs: true},
	{Name: enforcementKey, Values: "strict, advisory", Default: "", Unset: "strict where anything is declared", Doc: "whether what is not permitted is refused, or let through and recorded",
		check: oneOf(string(spec.Strict), string(spec.Advisory)), project: narrows, narrower: func(p, u string) bool { return u == "" || p == string(spec.Strict) && u == string(spec.Advisory) }},
	{Name: allowKey, Values: "list of entries", Default: "", Unset: "unrestricted: everything may leave", Doc: "what may leave a deployment; an empty list lets nothing out", list: allowed, project: narrows, narrower: coveredBy},
	{Name: "egress.outside", Values: "list of services", Default: "", Unset: "no service", Doc: "services that the declaration does not hold", list: servicesOutside},
	{Name: "limits.memory", Values: "bytes, with k, m, g", Default: "", Doc: "memory of the agent's container; swap is not added",
		check: func(v string) error { _, err := ParseBytes(v); return err }, project: narrows, narrower: lessBytes},
	{Name: "limits.cpus", Values: "number", Default: "", Doc: "processors of the agent's container",
		check: func(v string) error { _, err := ParseCPUs(v); return err }, project: narrows, narrower: lessNumber},
	{Name: "limits.pids", Values: "number", Default: "2048", Doc: "processes of each container",
		check: func(v string) error { _, err := ParsePids(v); return err }, project: narrows, narrower: lessNumber},
	{Name: "limits.timeout", Values: "time, such as 30m", Default: "", Doc: "how long a job may take, all attempts together; it ends with 124",
		check: duration, project: narrows, narrower: lessTime},
	{Name: "limits.idle_timeout", Values: "time, such as 10m", Default: "", Doc: "how long a job may write nothing; it ends with 124",
		check: duration, project: narrows, narrower: lessTime},
	{Name: "limits.start_timeout", Values: "time, such as 60s", Default: "60s", Doc: "how long one phase of the set-up may take without progress",
		check: duration, project: narrows, narrower: lessTime},
	{Name: "panes.notify_command", Values: "list: a command and its arguments", Default: "", Unset: "a message of tmux", Doc: "what panes watch runs when an agent that is not in view waits or is idle", argv: true},
}

// Env returns the environment variable that sets k.
func (k Key) Env() string {
	return spec.EnvPrefix + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// Names returns the names of all keys.
func Names() []string {
	names := make([]string, len(Keys))
	for i, k := range Keys {
		names[i] = k.Name
	}
	return names
}

func lookup(name string) (Key, bool) {
	i := slices.IndexFunc(Keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return Keys[i], true
}

// maxBytes is more memory than any machine has. What is above may not even be a
// number of the engine's.
const maxBytes = 1 << 50

// ParseBytes reads a memory limit such as "512m" or "4g".
func ParseBytes(text string) (int64, error) {
	n, err := units.RAMInBytes(text)
	if err != nil || n <= 0 || n > maxBytes {
		return 0, fmt.Errorf("%q is not an amount of memory such as 512m or 4g", text)
	}
	return n, nil
}

// ParseCPUs reads a number of processors such as "1.5".
func ParseCPUs(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= 4096) {
		return 0, fmt.Errorf("%q is not a number of processors such as 1.5", text)
	}
	return n, nil
}

// ParsePids reads a number of processes.
func ParsePids(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is not a number of processes, 1 or more", text)
	}
	return n, nil
}

// tokenShape is how the tokens of well-known servers begin, as far as they could
// be a variable's name.
var tokenShape = regexp.MustCompile(`^(gh[pousr]_|github_pat_|glpat|sk_)`)

// ParseCredentials reads "HOST=NAME HOST=NAME": the variable that holds the
// token for an https git server, by host in lower case, with the port where the
// URL has one.
func ParseCredentials(text string) (map[string]string, error) {
	hosts := map[string]string{}
	for _, pair := range strings.Fields(text) {
		host, name, _ := strings.Cut(pair, "=")
		host = strings.ToLower(host)
		switch {
		case !spec.ValidHost(host):
			return nil, fmt.Errorf("%q is not a host", host)
		case !spec.ValidVariable(name) || strings.HasPrefix(name, spec.EnvPrefix):
			return nil, fmt.Errorf("%s: takes the name of a variable, never a token", host) // it may be one: not shown
		case tokenShape.MatchString(name):
			return nil, fmt.Errorf("%s: takes the name of a variable, and this looks like a token", host)
		case hosts[host] != "":
			return nil, fmt.Errorf("%s is there twice", host)
		}
		hosts[host] = name
	}
	return hosts, nil
}

func fewerRestarts(project, user string) bool {
	p, _ := spec.ParseRestart(project) // both were checked
	u, _ := spec.ParseRestart(user)
	return p.Fewer(u)
}

// lessBytes and lessNumber take an empty user value as "no limit".
func lessBytes(project, user string) bool {
	p, _ := ParseBytes(project)
	u, err := ParseBytes(user)
	return err != nil || p < u
}

func lessNumber(project, user string) bool {
	p, _ := strconv.ParseFloat(project, 64)
	u, err := strconv.ParseFloat(user, 64)
	return err != nil || p < u
}

func lessTime(project, user string) bool {
	p, _ := spec.ParseDuration(project)
	u, err := spec.ParseDuration(user)
	return err != nil || p < u
}

func duration(v string) error {
	_, err := spec.ParseDuration(v)
	return err
}

func oneOf(allowed ...string) func(string) error {
	return func(v string) error {
		if slices.Contains(allowed, v) {
			return nil
		}
		text := fmt.Sprintf("%q is not one of %s", v, strings.Join(allowed, ", "))
		if near := spec.Nearest(v, allowed); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		return fmt.Errorf("%s", text)
	}
}

// plainWord refuses what would be read as an option or as two words.
func plainWord(v string) error {
	if v == "" || strings.HasPrefix(v, "-") || strings.ContainsAny(v, " \t\n\"'$") {
		return fmt.Errorf("%q is not an image reference", v)
	}
	return nil
}

func addressOrNone(v string) error {
	if _, err := netip.ParseAddr(v); err != nil && v != "none" {
		return fmt.Errorf("%q is neither an IP address nor none", v)
	}
	return nil
}

func autoNoneOrPath(v string) error {
	if v == "auto" || v == "none" || filepath.IsAbs(v) && !strings.ContainsAny(v, ",\n") {
		return nil
	}
	return fmt.Errorf("%q is not auto, none or an absolute path without a comma", v)
}

func words[T ~string](list []T) string { return strings.Join(spec.Texts(list), ", ") }
