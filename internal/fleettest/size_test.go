//go:build integration && unix && !proof

package fleettest

const (
	steps  = 14
	shards = 24
)
