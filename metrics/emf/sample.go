package emf

import "math/rand/v2"

// sample keeps values: all up to maxValues. Of more it keeps the largest and, at
// random, each other value with equal probability. The zero value is empty.
type sample struct {
	seen int
	kept [maxValues]float64
	most int // index of the largest
}

func (s *sample) add(v float64) {
	s.seen++
	if s.seen <= maxValues {
		s.kept[s.seen-1] = v
		if v > s.kept[s.most] {
			s.most = s.seen - 1
		}
		return
	}
	if v > s.kept[s.most] {
		// The previous largest becomes an ordinary value, and v the largest.
		v, s.kept[s.most] = s.kept[s.most], v
	}
	// Keep maxValues-1 of the s.seen-1 other values.
	if i := rand.IntN(s.seen - 1); i < maxValues-1 {
		if i >= s.most {
			i++
		}
		s.kept[i] = v
	}
}

func (s *sample) values() []float64 { return s.kept[:min(s.seen, maxValues)] }

func (s *sample) reset() { s.seen, s.most = 0, 0 }
