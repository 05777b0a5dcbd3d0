package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/agent-container/agent-container/recognise"
)

func detectCommand() command {
	return command{
		name: "detect", group: groupLook, args: "[-- CMD...]",
		usage: "say which agents run in containers, by the command lines of docker, podman, nerdctl, container and sbx",
		detail: "Reads one process, all processes that may be read, or the command line after --, which is not run.\n" +
			"Arguments can hold credentials: of them only the agent's and the runtime's name are printed.",
		flags: []ucli.Flag{
			&ucli.IntFlag{Name: "pid", Usage: "read the process `PID`"},
			&ucli.BoolFlag{Name: "all", Usage: "read every process"},
		},
		max: -1, child: true, run: (*app).detect,
	}
}

// detectAnswer is every agent that was recognised.
type detectAnswer struct {
	Agents []detected `json:"agents"`
}

// detected is an agent in a container. Nothing else of a command line may be kept.
type detected struct {
	PID     int    `json:"pid,omitempty"` // of the runtime's program; none for a command line that was given
	Agent   string `json:"agent"`
	Runtime string `json:"runtime"`
}

func (d detectAnswer) text(w io.Writer) {
	if len(d.Agents) == 0 {
		return
	}
	rows := make([][]string, len(d.Agents))
	for i, f := range d.Agents {
		rows[i] = []string{"", f.Agent, f.Runtime}
		if f.PID != 0 {
			rows[i][0] = strconv.Itoa(f.PID)
		}
	}
	table(w, []string{"PID", "AGENT", "RUNTIME"}, rows)
}

func (a *app) detect(_ context.Context, c *ucli.Context) (any, error) {
	argv := c.Args().Slice()
	asked := 0
	for _, given := range []bool{c.IsSet("pid"), c.Bool("all"), len(argv) > 0} {
		if given {
			asked++
		}
	}
	if asked != 1 {
		return nil, refuse("run: agent-container detect --all", "detect needs one of --pid PID, --all and -- CMD...")
	}
	answer := detectAnswer{Agents: []detected{}}
	var err error
	switch {
	case len(argv) > 0:
		answer.add(0, argv)
	case runtime.GOOS != "linux":
		err = refuse("give the command line itself: agent-container detect -- CMD...", "the arguments of a process can be read on Linux only")
	case c.Bool("all"):
		err = answer.everyProcess()
	default:
		err = answer.process(c.Int("pid"))
	}
	if err != nil {
		return nil, err
	}
	if len(answer.Agents) == 0 {
		a.say("no agent in a container was recognised")
	}
	return answer, nil
}

func (d *detectAnswer) add(pid int, argv []string) {
	if agent, runtime, ok := recognise.Recognise(argv); ok {
		d.Agents = append(d.Agents, detected{pid, agent, runtime})
	}
}

// process reads the process pid. Its errors name the process and the cause.
func (d *detectAnswer) process(pid int) error {
	argv, err := arguments(pid)
	if err != nil {
		return fail(exitFailed, "run: agent-container detect --all", "cannot read the arguments of process %d: %w", pid, cause(err))
	}
	d.add(pid, argv)
	return nil
}

// everyProcess reads all processes but those that end meanwhile and those that the
// system hides.
func (d *detectAnswer) everyProcess() error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fail(exitFailed, "give the command line itself: agent-container detect -- CMD...", "cannot list the processes: %w", err)
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		if argv, err := arguments(pid); err == nil {
			d.add(pid, argv)
		}
	}
	return nil
}

// arguments returns the arguments of a process exactly as it was given them; none
// for one of the kernel, or one that has ended and not been waited for.
func arguments(pid int) ([]string, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || len(b) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00"), nil
}

// cause is what a read of /proc failed with, without the path.
func cause(err error) error {
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such process")
	case errors.As(err, &path):
		return path.Err
	}
	return err
}
