//go:build race

package flow

// The race detector makes a history about ten times as slow.
const defaultSeeds = 700
