package engine

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/agent-container/agent-container/compose"
)

// Host returns the address at which the command line reaches the engine, such as
// unix:///var/run/docker.sock. The engine itself is not asked.
func (e *Engine) Host(ctx context.Context) (string, error) {
	// Without a name it is the context in use, in which DOCKER_HOST counts.
	out, err := e.docker(ctx, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
	return strings.TrimSpace(string(out)), err
}

// unseenWords are how the engine says that it has no such directory to mount.
var unseenWords = regexp.MustCompile(`bind source path does not exist: (.*)`)

// Unseen returns the first of dirs, directories of this host, that the engine
// does not see, or "". It has a container made that is never started, and
// removed; should that fail, it is one of the deployment's and goes with it.
func (e *Engine) Unseen(ctx context.Context, deployment, image string, dirs []string) (string, error) {
	args := []string{"create", "--label", compose.LabelName + "=" + deployment, "--network", "none"}
	for i, dir := range dirs {
		mount, err := csvLine("type=bind", "source="+dir, fmt.Sprintf("target=/mnt/%d", i), "readonly")
		if err != nil {
			return "", err
		}
		args = append(args, "--mount", mount)
	}
	out, err := e.docker(ctx, append(args, image)...)
	if m := unseenWords.FindStringSubmatch(stderrOf(err)); m != nil {
		return strings.TrimSpace(m[1]), nil
	}
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return "", e.Remove(ctx, strings.TrimSpace(string(out)))
}

// csvLine writes fields as --mount reads them: a path may hold commas and quotes.
func csvLine(fields ...string) (string, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.Write(fields); err != nil {
		return "", err
	}
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n"), w.Error()
}
