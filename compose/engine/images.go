package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/process"
)

// Image is what inspect says of an image.
type Image struct {
	ID       string `json:"Id"`
	RepoTags []string
	Created  time.Time
	Size     int64
	Config   struct{ Labels map[string]string }
}

// Built returns when an image of ours was built, and when any other was made.
func (i *Image) Built() time.Time {
	if at, err := time.Parse(time.RFC3339, i.Config.Labels[compose.LabelBuilt]); err == nil {
		return at
	}
	return i.Created.UTC()
}

// FindImage returns the image called ref as far as it is on the engine, or nil.
// No registry is asked.
func (e *Engine) FindImage(ctx context.Context, ref string) (*Image, error) {
	list, err := e.FindImages(ctx, ref)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// FindImages returns those of refs that are on the engine, in their order, by
// one call.
func (e *Engine) FindImages(ctx context.Context, refs ...string) ([]Image, error) {
	out, err := e.docker(ctx, append([]string{"image", "inspect"}, refs...)...)
	if err != nil && !missing(err) {
		return nil, fmt.Errorf("inspect image %s: %w", refs[0], err)
	}
	var list []Image
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("inspect image %s: unreadable answer of the engine", refs[0])
	}
	return list, nil
}

// Pull asks the registry for ref.
func (e *Engine) Pull(ctx context.Context, ref string) error {
	_, err := e.docker(ctx, "pull", "--quiet", ref)
	return err
}

// Build is one image build.
type Build struct {
	Tag     string
	Args    map[string]string
	Labels  map[string]string
	CA      string                // path of a CA bundle for the build's own downloads, or empty
	Anew    []string              // stages built without the cache; "all" means every stage
	Context func(io.Writer) error // writes the tar of the build context
	Log     io.Writer             // gets every line of the builder's output
}

// Build builds an image. The former image of that name stays in use until the
// build has succeeded.
func (e *Engine) Build(ctx context.Context, b Build) error {
	argv := []string{e.Runtime, "buildx", "build",
		"--load",              // into the engine's store, whatever the builder
		"--progress", "plain", // lines, which can be kept and cut
		"--provenance", "false", // an attestation would make the tag an index, which old engines cannot run
		"--tag", b.Tag,
	}
	for _, k := range sortedKeys(b.Args) {
		argv = append(argv, "--build-arg", k+"="+b.Args[k])
	}
	for _, k := range sortedKeys(b.Labels) {
		argv = append(argv, "--label", k+"="+b.Labels[k])
	}
	if b.CA != "" {
		argv = append(argv, "--secret", "id=ca,src="+b.CA) // mounted for a step, in no layer
	}
	for _, stage := range b.Anew {
		if stage == "all" {
			argv = append(argv, "--no-cache")
			continue
		}
		argv = append(argv, "--no-cache-filter", stage)
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(b.Context(w)) }()
	err := e.run.Run(ctx, process.Command{Argv: append(argv, "-"), Stdin: r, Stdout: b.Log, Stderr: b.Log, Apart: true})
	r.CloseWithError(io.ErrClosedPipe)
	return err
}

// Import makes an image called name of the files that write writes as a tar:
// nothing is built, and no registry is asked.
func (e *Engine) Import(ctx context.Context, name string, labels map[string]string, write func(io.Writer) error) error {
	argv := []string{e.Runtime, "import", "--platform", "linux/" + e.Arch} // else the client's
	for _, k := range sortedKeys(labels) {
		argv = append(argv, "--change", "LABEL "+k+"="+strconv.Quote(labels[k]))
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	_, err := e.command(ctx, process.Command{Argv: append(argv, "-", name), Stdin: r})
	r.CloseWithError(io.ErrClosedPipe)
	return err
}

// CheckBuilder returns an *UnreachableError when the engine or its build plugin
// is not there.
func (e *Engine) CheckBuilder(ctx context.Context) error {
	if _, err := e.docker(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return err
	}
	if _, err := e.docker(ctx, "buildx", "version"); err != nil {
		return missingPlugin("buildx")
	}
	return nil
}

// BootstrapBase makes a Debian base image on this machine, for where no
// registry answers. It needs root and debootstrap, and says so when they are
// missing.
func (e *Engine) BootstrapBase(ctx context.Context, log io.Writer) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("making the base image %s takes root", compose.BootstrapImage)
	}
	// Not the user's state directory, whose path may have a space, and not /tmp,
	// which may be mounted without programs or devices: debootstrap minds both.
	root, err := os.MkdirTemp("/var/tmp", "agent-container-base-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	tree := filepath.Join(root, "tree")
	argv := []string{"debootstrap", "--variant=minbase", "trixie", tree}
	if err := e.run.Run(ctx, process.Command{Argv: argv, Stdout: log, Stderr: log, Apart: true}); err != nil {
		return fmt.Errorf("making the base image %s: %w", compose.BootstrapImage, err)
	}
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := e.run.Run(ctx, process.Command{
			Argv: []string{"tar", "--create", "--directory", tree, "--numeric-owner",
				// Only bulk; no layer above could take it out of the images again.
				"--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*", "--exclude=./usr/share/man/*",
				"--exclude=./usr/share/locale/*", "--exclude=./usr/share/info/*", "--exclude=./usr/share/doc/*/changelog*",
				"--exclude=./proc/*", "--exclude=./sys/*", "."},
			Stdout: w,
		})
		w.CloseWithError(err)
		packed <- err
	}()
	_, err = e.command(ctx, process.Command{Argv: []string{e.Runtime, "import", "-", compose.BootstrapImage}, Stdin: r})
	r.CloseWithError(io.ErrClosedPipe)
	if packErr := <-packed; err == nil {
		err = packErr
	}
	return err
}
