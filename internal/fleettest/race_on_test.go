//go:build integration && unix && race

package fleettest

var raceFlags = []string{"-race"}
