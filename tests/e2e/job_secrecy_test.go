package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// canary is a text that occurs nowhere by accident.
func canary(t *testing.T) string {
	t.Helper()
	random := make([]byte, 12)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	return "canary" + hex.EncodeToString(random)
}

// argvWatch collects the command lines of every process of the machine while
// it runs.
type argvWatch struct {
	stop chan struct{}
	done sync.WaitGroup
	seen map[string][]string // command line → pids
}

func watchArgv() *argvWatch {
	w := &argvWatch{stop: make(chan struct{}), seen: map[string][]string{}}
	w.done.Add(1)
	go func() {
		defer w.done.Done()
		for {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			for _, f := range files {
				pid := filepath.Base(filepath.Dir(f))
				if line, err := os.ReadFile(f); err == nil && len(line) > 0 && !slices.Contains(w.seen[string(line)], pid) {
					w.seen[string(line)] = append(w.seen[string(line)], pid)
				}
			}
			select {
			case <-w.stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return w
}

// end ends the watch and returns the command lines, without those of one
// process: the program's own is what the user typed. A child has it too, until it
// executes another program.
func (w *argvWatch) end(except int) string {
	close(w.stop)
	w.done.Wait()
	var all []string
	for line, pids := range w.seen {
		if !slices.Contains(pids, strconv.Itoa(except)) {
			all = append(all, strings.ReplaceAll(line, "\x00", " "))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// places are texts in which a secret could be, by what they are.
type places map[string]string

// wantNone fails the test for every place that holds one of the secrets.
func (p places) wantNone(t *testing.T, secrets ...string) {
	t.Helper()
	for name, text := range p {
		if text == "" {
			t.Errorf("%s is empty: nothing was looked at", name)
		}
		for _, s := range secrets {
			if i := strings.Index(text, s); i >= 0 {
				t.Errorf("%s holds %s: …%s…", name, s, text[max(0, i-80):min(len(text), i+80)])
			}
		}
	}
}

// deployed runs a job to its start, and returns what could be seen of it from
// outside then and on the way: every command line, what the engine says of
// container and image, and the Compose file. The job goes on until goOn.
func (u *user) deployed(stdin string, env []string, args ...string) places {
	u.t.Helper()
	w := watchArgv()
	r := u.startWith(strings.NewReader(stdin), env, nil, append(args, "-v")...)
	r.said("follow it")
	up := r.wait(time.Minute)
	commands := w.end(r.cmd.Process.Pid)
	if up.code != 0 {
		u.t.Fatal(up)
	}
	if !contains(commands, u.container()) {
		u.t.Errorf("the watch of command lines saw none of ours:\n%s", commands)
	}
	if !contains(up.stderr, "+ docker cp - "+u.container()+":/") {
		u.t.Errorf("-v does not show the fill: %s", up)
	}
	u.waitLog("started")
	image := u.inspect("{{.Image}}")
	compose, err := os.ReadFile(u.path("state", "local", u.name, "compose.yaml"))
	if err != nil {
		u.t.Fatal(err)
	}
	return places{
		"a command line":        commands,
		"what up says":          up.stdout + up.stderr,
		"docker inspect":        docker(u.t, "inspect", u.container()),
		"docker image inspect":  docker(u.t, "image", "inspect", image),
		"docker image history":  docker(u.t, "history", "--no-trunc", image),
		"docker ps":             docker(u.t, "ps", "--all", "--no-trunc", "--format", "{{json .}}"),
		"docker top":            docker(u.t, "top", u.container()),
		"docker volume inspect": docker(u.t, "volume", "inspect", u.container()+"-runs"),
		"the Compose file":      string(compose),
		"list":                  u.must("list", "--json").stdout,
		"--dry-run":             u.must("up", u.name, "--dry-run").stdout,
	}
}

// files are the files below the user's config, state and data directories.
func (u *user) files() places {
	u.t.Helper()
	all := places{}
	for _, dir := range []string{"config", "state", "data"} {
		err := filepath.WalkDir(u.path(dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			rel, _ := filepath.Rel(u.dir, path)
			all[rel] = rel + "\n" + string(content)
			return err
		})
		if err != nil {
			u.t.Fatal(err)
		}
	}
	return all
}

// volumes are the contents of the container's volumes, by where they are.
func (u *user) volumes() places {
	u.t.Helper()
	all := places{}
	for _, path := range strings.Fields(u.inspect("{{range .Mounts}}{{.Destination}} {{end}}")) {
		all["the volume "+path] = string(u.archive(path))
	}
	if len(all) < 8 {
		u.t.Errorf("only %d volumes: %v", len(all), all)
	}
	return all
}

// isRecord says whether a file of files is a run record.
func isRecord(path string) bool {
	return strings.HasPrefix(path, filepath.Join("data", "runs")) && strings.HasSuffix(path, ".json")
}

// No part of a task may be anywhere outside the container but in the run
// record, and with record_task: false not there either.
func TestTaskIsNowhereElse(t *testing.T) {
	for _, recorded := range []bool{true, false} {
		t.Run("record_task="+strconv.FormatBool(recorded), func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			u.write("config/settings.yaml", "record_task: "+strconv.FormatBool(recorded)+"\n")
			first, last := canary(t), canary(t)
			task := first + "\n" + strings.Repeat("more of the task\n", 10000) + last
			seen := u.deployed(task, nil, "up", u.name, "--mode", "headless", "--env", "STUB_RUN="+untilGo, "--task", "-")
			seen.wantNone(t, first, last)
			u.goOn()
			u.waitState("exited")
			record := u.record()
			if record["task_sha256"] != digest(task) || record["task_bytes"] != float64(len(task)) {
				t.Errorf("the record does not say which task it was: %v", record)
			}
			if text, _ := record["task"].(string); text == task != recorded || text != "" && !recorded {
				t.Errorf("record_task: %v, and the record holds a task of %d bytes", recorded, len(text))
			}
			files := u.files()
			if recorded {
				for path, text := range files {
					if isRecord(path) {
						if !contains(text, first) || !contains(text, last) {
							t.Errorf("%s holds no task", path)
						}
						delete(files, path)
					}
				}
			} else {
				files["the volume of the records"] = string(u.archive("/var/lib/agent-container/runs"))
			}
			files["docker logs"] = docker(t, "logs", u.container())
			files.wantNone(t, first, last)
		})
	}
}

// No value of the user's environment may be anywhere outside the container and
// its volume for secrets, or in its output, however it was given.
func TestEnvironmentIsNowhereElse(t *testing.T) {
	u := newUser(t)
	u.withStub()
	exported, typed, filed, elsewhere := canary(t), canary(t), canary(t), canary(t)
	secrets := []string{exported, typed, filed, elsewhere}
	file := u.write("project/secrets.env", "FROM_FILE='"+filed+" $HOME'\n# none\nexport FROM_ELSEWHERE\n")
	seen := u.deployed("a task", []string{"EXPORTED=" + exported, "FROM_ELSEWHERE=" + elsewhere},
		"up", u.name, "--mode", "headless", "--task", "-", "--env", "EXPORTED", "--env", "TYPED="+typed, "--env-file", file,
		"--env", `STUB_RUN=printf '%s\n' "$EXPORTED" "$TYPED" "$FROM_FILE" "$FROM_ELSEWHERE" | sha256sum >$HOME/.claude/got; `+untilGo)
	seen.wantNone(t, secrets...)
	u.goOn()
	u.waitState("exited")
	u.record()
	got, _ := u.file("/home/agent/.claude/got")
	if want := digest(exported + "\n" + typed + "\n" + filed + " $HOME\n" + elsewhere + "\n"); !strings.HasPrefix(got, want) {
		t.Errorf("the agent did not get the values: digest %q, want %s", got, want)
	}
	places{"docker logs": docker(t, "logs", u.container())}.wantNone(t, secrets...)
	u.files().wantNone(t, secrets...)
	volumes := u.volumes()
	delete(volumes, "the volume /run/agent-container-secrets")
	volumes.wantNone(t, secrets...)
	// It is on its own volume, which a redeploy that is killed leaves, and is not
	// left behind by down.
	if filled, _ := u.file("/run/agent-container-secrets/environment"); !contains(filled, exported) {
		t.Error("the environment is not where it is said to be")
	}
	image := u.inspect("{{.Config.Image}}")
	u.must("down", u.name, "--yes")
	docker(t, "create", "--name", u.container(), "--label", "agent-container.name="+u.name, "--volume", u.container()+"-secrets:/run/agent-container-secrets", image, "true")
	if left, ok := u.file("/run/agent-container-secrets/environment"); !ok || strings.Trim(left, "\x00") != "" {
		t.Errorf("down left the environment: %d bytes, there: %t", len(left), ok)
	}
}
