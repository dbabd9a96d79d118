//go:build !race

package flow

const defaultSeeds = 5000
