package recognise

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// parsed are words behind run and exec that are easily read wrong. The installed
// docker and podman are asked what they make of each. -i and -t together would need a
// terminal, and an option of which the value is refused says nothing.
var parsed = []string{
	"run img claude", "run img codex claude", "run claude codex", "run claude", "run -- img claude", "run img -- claude",
	"run -t img claude", "run -t=true img claude", "run -t=false img claude", "run -i=1 img claude", "run -tP --rm img claude",
	"run -tP=false img claude", "run -t=1P img claude", "run --tty=T img claude", "run --tty=yes img claude",
	"run --rm false claude", "run --rm=false img claude", "run --rm= img claude", "run --rm=maybe img claude", "run -t false claude",
	"run -e A=B img claude", "run -eA=B img claude", "run -e=A=B img claude", "run --env=A=B=C img claude", "run -e A=claude img codex",
	"run -l claude img", "run -lclaude img codex", "run -l=claude img codex",
	"run --name= img claude", "run --name claude img codex", "run --nam claude img codex", "run -name claude img codex", "run --=x img claude",
	"run -tv /a:/b img claude", "run -tv/a:/b img claude", "run -tv=/a:/b img claude", "run -tvP /a:/b img claude", "run -tu root img claude",
	"run -turoot img claude", "run -tu=root img claude", "run -u= img claude", "run -u img claude", "run -tu", "run --user", "run -t -", "run --",
	"run -w /claude img codex", "run -w/claude img codex", "run -w=/claude img codex", "run -h claude img codex", "run -hclaude img codex",
	"run --entrypoint claude img", "run --entrypoint=claude img codex", "run --entrypoint= img claude", "run --entrypoint bash img -c claude",
	"run --entrypoint /usr/bin/claude img -p x", "run --entrypoint x --entrypoint claude img", "run --entrypoint claude --entrypoint= img codex",
	"run --init img claude", "run --init claude codex", "run --pull never img claude", "run --pull=never img claude", "run --read-only img claude",
	"run --privileged true claude", "run --sig-proxy=false img claude", "run --sig-proxy false claude", "run --no-such img claude", "run -Z img claude",
	"run img - claude", "run img --rm claude", "run img bash -c claude", "run img sh -lc claude", "run --rm img env A=B claude",
	"run -a stdout -a stderr img claude", "run -p 80:80 -l a=claude img codex", "run --add-host claude:127.0.0.1 img codex",
	"run --cap-add=ALL --security-opt label=disable img claude", "run --userns host img claude", "run --tmpfs /claude img codex",
	"run --net none img claude", "run --dns-opt x img claude", "run --oom-kill-disable img claude", "run --log-driver none img claude",
	"run --restart no img claude", "run --platform linux/amd64 img claude", "run --cgroupns host img claude", "run --mount type=tmpfs,dst=/claude img codex",
	"container run -t img claude", "container run claude codex", "container -t run img claude", "container run --help img claude", "--no-such run img claude",
	"exec box claude", "exec claude codex", "exec -t box claude", "exec -t=true box claude", "exec -u root box claude", "exec -tu root box claude",
	"exec -turoot box claude", "exec -e A=claude box codex", "exec -w /claude box codex", "exec -- box claude", "exec box -- claude",
	"exec -v box claude", "exec -h box claude", "exec --privileged box claude", "exec --privileged false claude", "exec --tty=false box claude",
	"exec box sh -c claude", "exec --detach-keys ctrl-a box claude", "exec box -t claude", "container exec box claude", "container exec -t claude codex",
}

// podmanParsed are such words of podman alone.
var podmanParsed = []string{
	"run --tls-verify img claude", "run --tls-verify false claude", "run --tls-verify=false img claude", "run --systemd always img claude",
	"run --systemd=false img claude", "run --rmi img claude", "run --replace=false --name claude img codex", "run --http-proxy=false img claude",
	"run --tz local img claude", "run --umask 0022 img claude", "run --sdnotify ignore img claude", "run --pod claude img codex",
	`run --entrypoint ["env","claude"] img`, `run --entrypoint ["claude"] img codex`, `run --entrypoint [claude img codex`,
	"run -c 512 img claude", "run --log-level error img claude", "--log-level error run img claude", "run --unsetenv claude img codex",
	"run --read-only-tmpfs=false img claude", "run --secret claude img codex", "exec --preserve-fds 0 box claude", "exec --log-level=error box claude",
}

// composeParsed are such words behind docker compose, whose project has the services
// img, box, claude and false. ~ is a blank within a word.
var composeParsed = []string{
	"run -T img claude", "run -T claude codex", "run -T claude", "run -T -- img claude", "run -T img -- claude", "run -T=true img claude",
	"run --no-TTY img claude", "run -T --rm false claude", "run -T --rm=false img claude", "run -Tv /a:/b img claude", "run -Tv/a:/b img claude",
	"run -Tu root img claude", "run -TP img claude", "run -T -e A=B img claude", "run -T -eA=claude img codex", "run -T --name claude img codex",
	"run -T --entrypoint claude img", "run -T --entrypoint=claude img codex", "run -T --entrypoint bash img -c claude",
	"run -T --entrypoint nice~claude img", "run -T --entrypoint nice~-n~5 img claude", "run -T --entrypoint= img claude",
	"run -T -p 80:80 img claude", "run -T -l a=claude img codex", "run -T -w /claude img codex", "run -T --no-deps --use-aliases img claude",
	"run -T --nam x img claude", "run -T -i=false img claude", "run -T img sh -c claude", "run -T img --rm claude", "run -T --dry-run img claude",
	"exec -T box claude", "exec -T claude codex", "exec -T -- box claude", "exec -T box -- claude", "exec -T=true box claude", "exec -Tu root box claude",
	"exec -T --index 1 box claude", "exec -T --index=1 box claude", "exec -T -e A=claude box codex", "exec -T -w /claude box codex",
	"exec -T --privileged false codex", "exec -T box sh -c claude", "exec -T --no-such box claude", "--no-such exec -T box claude",
	"-p proj exec -T box claude", "-pproj exec -T claude codex", "-f compose.yaml exec -T box claude", "--file=compose.yaml exec -T box claude",
	"--profile claude exec -T box codex", "--ansi never exec -T box claude", "--parallel 1 exec -T box claude", "--env-file empty exec -T box claude",
	"--project-directory . exec -T box claude", "--progress plain exec -T box claude", "--compatibility exec -T box claude",
	"--compatibility false exec -T box claude", "--dry-run exec -T box claude", "-- exec -T box claude",
}

func TestAgainstDocker(t *testing.T) {
	// What docker sends to its engine must be what is recognised in its command line.
	against(t, parsed, "docker")
}

func TestAgainstCompose(t *testing.T) {
	// What Compose sends to its engine must be what is recognised in its command line.
	against(t, composeParsed, "docker", "compose")
}

func TestAgainstPodman(t *testing.T) {
	// What podman sends to its service must be what is recognised in its command line.
	against(t, append(podmanParsed, parsed...), "podman", "--remote")
}

// against gives each of lines to a program with an engine that starts nothing.
func against(t *testing.T, lines []string, program ...string) {
	e := newFakeEngine(t)
	if out, err := e.command(t, append(program, "--help")).CombinedOutput(); err != nil {
		t.Skipf("no %s to compare with: %v: %s", strings.Join(program, " "), err, out)
	}
	asked := 0
	for _, line := range lines {
		argv := append(slices.Clone(program), strings.Fields(line)...)
		for i := range argv {
			argv[i] = strings.ReplaceAll(argv[i], "~", " ")
		}
		sent := e.sentBy(t, argv)
		want := ""
		if sent != nil {
			asked++
			want = reader{}.program(sent)
		}
		if got, _, _ := Recognise(argv); got != want {
			t.Errorf("%s is recognised as %q; the program starts %q, which is %q", strings.Join(argv, " "), got, sent, want)
		}
	}
	if asked < len(lines)/2 {
		t.Errorf("%s started only %d of %d", program[0], asked, len(lines))
	}
}

// fakeEngine answers docker and podman like one that has every image and container, and
// refuses to start any.
type fakeEngine struct {
	dir  string
	env  []string
	mu   sync.Mutex
	sent []string
}

func newFakeEngine(t *testing.T) *fakeEngine {
	dir, err := os.MkdirTemp("", "engine") // t.TempDir can be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	const service = "{image: i, network_mode: none}"
	project := "services: {img: " + service + ", box: " + service + ", claude: " + service + ", 'false': " + service + "}"
	for file, text := range map[string]string{"compose.yaml": project, "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := &fakeEngine{dir: dir, env: append(os.Environ(), "HOME="+dir, "DOCKER_CONFIG=", "DOCKER_CONTEXT=", "DOCKER_HOST=unix://"+socket, "CONTAINER_HOST=unix://"+socket,
		"COMPOSE_PROJECT_NAME=proj", "COMPOSE_FILE=compose.yaml")}
	server := &http.Server{Handler: e}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	return e
}

// sentBy returns the program and arguments with which argv asks for a process, nil if
// it does not.
func (e *fakeEngine) sentBy(t *testing.T, argv []string) []string {
	e.mu.Lock()
	e.sent = nil
	e.mu.Unlock()
	e.command(t, argv).Run() // fails, but for --help
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sent
}

// command runs argv with e for its engine, and without what a user has configured.
func (e *fakeEngine) command(t *testing.T, argv []string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Dir, cmd.Env = e.dir, e.env
	return cmd
}

func (e *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Api-Version", "1.41")
	w.Header().Set("Libpod-Api-Version", "4.3.1")
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/containers/create"), strings.HasSuffix(path, "/exec"):
		var asked struct { // of podman's run: command; of the others: Cmd
			Entrypoint, Cmd, Command []string
		}
		if err := json.Unmarshal(body, &asked); err != nil {
			asked.Cmd = []string{"unreadable: " + string(body)}
		}
		e.mu.Lock()
		e.sent = slices.Concat(asked.Entrypoint, asked.Cmd, asked.Command)
		if len(e.sent) > 0 && e.sent[0] == "" { // resets the image's
			e.sent = e.sent[1:]
		}
		e.mu.Unlock()
		http.Error(w, `{"message":"not started"}`, http.StatusTeapot)
	case strings.HasSuffix(path, "/_ping"):
		io.WriteString(w, "OK")
	case strings.HasSuffix(path, "/exists"):
		w.WriteHeader(http.StatusNoContent)
	case strings.HasSuffix(path, "/containers/json"):
		io.WriteString(w, `[{"Id":"box","Names":["/box"],"State":"running","Labels":{"com.docker.compose.project":"proj",
			"com.docker.compose.service":"box","com.docker.compose.container-number":"1","com.docker.compose.oneoff":"False"}}]`)
	case strings.HasSuffix(path, "/images/pull"):
		io.WriteString(w, `{"images":["img"],"id":"img"}`)
	default:
		io.WriteString(w, `{"Id":"img","Config":{}}`)
	}
}
