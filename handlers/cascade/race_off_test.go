//go:build !race

package cascade

const vastRows = 1_000_000
