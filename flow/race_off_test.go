//go:build !race

package flow

const defaultSeeds = 1000
