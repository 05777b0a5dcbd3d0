package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-container/agent-container/cli"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"agent-container": func() { os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) },
		"docker":          fakeDockerMain,
	})
}

func TestScripts(t *testing.T) {
	// Every script under scripts/ must pass: what a user types, and what comes back.
	testscript.Run(t, testscript.Params{
		Dir:                 "scripts",
		RequireExplicitExec: true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    exits,
			"envelope": checkEnvelope,
			"nothing":  nothingMade,
			"within":   within,
		},
	})
}

// setup gives a script directories of its own, a fake engine, and a directory
// "alone" for PATH that has agent-container and no engine.
func setup(e *testscript.Env) error {
	dir := func(name string) string { return filepath.Join(e.WorkDir, name) }
	for variable, name := range map[string]string{
		"HOME": "home", "FAKE_DOCKER": "docker",
		"AGENT_CONTAINER_CONFIG_DIR": "config", "AGENT_CONTAINER_STATE_DIR": "state", "AGENT_CONTAINER_DATA_DIR": "data",
	} {
		if err := os.MkdirAll(dir(name), 0o700); err != nil {
			return err
		}
		e.Setenv(variable, dir(name))
	}
	for _, variable := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "DOCKER_CONTEXT"} {
		e.Setenv(variable, "")
	}
	e.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock") // should a real docker be found after all
	e.Setenv("TMUX_TMPDIR", dir("alone"))                  // no tmux server of the user's is asked
	e.Setenv("GORACE", "atexit_sleep_ms=0")                // the race detector makes every program linger for a second
	self, err := exec.LookPath("agent-container")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir("alone"), 0o700); err != nil {
		return err
	}
	e.Values["config"] = files(dir("config"))
	return os.Symlink(self, filepath.Join(dir("alone"), "agent-container"))
}

// files lists what is below dir.
func files(dir string) []string {
	var list []string
	_ = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err == nil && p != dir {
			list = append(list, p)
		}
		return nil
	})
	return list
}

// exits CODE PROGRAM ARGUMENT... runs a program that must end with CODE.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGUMENT...")
	}
	started := time.Now()
	err := ts.Exec(args[1], args[2:]...)
	ts.Setenv("TOOK", time.Since(started).String())
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	ts.Setenv("CODE", strconv.Itoa(code))
	if args[0] != strconv.Itoa(code) {
		ts.Fatalf("exit code %d, want %s\n%s", code, args[0], ts.ReadFile("stderr"))
	}
}

// within DURATION requires that the last "exits" took no longer.
func within(ts *testscript.TestScript, neg bool, args []string) {
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	took, err := time.ParseDuration(ts.Getenv("TOOK"))
	ts.Check(err)
	if neg || took > limit {
		ts.Fatalf("it took %s", took)
	}
}

// envelope [NAME] requires that the last "exits" printed one envelope that
// agrees with the exit code, and with NAME that its error has this code.
func checkEnvelope(ts *testscript.TestScript, neg bool, args []string) {
	var e struct {
		Schema string
		OK     *bool
		Data   json.RawMessage
		Error  *struct{ Code, Message string }
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(ts.ReadFile("stdout"))))
	if err := dec.Decode(&e); err != nil {
		ts.Fatalf("stdout is no JSON: %v", err)
	}
	if err := dec.Decode(new(any)); err != io.EOF {
		ts.Fatalf("stdout has more than one document")
	}
	succeeded := ts.Getenv("CODE") == "0"
	switch {
	case neg || e.Schema != "agent-container/v1" || e.OK == nil:
		ts.Fatalf("no envelope: %s", ts.ReadFile("stdout"))
	case *e.OK != succeeded:
		ts.Fatalf("ok is %t with exit code %s", *e.OK, ts.Getenv("CODE"))
	case succeeded && (e.Error != nil || e.Data == nil), !succeeded && (e.Error == nil || e.Error.Message == ""):
		ts.Fatalf("data and error do not agree with ok: %s", ts.ReadFile("stdout"))
	case len(args) == 1 && (e.Error == nil || e.Error.Code != args[0]):
		ts.Fatalf("error is %+v, want code %s", e.Error, args[0])
	}
}

// creating are the words of an engine's argv that make or change something.
var creating = []string{"up", "create", "start", "stop", "kill", "rm", "build", "buildx", "pull", "run", "import", "cp", "exec"}

// nothing requires that no directory of ours holds anything new and that the
// engine was asked to change nothing.
func nothingMade(ts *testscript.TestScript, neg bool, args []string) {
	config, _ := ts.Value("config").([]string)
	made := slices.Concat(files(ts.MkAbs("state")), files(ts.MkAbs("data")), files(ts.MkAbs("home")))
	for _, f := range files(ts.MkAbs("config")) {
		if !slices.Contains(config, f) {
			made = append(made, f)
		}
	}
	if neg || len(made) > 0 {
		ts.Fatalf("made: %q", made)
	}
	log, _ := os.ReadFile(ts.MkAbs("docker/log"))
	for line := range strings.Lines(string(log)) {
		var argv []string
		ts.Check(json.Unmarshal([]byte(line), &argv))
		for _, word := range argv[:min(2, len(argv))] {
			if slices.Contains(creating, word) {
				ts.Fatalf("the engine was asked to %q", argv)
			}
		}
	}
}
