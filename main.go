// Command agent-container deploys coding agents into containers.
package main

import (
	"os"

	"github.com/agent-container/agent-container/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
