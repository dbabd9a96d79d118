//go:build !race

package flow

const defaultSeeds = 500
