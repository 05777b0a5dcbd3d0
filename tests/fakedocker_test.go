package tests

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/template"
	"time"

	"gopkg.in/yaml.v3"
)

// fakeDocker stands in for the engine's command line: agent-container finds it
// by an ordinary look-up on PATH. It keeps what it is asked in the directory
// that FAKE_DOCKER names:
//
//	log              every argv, one JSON array a line
//	hang             exists: "version" and "ps" never answer
//	version-error    what "version" says on stderr before it fails
//	containers/NAME  a container, as inspect prints it; made by "compose up"
//	images/ID        an image, as inspect prints it by a format
//	inspect-error    what "container inspect" by a format says before it fails
//	volumes, networks  JSON arrays, as inspect prints them
//	no-image         exists: no agent image is there yet
//	build-fails      exists: a build prints 30 lines and fails
//	status           what the guest's "status wait" says; "ready" when absent
//	look             what the guest's "look" says; an older guest when absent
//	host             where the engine is reached, unix:///var/run/docker.sock when absent
//	create-error     what "create" says before it fails
//	exit             a started container has ended with this code
//	exec-code, logs  how a child of exec ends; what logs prints
//	journal          what logs prints of a gateway
//	check            what the gateway's "check" says before it fails; it succeeds when absent
//	fill.tar, model.yaml  what it was given
//	filled/CONTAINER the files that were copied into it, and are copied out again
//	copies/NAME      what "cp CONTAINER:…/NAME -" copies out instead
type fakeDocker struct{ dir string }

func fakeDockerMain() {
	f := fakeDocker{os.Getenv("FAKE_DOCKER")}
	if err := f.run(os.Args[1:]); err != nil {
		var code exitCode
		if errors.As(err, &code) {
			os.Exit(int(code))
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

type object = map[string]any

func (f fakeDocker) path(parts ...string) string {
	return filepath.Join(append([]string{f.dir}, parts...)...)
}

func (f fakeDocker) has(name string) bool { _, err := os.Stat(f.path(name)); return err == nil }

// text is the content of a file without its last newline, or other.
func (f fakeDocker) text(name, other string) string {
	b, err := os.ReadFile(f.path(name))
	if err != nil {
		return other
	}
	return strings.TrimSuffix(string(b), "\n")
}

func (f fakeDocker) log(argv []string) error {
	out, err := os.OpenFile(f.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	return json.NewEncoder(out).Encode(argv)
}

func (f fakeDocker) run(argv []string) error {
	if err := f.log(argv); err != nil {
		return err
	}
	verb := argv[0]
	if len(argv) > 1 && slices.Contains([]string{"container", "image", "volume", "network", "buildx", "context"}, verb) {
		verb += " " + argv[1]
	}
	last := argv[len(argv)-1]
	switch verb {
	case "version":
		return f.version()
	case "ps":
		return f.ps(argv)
	case "container inspect":
		return f.inspect(argv[2:])
	case "image inspect":
		return f.images(argv[2:])
	case "volume inspect", "network inspect":
		fmt.Println(f.text(argv[0]+"s", "[]"))
	case "compose":
		return f.compose(argv)
	case "start", "stop", "kill":
		return f.setState(verb, last)
	case "rm":
		_ = os.Remove(f.path("containers", last))
	case "cp":
		return f.copy(argv)
	case "exec":
		return f.exec(argv)
	case "logs":
		return f.logs(last)
	case "context inspect":
		fmt.Println(f.text("host", "unix:///var/run/docker.sock"))
	case "create":
		if text := f.text("create-error", ""); text != "" {
			return errors.New(text)
		}
		fmt.Println("made-to-look")
	case "buildx build":
		return f.build()
	case "update", "buildx version", "volume ls", "volume rm", "network ls", "network create", "network rm":
	default:
		return fmt.Errorf("fake docker: %q is not known", argv)
	}
	return nil
}

// logs prints of a gateway that is there its journal.
func (f fakeDocker) logs(name string) error {
	if !strings.HasPrefix(name, "agent-egress-") {
		fmt.Println(f.text("logs", "a line of the agent"))
		return nil
	}
	if !f.has(filepath.Join("containers", name)) {
		return errors.New("Error response from daemon: No such container: " + name)
	}
	if f.has("journal") {
		fmt.Println(f.text("journal", ""))
	}
	return nil
}

func print(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

func (f fakeDocker) version() error {
	if f.has("hang") {
		return hang()
	}
	if text := f.text("version-error", ""); text != "" {
		return errors.New(text)
	}
	return print(object{"Server": object{"Version": f.text("version", "26.1.5"), "Arch": "amd64"}})
}

func hang() error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	return exitCode(1)
}

func (f fakeDocker) ps(argv []string) error {
	if f.has("hang") {
		return hang()
	}
	name := ""
	for _, a := range argv {
		if v, ok := strings.CutPrefix(a, "label=agent-container.name="); ok {
			name = v
		}
	}
	list, _ := os.ReadDir(f.path("containers"))
	for _, d := range list {
		content, err := os.ReadFile(f.path("containers", d.Name()))
		switch {
		case !slices.Contains(argv, "--all") && !bytes.Contains(content, []byte(`"Status":"running"`)):
		case slices.Contains(argv, "--format"):
			fmt.Println(strings.TrimPrefix(d.Name(), "agent-container-"))
		case err == nil && (name == "" || bytes.Contains(content, []byte(`"agent-container.name":"`+name+`"`))):
			fmt.Println(d.Name())
		}
	}
	return nil
}

func (f fakeDocker) images(refs []string) error {
	if refs[0] == "--format" {
		return f.formatted("images", refs[1], refs[2:])
	}
	list, gone := []object{}, []string{}
	for _, ref := range refs {
		if f.has("no-image") && strings.HasPrefix(ref, "localhost/agent-container-") {
			gone = append(gone, "Error: No such image: "+ref)
			continue
		}
		list = append(list, object{"Id": "sha256:0123", "Size": 1000000, "RepoTags": []string{ref}, "Created": "2026-01-02T03:04:05Z"})
	}
	if err := print(list); err != nil || len(gone) == 0 {
		return err
	}
	return errors.New(strings.Join(gone, "\n"))
}

// formatted prints each of names, in a directory of such, by a template.
func (f fakeDocker) formatted(dir, format string, names []string) error {
	t := template.Must(template.New("").Funcs(template.FuncMap{"json": func(v any) (string, error) {
		b, err := json.Marshal(v)
		return string(b), err
	}}).Parse(format + "\n"))
	for _, n := range names {
		var c struct {
			Id, Name, Path, Image string
			Args                  []string
			Config                struct {
				Labels          map[string]string
				Entrypoint, Cmd []string
			}
		}
		b, err := os.ReadFile(f.path(dir, n))
		if err == nil {
			err = json.Unmarshal(b, &c)
		}
		if err != nil {
			return errors.New("Error response from daemon: No such " + strings.TrimSuffix(dir, "s") + ": " + n)
		}
		if err := t.Execute(os.Stdout, c); err != nil {
			return err
		}
	}
	return nil
}

func (f fakeDocker) inspect(names []string) error {
	if names[0] == "--format" {
		if text := f.text("inspect-error", ""); text != "" {
			return errors.New(text)
		}
		return f.formatted("containers", names[1], names[2:])
	}
	found := []json.RawMessage{}
	for _, n := range names {
		if b, err := os.ReadFile(f.path("containers", n)); err == nil {
			found = append(found, b)
		}
	}
	if err := print(found); err != nil {
		return err
	}
	if len(found) < len(names) {
		return errors.New("Error response from daemon: No such container: " + strings.Join(names, " "))
	}
	return nil
}

// compose makes the agent's container, and starts it, as far as is told of it.
func (f fakeDocker) compose(argv []string) error {
	i := slices.Index(argv, "--file")
	if i < 0 {
		return f.setState("start", argv[slices.Index(argv, "--project-name")+1])
	}
	content, err := os.ReadFile(argv[i+1])
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path("model.yaml"), content, 0o600); err != nil {
		return err
	}
	var model struct {
		Services map[string]struct {
			Image  string
			Name   string `yaml:"container_name"`
			Labels map[string]string
			Ports  []struct {
				HostIP            string `yaml:"host_ip"`
				Target, Published string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(string(content), "$$", "$")), &model); err != nil {
		return err
	}
	agent := model.Services["agent"]
	agent.Labels["com.docker.compose.project"] = agent.Name
	if err := os.RemoveAll(f.path("filled", agent.Name, "run/agent-container")); err != nil {
		return err
	}
	ports := object{}
	for _, p := range agent.Ports {
		ports[p.Target+"/tcp"] = []object{{"HostIp": p.HostIP, "HostPort": p.Published}}
	}
	return f.write(agent.Name, object{
		"Id": agent.Name, "Name": "/" + agent.Name, "Image": "sha256:0123", "Created": time.Now().UTC(),
		"State":  object{"Status": "created"},
		"Config": object{"Image": agent.Image, "Labels": agent.Labels}, "HostConfig": object{"PortBindings": ports},
	})
}

func (f fakeDocker) write(name string, container object) error {
	b, err := json.Marshal(container)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.path("containers"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(f.path("containers", name), b, 0o600)
}

func (f fakeDocker) setState(verb, name string) error {
	b, err := os.ReadFile(f.path("containers", name))
	if err != nil {
		return errors.New("Error response from daemon: No such container: " + name)
	}
	var c object
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	state := object{"Status": "running", "StartedAt": time.Now().UTC()}
	switch {
	case verb != "start":
		state = object{"Status": "exited", "ExitCode": 143, "StartedAt": time.Now().UTC(), "FinishedAt": time.Now().UTC()}
	case f.has("exit"):
		var code int
		if _, err := fmt.Sscan(f.text("exit", ""), &code); err != nil {
			return err
		}
		state = object{"Status": "exited", "ExitCode": code, "StartedAt": time.Now().UTC(), "FinishedAt": time.Now().UTC()}
	}
	c["State"] = state
	if verb == "start" && strings.HasPrefix(f.text("status", "ready"), "ready") { // its agent has the task
		undelivered := f.path("filled", name, "run/agent-container-secrets/undelivered-task")
		if _, err := os.Stat(undelivered); err == nil {
			if err := os.Truncate(undelivered, 0); err != nil {
				return err
			}
		}
	}
	return f.write(name, c)
}

func (f fakeDocker) copy(argv []string) error {
	if argv[1] == "-" {
		content, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		container, _, _ := strings.Cut(argv[2], ":")
		return errors.Join(os.WriteFile(f.path("fill.tar"), content, 0o600), f.extract(content, f.path("filled", container)))
	}
	container, inside, _ := strings.Cut(argv[1], ":")
	source := f.path("copies", filepath.Base(inside))
	if _, err := os.Stat(source); err != nil {
		source = f.path("filled", container, inside)
	}
	if _, err := os.Stat(source); err != nil {
		return errors.New("Error response from daemon: Could not find the file " + argv[1])
	}
	t := tar.NewWriter(os.Stdout)
	err := filepath.WalkDir(source, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		name := filepath.Join(filepath.Base(source), strings.TrimPrefix(p, source))
		if err := t.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = t.Write(content)
		return err
	})
	return errors.Join(err, t.Close())
}

// extract keeps the files of a tar below dir, to be copied out again.
func (f fakeDocker) extract(content []byte, dir string) error {
	for t := tar.NewReader(bytes.NewReader(content)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		file := filepath.Join(dir, h.Name)
		b, err := io.ReadAll(t)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, b, 0o600)); err != nil {
			return err
		}
	}
}

func (f fakeDocker) exec(argv []string) error {
	line := strings.Join(argv, " ")
	if strings.HasSuffix(line, "status wait") {
		status := f.text("status", "ready")
		if strings.HasPrefix(status, "starting ") {
			time.Sleep(time.Second) // the guest waits, too
		}
		fmt.Println(status)
		return nil
	}
	if strings.HasSuffix(line, "guest look") {
		if !f.has("look") {
			return errors.New(`agent-container: error: unknown verb "look"`)
		}
		fmt.Println(f.text("look", ""))
		return nil
	}
	if strings.HasSuffix(line, "guest gateway check") {
		if text := f.text("check", ""); text != "" {
			return errors.New(text)
		}
		return nil
	}
	fmt.Println("child:", line[strings.Index(line, "agent-container-guest"):])
	var code int
	if _, err := fmt.Sscan(f.text("exec-code", "0"), &code); err != nil || code != 0 {
		return exitCode(code)
	}
	return nil
}

func (f fakeDocker) build() error {
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "#5 [base 1/2] FROM somewhere")
	if f.has("build-fails") {
		for i := range 30 {
			fmt.Fprintf(os.Stderr, "#6 line %d.\n", i)
		}
		return exitCode(1)
	}
	return os.Remove(f.path("no-image"))
}
