//go:build race

package recognise

const raceDetector = true
