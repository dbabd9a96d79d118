//go:build race

package flow

// The race detector makes a history ten times as slow: most run without it.
const defaultSeeds = 100
