// Package completions holds the shells' completion scripts. They name no
// command, flag or agent: they ask the program.
package completions

import "embed"

//go:embed agent-container.bash agent-container.fish agent-container.zsh
var scripts embed.FS

// Shells lists the shells that have a script.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Script returns the completion script of a shell.
func Script(shell string) (string, bool) {
	b, err := scripts.ReadFile("agent-container." + shell)
	return string(b), err == nil
}
