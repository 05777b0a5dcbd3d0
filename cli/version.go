package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	ucli "github.com/urfave/cli/v2"
)

// release is the version, set by the linker; without it the build's own
// information is used.
var release string

func versionCommand() command {
	return command{
		name: "version", group: groupShell, usage: "print the version",
		run: func(*app, context.Context, *ucli.Context) (any, error) {
			return versionAnswer{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}, nil
		},
	}
}

type versionAnswer struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v versionAnswer) text(w io.Writer) {
	fmt.Fprintf(w, "agent-container %s (%s, %s)\n", v.Version, v.Go, v.Platform)
}

// version is the release, or what the build knows of its commit.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
