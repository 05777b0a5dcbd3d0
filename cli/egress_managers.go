package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/agent-container/agent-container/process"
	"github.com/agent-container/agent-container/spec"
)

// managerTime bounds the question to one package manager.
const managerTime = 20 * time.Second

// manager is how a package manager is asked where it gets packages.
type manager struct {
	programs []string // the first that is installed is asked
	args     []string
	read     func(out []byte) (urls []string, whole bool, err error) // not whole: what it has built in counts too
	builtIn  []string                                                // argv that prints that
	env      []string                                                // variables that say it where it is not installed
}

// pipBuiltIn prints pip's default index, and where that keeps its files (pip 10 and
// later).
const pipBuiltIn = "from pip._internal.models.index import PyPI; print(PyPI.simple_url, 'https://' + PyPI.file_storage_domain)"

// managers has a row for each of spec.PackageManagers. None has a host of ours:
// what a tool does without a configuration, it says itself.
var managers = map[string]manager{
	"npm": {programs: []string{"npm"}, args: []string{"config", "list", "--json"}, read: npmRegistries, env: []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"}},
	"go":  {programs: []string{"go"}, args: []string{"env", "GOPROXY", "GOSUMDB"}, read: goProxies, env: []string{"GOPROXY"}},
	"pip": {programs: []string{"pip", "pip3"}, args: []string{"config", "list"}, read: pipIndexes,
		builtIn: []string{"python3", "-c", pipBuiltIn}, env: []string{"PIP_INDEX_URL"}},
}

// readManagers puts into e the hosts of package managers that it permits and that
// it does not hold yet.
func (a *app) readManagers(ctx context.Context, e *spec.Egress) error {
	for _, name := range spec.PackageManagers {
		if _, known := e.Managers[name]; known || !slices.Contains(e.Allow, "provider:"+name) {
			continue
		}
		urls, from, err := a.askManager(ctx, name)
		if err != nil {
			return err
		}
		hosts := []string{}
		for _, u := range urls {
			at, ok := hostOf(u)
			switch {
			case !ok:
				continue
			case at.address.IsValid():
				a.say("NOTE: %s gets packages from %s, which is an address: add --egress-allow %s", name, at, at.entry())
				continue
			}
			hosts = append(hosts, at.String())
		}
		slices.Sort(hosts)
		hosts = slices.Compact(hosts)
		if e.Managers == nil {
			e.Managers = map[string][]string{}
		}
		e.Managers[name] = hosts
		said := strings.Join(hosts, ", ")
		if said == "" {
			said = "no host"
		}
		a.say("provider:%s is %s (%s); a host of your own network needs private:HOST as well", name, said, from)
	}
	return nil
}

// askManager asks a package manager, in the root directory: no project's
// configuration counts.
func (a *app) askManager(ctx context.Context, name string) (urls []string, from string, err error) {
	m := managers[name]
	ctx, cancel := context.WithTimeout(ctx, managerTime)
	defer cancel()
	for _, program := range m.programs {
		out, err := a.runner.Output(ctx, process.Command{Argv: append([]string{program}, m.args...), Dir: "/"})
		if errors.Is(err, process.ErrNotFound) {
			continue
		}
		whole := true
		if err == nil {
			urls, whole, err = m.read(out)
		}
		if err == nil && !whole {
			out, err = a.runner.Output(ctx, process.Command{Argv: m.builtIn, Dir: "/"})
			urls = append(urls, strings.Fields(string(out))...)
		}
		if err != nil {
			return nil, "", refuse("name its host instead: --egress-allow HOST", "provider:%s: where %s gets packages is not known: %v", name, program, err)
		}
		return urls, "as " + program + " is configured here", nil
	}
	for _, variable := range m.env {
		if value := a.env(variable); value != "" {
			return strings.FieldsFunc(value, betweenURLs), variable, nil
		}
	}
	return nil, "", refuse("name its host instead: --egress-allow HOST; or set "+m.env[0], "provider:%s takes its hosts from %s's own configuration, and %s is not installed here", name, name, name)
}

// betweenURLs reports whether r stands between the URLs of a list.
func betweenURLs(r rune) bool { return r == ',' || r == '|' || unicode.IsSpace(r) }

// npmRegistries reads "npm config list --json": the registry, and those of scopes.
func npmRegistries(out []byte) ([]string, bool, error) {
	var config map[string]any
	if err := json.Unmarshal(out, &config); err != nil {
		return nil, true, errors.New("its answer is not JSON")
	}
	var urls []string
	for key, value := range config {
		text, ok := value.(string)
		if ok && (key == "registry" || strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry")) {
			urls = append(urls, text)
		}
	}
	slices.Sort(urls)
	return urls, true, nil
}

// goProxies reads "go env GOPROXY GOSUMDB". What stands for no proxy has no host
// that could be known.
func goProxies(out []byte) ([]string, bool, error) {
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != 2 {
		return nil, true, errors.New("its answer has not two lines")
	}
	urls := strings.FieldsFunc(lines[0], betweenURLs)
	switch sum := strings.Fields(lines[1]); {
	case len(sum) == 0 || sum[0] == "off":
	case len(sum) > 1:
		urls = append(urls, sum[1])
	default:
		name, _, _ := strings.Cut(sum[0], "+")
		urls = append(urls, "https://"+name)
	}
	return urls, true, nil
}

// pipIndexes reads "pip config list": KEY='VALUE' lines. Without an index-url among
// them pip's own default counts.
func pipIndexes(out []byte) (urls []string, main bool, err error) {
	for line := range bytes.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), "=")
		option := key[strings.LastIndex(key, ".")+1:]
		if option == "index-url" || option == "extra-index-url" {
			main = main || option == "index-url"
			urls = append(urls, strings.Fields(strings.ReplaceAll(strings.Trim(value, `'"`), `\n`, " "))...)
		}
	}
	return urls, main, nil
}

// hostPort is where something has to be reached.
type hostPort struct {
	name    string // canonical; empty with address
	address netip.Addr
	port    int
}

// hostOf is where an http or https URL leads. Whoever's name or password stands in
// it is left out.
func hostOf(text string) (hostPort, bool) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return hostPort{}, false
	}
	return reach(u.Hostname(), u.Port(), map[string]int{"https": 443, "http": 80}[u.Scheme])
}
