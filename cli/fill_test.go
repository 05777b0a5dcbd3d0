package cli

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-container/agent-container/spec"
)

// filled writes a fill and returns its entries as "TYPE NAME MODE", and the
// content of its files.
func filled(t *testing.T, f fill) (entries []string, content map[string]string) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(f.write(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	content = map[string]string{}
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries, content
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != spec.ContainerUID || h.Gid != spec.ContainerUID {
			t.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
		}
		if h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeReg {
			t.Errorf("%s has type %c", h.Name, h.Typeflag)
		}
		secret := slices.Contains([]string{spec.FillEnvironment, spec.FillUndelivered}, strings.TrimPrefix("/"+h.Name, spec.ContainerSecretsDir+"/"))
		if !secret && !strings.HasPrefix("/"+h.Name, spec.ContainerRunDir+"/") {
			t.Errorf("%s is not below %s: its entry would change what is not ours", h.Name, spec.ContainerRunDir)
		}
		entries = append(entries, fmt.Sprintf("%c %s %o", h.Typeflag, strings.TrimPrefix(h.Name, "run/agent-container/"), h.Mode))
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		content[strings.TrimPrefix(h.Name, "run/agent-container/")] = string(b)
	}
}

func TestFillTar(t *testing.T) {
	// The fill must be files and directories of ours alone, each directory once and before what it holds.
	task := "--version\n$HOME \xff emoji 🦊"
	entries, content := filled(t, fill{
		task: []byte(task), env: environment{"B": "2", "A": "x\ny"}, ca: []byte("pem"),
		job: spec.Job{RecordTask: true, GitName: "Ada", GitEmail: "a@b"},
		config: []configFile{
			{"settings.json", 0o600, []byte("{}")}, {"deep/er/run", 0o700, []byte("#!")}, {"deep/er/two", 0o600, nil},
		},
	})
	want := []string{
		"5  700", "0 job.json 600", "0 run/agent-container-secrets/environment 600", "0 run/agent-container-secrets/undelivered-task 600", "0 task 600", "0 ca.pem 600",
		"5 config/ 700", "0 config/settings.json 600", "5 config/deep/ 700", "5 config/deep/er/ 700", "0 config/deep/er/run 700", "0 config/deep/er/two 600",
	}
	if !slices.Equal(entries, want) {
		t.Errorf("entries are\n%s\nwant\n%s", strings.Join(entries, "\n"), strings.Join(want, "\n"))
	}
	if content["task"] != task || content["run/agent-container-secrets/undelivered-task"] != task+"\x00" || content["run/agent-container-secrets/environment"] != "A=x\ny\x00B=2\x00\x00" || content["ca.pem"] != "pem" || content["config/deep/er/run"] != "#!" {
		t.Errorf("content is %q", content)
	}
	var job spec.Job
	if err := json.Unmarshal([]byte(content["job.json"]), &job); err != nil || !cmp.Equal(job, spec.Job{RecordTask: true, GitName: "Ada", GitEmail: "a@b"}) {
		t.Errorf("job is %q, %v", content["job.json"], err)
	}
}

func TestFillWithoutTask(t *testing.T) {
	// Without a task there must be no task file; an empty task must be one.
	entries, content := filled(t, fill{})
	if want := []string{"5  700", "0 job.json 600", "0 run/agent-container-secrets/environment 600", "0 run/agent-container-secrets/undelivered-task 600"}; !slices.Equal(entries, want) {
		t.Errorf("entries are %q, want %q", entries, want)
	}
	if content["run/agent-container-secrets/undelivered-task"] != "" {
		t.Errorf("what was left of a task before stays: %q", content)
	}
	_, content = filled(t, fill{task: []byte{}})
	if task, ok := content["task"]; !ok || task != "" || content["run/agent-container-secrets/undelivered-task"] != "\x00" {
		t.Errorf("an empty task gives %q", content)
	}
}

func TestBuildProgress(t *testing.T) {
	// Each step of a build must be said once, as it begins; the last 20 lines be kept; nothing else be shown.
	const output = "#1 [internal] load build definition\n#4 [base 1/3] FROM x\n#5 [base 2/3] RUN set -eu\r\n#5 0.4 hello\n#5 [base 2/3] RUN set -eu\n" +
		"#6 [ 3/3] COPY a \x1b[31m\n#7 [agent-x 1/1] RUN y\n\n#8 exporting\n"
	for _, chunk := range []int{1, 7, len(output)} {
		var out bytes.Buffer
		p := newBuildProgress(&out, false)
		for rest := []byte(output); len(rest) > 0; {
			n := min(chunk, len(rest))
			if written, err := p.Write(rest[:n]); written != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", written, n, err)
			}
			rest = rest[n:]
		}
		p.finish()
		want := "agent-container: build: [base 1/3] FROM x\nagent-container: build: [base 2/3] RUN set -eu\n" +
			"agent-container: build: [ 3/3] COPY a  [31m\nagent-container: build: [agent-x 1/1] RUN y\n"
		if out.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", chunk, out.String(), want)
		}
	}
	var out bytes.Buffer
	p := newBuildProgress(&out, true)
	for i := range 30 {
		fmt.Fprintf(p, "#6 line %d\n", i)
	}
	fmt.Fprint(p, "the last word")
	p.finish()
	if got := p.last(); len(got) != keptLines || got[0] != "#6 line 11" || got[keptLines-1] != "the last word" {
		t.Errorf("kept %q", got)
	}
	if out.Len() > 0 {
		t.Errorf("without a step it drew %q", out.String())
	}
	fmt.Fprint(p, "#4 [base 1/3] FROM x\n")
	p.finish()
	if got := out.String(); !strings.HasPrefix(got, "\r\x1b[K") || !strings.HasSuffix(got, "\r\x1b[K") || strings.Contains(got, "\n") {
		t.Errorf("on a terminal it drew %q", got)
	}
}
