//go:build race

package cascade

// The race detector makes it about ten times as slow.
const vastRows = 100_000
