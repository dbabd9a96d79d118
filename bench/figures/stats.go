//go:build unix

package main

import (
	"math"
)

// percentile returns the smallest of the sorted values that p percent of them
// do not exceed.
func percentile(sorted []float64, p float64) float64 {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(1, rank)-1]
}
