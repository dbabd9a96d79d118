package emf

import "math/rand/v2"

// sample keeps values: all of them up to maxValues, and of more the largest and,
// at random, each other with the same chance. The zero value is empty.
type sample struct {
	seen int
	kept [maxValues]float64
	most int // where the largest is
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
		// The former largest is one of the others from now on, and v none.
		v, s.kept[s.most] = s.kept[s.most], v
	}
	// Of the others, s.seen-1 by now, maxValues-1 are kept.
	if i := rand.IntN(s.seen - 1); i < maxValues-1 {
		if i >= s.most {
			i++
		}
		s.kept[i] = v
	}
}

func (s *sample) values() []float64 { return s.kept[:min(s.seen, maxValues)] }

func (s *sample) reset() { s.seen, s.most = 0, 0 }
