package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// seen is a row of detect --json.
type seen struct {
	PID                                   int
	Agent, Runtime, Container, Deployment string
}

// hiddenToken stands in the arguments and environments of what detect reads.
const hiddenToken = "hunter2-e2e"

// detect runs detect verbosely, as JSON, and fails the test where it says the token.
func (u *user) detect(args ...string) []seen {
	u.t.Helper()
	r := u.must(append([]string{"-v", "--json", "detect"}, args...)...)
	if contains(r.stdout+r.stderr, hiddenToken) {
		u.t.Fatal("detect has said what it read: " + r.String())
	}
	var e struct{ Data struct{ Agents []seen } }
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil {
		u.t.Fatalf("%v: %s", err, r)
	}
	return e.Data.Agents
}

// byHand is a container that somebody starts or enters.
type byHand struct {
	about, agent string   // agent "" for none
	front        bool     // a docker of somebody's stays in front of it
	contained    bool     // it is the container's own program, which the engine knows
	argv         []string // docker's; NAME, BOX, OURS, IMAGE, WRAPPED, CODEX, STUB, FILE, LABEL, SECRET stand for what the test has made
}

// The ways that people and tests start containers by hand. STUB has claude and codex
// that sleep, BOX is a container that runs nothing, OURS that of an idle deployment,
// WRAPPED an image with a script for its entrypoint, FILE a Compose file with a service
// app, whose entrypoint is env, and a service box, which sleeps.
var waysByHand = []byHand{
	{"run in front", "claude", true, true, words("run -it --rm --name NAME -l LABEL -v STUB:/stub -e TOKEN=SECRET --entrypoint /stub/claude IMAGE -p SECRET")},
	{"run without a terminal, as the benchmark does", "claude", true, true, words("run --rm --name NAME -l LABEL -v STUB:/stub -e TOKEN --entrypoint /stub/claude IMAGE -p")},
	{"run in the background", "claude", false, true, words("run -d --name NAME -l LABEL -v STUB:/stub -e TOKEN=SECRET --entrypoint= IMAGE /stub/claude --resume SECRET")},
	{"a login shell's script", "codex", true, true, words("run -it --name NAME -l LABEL -l agent=claude -v STUB:/claude -e AGENT=claude --entrypoint bash IMAGE -lc",
		"export TOKEN='SECRET'  # claude\nsleep 0.1; exec /claude/codex \"$TOKEN\"")},
	{"a script in the background", "codex", false, true, words("container run -d --init --name NAME -l LABEL -v STUB:/stub --entrypoint sh IMAGE -c", "/stub/codex SECRET")},
	{"a real codex at its prompt", "codex", true, true, words("container run --interactive --tty --network none --name NAME --label LABEL --env TOKEN=SECRET --entrypoint codex CODEX --sandbox danger-full-access")},
	{"behind the image's own entrypoint", "claude", true, true, words("run -t --name NAME -l LABEL -v STUB:/stub WRAPPED /stub/claude SECRET")},
	{"the same in the background", "claude", false, true, words("run -d --name NAME -l LABEL -v STUB:/stub WRAPPED env TOKEN=SECRET /stub/claude")},
	{"exec", "claude", true, false, words("exec -it -w / -e TOKEN=SECRET -e CLAUDE_CONFIG_DIR=/tmp BOX /stub/claude SECRET")},
	{"exec of a real claude, at its prompt", "claude", true, false, words("exec -it -w /workspace -e ANTHROPIC_BASE_URL=http://model:8080 -e ANTHROPIC_API_KEY=sk-test-0123456789abcdef -e CLAUDE_CONFIG_DIR=/home/agent/.claude -e CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 -e TOKEN=SECRET OURS claude")},
	{"exec without a terminal", "codex", true, false, words("exec -w /stub BOX /stub/codex --sandbox danger-full-access")},
	{"container exec of a script", "claude", true, false, words("container exec -ti -u agent BOX bash -lc", "cd /; exec /stub/claude SECRET")},
	{"compose run", "claude", true, true, words("compose -f FILE run --name NAME -e TOKEN=SECRET app /stub/claude SECRET")},
	{"compose run in the background", "codex", false, true, words("compose -f FILE run -d --name NAME -e TOKEN=SECRET app /stub/codex SECRET")},
	{"compose exec", "claude", true, false, words("compose -f FILE exec -e TOKEN=SECRET box /stub/claude SECRET")},

	{"a container of an agent's name", "", true, true, words("run -t --name claude-NAME -h claude -l LABEL -l agent=claude -v STUB:/claude -w /claude -e AGENT=claude --entrypoint sleep IMAGE 600")},
	{"an agent in an argument", "", false, true, words("run -d --name NAME -l LABEL -v STUB:/stub -e TOKEN=SECRET --entrypoint bash IMAGE -c", "/stub/npm install claude-code; sleep 600; echo claude")},
	{"another entrypoint's argument", "", false, true, words("run -d --name NAME -l LABEL -v STUB:/stub --entrypoint /stub/npm IMAGE claude")},
	{"a shell by hand", "", true, false, words("exec -it BOX bash")},
}

// words makes an argv of a line's words and of more.
func words(line string, more ...string) []string { return append(strings.Fields(line), more...) }

// Every agent in a container that somebody starts by hand must be detected: by the
// command line of the docker in front, and by the engine where it is the container's
// own program; nothing else may be, and no argument and no variable be said.
func TestDetectByHand(t *testing.T) {
	u := newUser(t)
	replace := u.byHand()
	type started struct {
		byHand
		name string
		pid  int
	}
	var all []started
	for i, w := range waysByHand {
		s := started{byHand: w, name: u.name + "-" + strconv.Itoa(i)}
		argv := slices.Clone(w.argv)
		for j := range argv {
			argv[j] = strings.NewReplacer(append([]string{"NAME", s.name}, replace...)...).Replace(argv[j])
		}
		if !w.front {
			docker(t, argv...)
		} else {
			s.pid = u.sitAt(100, 30, []string{"TOKEN=" + hiddenToken}, exec.Command("docker", argv...)).cmd.Process.Pid
		}
		all = append(all, s)
	}
	eventually(t, 60*time.Second, func() string {
		rows := u.detect("--all")
		for _, s := range all {
			if problem := s.problem(rows, s.name, s.pid); problem != "" {
				return s.about + ": " + problem
			}
		}
		return ""
	})
	for _, s := range all {
		if !s.front {
			continue
		}
		rows := u.detect("--pid", strconv.Itoa(s.pid))
		if s.agent == "" && len(rows) > 0 || s.agent != "" && !slices.Equal(rows, []seen{{PID: s.pid, Agent: s.agent, Runtime: "docker"}}) {
			t.Errorf("%s: its process is %+v", s.about, rows)
		}
	}
	if r := u.must("detect", "--all"); !contains(r.stdout, u.name+"-2 ") || contains(r.stdout+r.stderr, hiddenToken) {
		t.Errorf("for people it is %s", r)
	}
}

// problem says what is wrong with the rows of w, "" for nothing.
func (w byHand) problem(rows []seen, name string, pid int) string {
	var of []seen
	for _, r := range rows {
		if r.PID != 0 && r.PID == pid || strings.HasSuffix(r.Container, name) {
			of = append(of, r)
		}
	}
	var want []seen
	if w.agent != "" && w.front {
		want = append(want, seen{PID: pid, Agent: w.agent, Runtime: "docker"})
	}
	if w.agent != "" && w.contained {
		want = append(want, seen{Agent: w.agent, Runtime: "docker", Container: name})
	}
	if !slices.Equal(of, want) {
		return fmt.Sprintf("%+v, want %+v", of, want)
	}
	return ""
}

// byHand makes what waysByHand needs, and returns what stands for it.
func (u *user) byHand() (replace []string) {
	t := u.t
	t.Helper()
	label := "agent-container-e2e=" + u.name
	t.Cleanup(func() {
		if ids := docker(t, "ps", "--all", "--quiet", "--filter", "label="+label); ids != "" {
			docker(t, append([]string{"rm", "--force"}, strings.Fields(ids)...)...)
		}
	})
	stub := u.path("stub")
	for name, script := range map[string]string{"claude": "exec sleep 600", "codex": "exec sleep 600", "npm": "exec sleep 600", "entrypoint.sh": `exec "$@"`} {
		if err := os.Chmod(u.write("stub/"+name, "#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(stub, 0o755); err != nil {
		t.Fatal(err)
	}
	image, codex := u.built("--agent", "claude")[0], u.built("--agent", "codex")[0]
	box, wrapped := u.name+"-box", "localhost/"+u.name+":wrapped"
	docker(t, "run", "-d", "--name", box, "--label", label, "--network", "none", "-v", stub+":/stub", "--entrypoint", "sleep", image, "600")
	docker(t, "commit", "--change", `ENTRYPOINT ["/usr/bin/tini","--","/stub/entrypoint.sh"]`, box, wrapped)
	t.Cleanup(func() { docker(t, "rmi", "--force", wrapped) })
	service := "    image: " + image + "\n    pull_policy: never\n    network_mode: none\n    labels: [" + label + "]\n    volumes: [\"" + stub + ":/stub\"]\n    entrypoint: "
	file := u.write("project/claude.yaml", "name: "+u.name+"-claude\nservices:\n  app:\n"+service+"[env]\n  box:\n"+service+"[sleep, \"600\"]\n")
	docker(t, "compose", "-f", file, "up", "-d", "box")
	u.must(append([]string{"up", u.name, "--agent", "claude", "--mode", "idle"}, u.withModel("claude")...)...)
	return []string{"BOX", box, "OURS", u.container(), "IMAGE", image, "CODEX", codex, "WRAPPED", wrapped, "STUB", stub, "FILE", file, "LABEL", label, "SECRET", hiddenToken}
}

// A deployment of ours must be detected while it runs, by its name and what was
// deployed, and not when it has been stopped.
func TestDetectDeployments(t *testing.T) {
	for mode, flags := range map[string][]string{
		"interactive": nil,
		"headless":    {"--task", "t", "--env", "STUB_RUN=sleep 600", "--env", "TOKEN=" + hiddenToken},
	} {
		t.Run(mode, func(t *testing.T) {
			u := newUser(t)
			u.withStub()
			of := func() (of []seen) {
				for _, r := range u.detect("--all") {
					if contains(r.Container, u.name) {
						of = append(of, r)
					}
				}
				return of
			}
			u.must(append([]string{"up", u.name, "--mode", mode}, flags...)...)
			if got := of(); !slices.Equal(got, []seen{{Agent: "claude", Runtime: "docker", Container: u.container(), Deployment: u.name}}) {
				t.Errorf("detect says %+v", got)
			}
			u.must("stop", u.name)
			if got := of(); len(got) > 0 {
				t.Errorf("stopped, detect says %+v", got)
			}
		})
	}
}
