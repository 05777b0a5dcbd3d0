//go:build race

package gateway

// raceEnabled: the race detector takes several times the memory.
const raceEnabled = true
