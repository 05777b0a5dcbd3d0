package recognise

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// helpFlag is a flag in the --help of docker, Compose and podman: -x, --name type.
var helpFlag = regexp.MustCompile(`(?m)^ +(?:(-\w), )?(--[\w-]+)(?: (\S.*?))?(?:  .*)?$`)

// tables are the flags that each program's command is read with.
var tables = map[string]flagSet{
	"docker":               dockerGlobal,
	"docker run":           dockerRun,
	"docker exec":          dockerExec,
	"docker compose":       composeGlobal,
	"docker compose run":   composeRun,
	"docker compose exec":  composeExec,
	"podman":               podmanGlobal,
	"podman run":           podmanGlobal.and(podmanRun),
	"podman exec":          podmanGlobal.and(podmanExec),
	"nerdctl":              nerdctlGlobal,
	"nerdctl run":          nerdctlGlobal.and(nerdctlRun),
	"nerdctl exec":         nerdctlGlobal.and(nerdctlExec),
	"nerdctl compose":      nerdctlGlobal.and(nerdctlCompose),
	"nerdctl compose run":  nerdctlGlobal.and(nerdctlCompose).and(nerdctlComposeRun),
	"nerdctl compose exec": nerdctlGlobal.and(nerdctlCompose).and(nerdctlComposeExec),
}

func TestHelp(t *testing.T) {
	// Every flag that an installed runtime shows must be in its table, with a value where it takes one.
	for command, have := range tables {
		t.Run(command, func(t *testing.T) {
			for _, m := range help(t, command) {
				// Compose 2.26 shows its own name for the type of this boolean.
				takes := m[3] != "" && m[2] != "--no-TTY"
				for _, spelling := range []string{m[1], m[2]} {
					fl, known := have[spelling]
					if spelling != "" && (!known || fl.takes != takes || fl.name != m[2]) {
						t.Errorf("%s %s: the table has %+v, help has name %s, value %t", command, spelling, fl, m[2], takes)
					}
				}
			}
		})
	}
}

// help returns the flags that the --help of a command shows: short, long, type.
func help(t *testing.T, command string) [][]string {
	words := strings.Fields(command + " --help")
	out, err := exec.Command(words[0], words[1:]...).Output()
	if err != nil {
		t.Skipf("%s --help: %v", command, err)
	}
	shown := helpFlag.FindAllStringSubmatch(string(out), -1)
	if len(shown) < 5 {
		t.Fatalf("%s --help shows %d flags", command, len(shown))
	}
	return shown
}

// noFlag is what the library says of a flag that the program does not have.
var noFlag = regexp.MustCompile(`unknown (shorthand )?flag`)

func TestHidden(t *testing.T) {
	// A flag of a table that --help does not show must take the next word for its value
	// where the installed runtime's parser does. One that it does not know is another
	// version's.
	for command, have := range tables {
		t.Run(command, func(t *testing.T) {
			hidden := maps.Clone(have)
			for _, m := range help(t, command) {
				delete(hidden, m[1])
				delete(hidden, m[2])
			}
			words := strings.Fields(command)
			if words[0] == "podman" && len(words) > 1 { // its exec would do without a container
				words = append([]string{"podman", "--remote"}, words[1:]...)
			}
			known := 0
			for spelling, fl := range hidden {
				cmd := exec.Command(words[0], append(words[1:], spelling)...)
				cmd.Env = append(os.Environ(), "DOCKER_HOST=unix:///nowhere", "CONTAINER_HOST=unix:///nowhere", "CONTAINERD_ADDRESS=/nowhere")
				out, _ := cmd.CombinedOutput()
				if noFlag.Match(out) {
					continue
				}
				known++
				if takes := strings.Contains(string(out), "flag needs an argument"); takes != fl.takes {
					t.Errorf("%s %s: the table says that it takes a value: %t; the program says: %s", command, spelling, fl.takes, out)
				}
			}
			t.Logf("%d flags are hidden, %d are not this version's", known, len(hidden)-known)
		})
	}
}

func TestTables(t *testing.T) {
	// No table may give a spelling that is not a flag, nor a short one of more than a letter.
	for name, rt := range runtimes {
		for spelling := range all(rt.root) {
			if !regexp.MustCompile(`^(-\w|--[a-z][\w-]+)$`).MatchString(spelling) {
				t.Errorf("%s: %q is no flag", name, spelling)
			}
		}
	}
}

// all returns the flags of c and of the commands below it.
func all(c command) flagSet {
	f := c.flags
	for _, b := range c.below {
		f = f.and(all(b))
	}
	return f
}
