package sim

import (
	"math"
	"time"
)

// draw makes the decisions of a seed while a history runs. Each is a hash of
// the seed, of what is decided and of how often that was decided before, so
// that it does not depend on the order in which goroutines come to theirs.
type draw uint64

func (d draw) bits(what string, keys ...uint64) uint64 {
	h := mix(uint64(d))
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * 1099511628211
	}
	for _, k := range keys {
		h = mix(h ^ k)
	}
	return mix(h)
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// chance is true with probability p.
func (d draw) chance(p float64, what string, keys ...uint64) bool {
	return float64(d.bits(what, keys...)>>11) < p*math.Exp2(53)
}

// below is from 0 to n-1.
func (d draw) below(n int, what string, keys ...uint64) int {
	return int(d.bits(what, keys...) % uint64(n))
}

// upTo is from 1 ns to limit.
func (d draw) upTo(limit time.Duration, what string, keys ...uint64) time.Duration {
	return 1 + time.Duration(d.bits(what, keys...)%uint64(limit))
}

// text makes a key of s.
func text(s string) uint64 { return draw(0).bits(s) }
