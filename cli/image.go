package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agent-container/agent-container/compose"
	"github.com/agent-container/agent-container/compose/engine"
	"github.com/agent-container/agent-container/images"
	"github.com/agent-container/agent-container/settings"
	"github.com/agent-container/agent-container/spec"
)

// imageWish is an image that must exist.
type imageWish struct {
	agent    spec.Agent
	base     string // the base_image setting
	caBundle string // "none" or a path
	refresh  bool   // renew the base
	rebuild  bool   // build although it is there
	// anew lists the stages that take nothing from the cache: all of them when
	// it holds "all".
	anew []string
}

// imageSource is where image files come from: this binary, or the checkout that
// AGENT_CONTAINER_REPO names.
func (a *app) imageSource() (images.Source, error) {
	dir := a.env("AGENT_CONTAINER_REPO")
	if dir == "" {
		return images.Embedded(), nil
	}
	s, err := images.FromDirectory(dir)
	if err != nil {
		return s, refuse("name a checkout of agent-container, or unset it", "AGENT_CONTAINER_REPO: %v", err)
	}
	return s, nil
}

// ensureImage returns the name of the image that w describes, building it
// unless it is there. An image that is there costs no build and no registry.
func (a *app) ensureImage(ctx context.Context, e *engine.Engine, w imageWish) (string, error) {
	source, err := a.imageSource()
	if err != nil {
		return "", err
	}
	base, err := a.ensureBase(ctx, e, w)
	if err != nil {
		return "", err
	}
	build, err := source.Context(w.agent, e.Arch, base.name, base.id)
	if err != nil {
		return "", err
	}
	name := compose.ImageName(w.agent.Name, build.Digest())
	if !w.rebuild {
		if found, err := e.FindImage(ctx, name); err != nil || found != nil {
			return name, err
		}
	}
	release, err := a.waitLock(ctx, "image-"+build.Digest())
	if err != nil {
		return "", err
	}
	defer release()
	if !w.rebuild {
		// Another up may have built it while we waited.
		if found, err := e.FindImage(ctx, name); err != nil || found != nil {
			return name, err
		}
	}
	return name, a.buildImage(ctx, e, w, name, build)
}

// imageName is the name of the image that w describes, without making anything.
func (a *app) imageName(ctx context.Context, e *engine.Engine, w imageWish) (string, error) {
	source, err := a.imageSource()
	if err != nil {
		return "", err
	}
	base, err := findBase(ctx, e, a.baseCandidates(w))
	if err != nil {
		return "", err
	}
	if base.id == "" {
		return "", fail(exitFailed, "run: agent-container build", "the base image %s is not here, and the image's name depends on it", w.base)
	}
	build, err := source.Context(w.agent, e.Arch, base.name, base.id)
	if err != nil {
		return "", err
	}
	return compose.ImageName(w.agent.Name, build.Digest()), nil
}

// buildImage runs one build with its progress and log.
func (a *app) buildImage(ctx context.Context, e *engine.Engine, w imageWish, name string, build *images.Context) error {
	logPath, logFile, err := a.buildLog(w.agent.Name)
	if err != nil {
		return err
	}
	defer logFile.Close()
	a.say("building %s (log: %s)", name, logPath)
	progress := newBuildProgress(a.err, a.errTerminal)
	log := &keptError{to: logFile}
	b := engine.Build{
		Tag:     name,
		Args:    build.Args(),
		Labels:  map[string]string{compose.LabelBuilt: time.Now().UTC().Format(time.RFC3339)},
		Anew:    w.anew,
		Context: build.WriteTar,
		Log:     io.MultiWriter(log, progress),
	}
	if w.caBundle != "none" {
		b.CA = w.caBundle
	}
	started := time.Now()
	err = e.Build(ctx, b)
	progress.finish()
	if err != nil && log.err != nil {
		return fmt.Errorf("log of the build of %s: %w", name, log.err) // the builder ended because nobody took its output
	}
	if err != nil {
		return a.buildFailure(ctx, e, name, logPath, progress, err)
	}
	a.say("built %s in %s", name, time.Since(started).Round(time.Second))
	return nil
}

// buildFailure shows the last lines of a failed build and names its log. An
// image of that name that was there before still is.
func (a *app) buildFailure(ctx context.Context, e *engine.Engine, name, logPath string, p *buildProgress, err error) error {
	if context.Cause(ctx) != nil {
		return err
	}
	// The builder's output is not read for why: a Dockerfile can print anything.
	if lost := e.CheckBuilder(ctx); lost != nil {
		return lost
	}
	for _, line := range p.last() {
		fmt.Fprintln(a.err, "  "+spec.Printable(line, 500))
	}
	return fail(exitFailed, "read the whole log: "+logPath, "build of %s failed: %w", name, err)
}

// keptError remembers why a write failed: whoever writes through a child's output
// hears only that the child has failed.
type keptError struct {
	to  io.Writer
	err error
}

func (k *keptError) Write(b []byte) (int, error) {
	n, err := k.to.Write(b)
	if err != nil {
		k.err = err
	}
	return n, err
}

func (a *app) buildLog(agent string) (string, *os.File, error) {
	dir := filepath.Join(a.dirs.State, engine.LocalHost, ".builds")
	if err := settings.MakePrivate(dir); err != nil {
		return "", nil, err
	}
	path := filepath.Join(dir, agent+".log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	return path, f, err
}

// baseImage is a base that is on the engine.
type baseImage struct{ name, id string }

// ensureBase finds the base image on the engine, else pulls it, else, for the
// default, makes one on this machine.
func (a *app) ensureBase(ctx context.Context, e *engine.Engine, w imageWish) (baseImage, error) {
	candidates := a.baseCandidates(w)
	if !w.refresh {
		if b, err := findBase(ctx, e, candidates); err != nil || b.id != "" {
			return b, err
		}
	}
	release, err := a.waitLock(ctx, "base")
	if err != nil {
		return baseImage{}, err
	}
	defer release()
	if !w.refresh {
		if b, err := findBase(ctx, e, candidates); err != nil || b.id != "" {
			return b, err
		}
	}
	return a.fetchBase(ctx, e, w, len(candidates) > 1)
}

// baseCandidates are the names under which the base may be on the engine: only
// the default may be made on this machine.
func (a *app) baseCandidates(w imageWish) []string {
	if a.settings.Get("base_image").Origin != "default" {
		return []string{w.base}
	}
	return []string{w.base, compose.BootstrapImage}
}

// findBase returns the first of candidates that is on the engine, the zero value
// when none is.
func findBase(ctx context.Context, e *engine.Engine, candidates []string) (baseImage, error) {
	found, err := e.FindImages(ctx, candidates...)
	if err != nil || len(found) == 0 {
		return baseImage{}, err
	}
	name := candidates[0]
	if slices.Contains(found[0].RepoTags, compose.BootstrapImage) {
		name = compose.BootstrapImage
	}
	return baseImage{name, found[0].ID}, nil
}

// fetchBase pulls the base or makes it.
func (a *app) fetchBase(ctx context.Context, e *engine.Engine, w imageWish, bootstrap bool) (baseImage, error) {
	name := w.base
	a.say("pulling %s", name)
	pullErr := e.Pull(ctx, name)
	if pullErr != nil {
		if context.Cause(ctx) != nil {
			return baseImage{}, pullErr
		}
		if had, err := findBase(ctx, e, []string{name}); err != nil || had.id != "" {
			// Another base beside it would never be used.
			return baseImage{}, fail(exitFailed, "check the registry; the image of before is still used", "renew the base image: %w", errors.Join(pullErr, err))
		}
		if !bootstrap {
			return baseImage{}, fail(exitFailed, "check base_image and the registry", "base image: %w", pullErr)
		}
		name = compose.BootstrapImage
		a.say("no registry answers (%s); making %s on this machine with debootstrap", oneLine(pullErr.Error()), name)
		if err := a.bootstrapBase(ctx, e); err != nil {
			return baseImage{}, err
		}
	}
	b, err := findBase(ctx, e, []string{name})
	if err == nil && b.id == "" {
		err = fmt.Errorf("base image %s is not on the engine although it was fetched", name)
	}
	return b, err
}

func (a *app) bootstrapBase(ctx context.Context, e *engine.Engine) error {
	logPath, logFile, err := a.buildLog("base")
	if err != nil {
		return err
	}
	defer logFile.Close()
	log := &keptError{to: logFile}
	err = e.BootstrapBase(ctx, log)
	if err != nil && log.err != nil {
		return fmt.Errorf("log of %s: %w", compose.BootstrapImage, log.err)
	}
	if err != nil {
		return fail(exitFailed, "reach a registry, set base_image, or as root install debootstrap and run: agent-container build; log: "+logPath, "%w", err)
	}
	return nil
}
