package recognise

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// helpFlag is a flag in the --help of docker, Compose and podman: -x, --name type.
var helpFlag = regexp.MustCompile(`(?m)^ +(?:(-\w), )?(--[\w-]+)(?: (\S.*?))?(?:  .*)?$`)

func TestHelp(t *testing.T) {
	// Every flag that an installed runtime shows must be in its table, with a value where it takes one.
	for command, have := range map[string]flagSet{
		"docker":              dockerGlobal,
		"docker run":          dockerRun,
		"docker exec":         dockerExec,
		"docker compose":      composeGlobal,
		"docker compose run":  composeRun,
		"docker compose exec": composeExec,
		"podman":              podmanGlobal,
		"podman run":          podmanRun,
		"podman exec":         podmanExec,
	} {
		t.Run(command, func(t *testing.T) {
			words := strings.Fields(command + " --help")
			out, err := exec.Command(words[0], words[1:]...).Output()
			if err != nil {
				t.Skipf("%s --help: %v", command, err)
			}
			shown := helpFlag.FindAllStringSubmatch(string(out), -1)
			if len(shown) < 5 {
				t.Fatalf("%s --help shows %d flags", command, len(shown))
			}
			for _, m := range shown {
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
