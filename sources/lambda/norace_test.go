//go:build !race

package lambda

const raceEnabled = false
