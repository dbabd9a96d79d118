//go:build race

package lambda

const raceEnabled = true
