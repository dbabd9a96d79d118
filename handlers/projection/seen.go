package projection

import "hash/maphash"

var seed = maphash.MakeSeed()

// seen is a reusable set of names.
type seen struct {
	text  []byte // of all of them
	ends  []int  // of each in text
	slots []int  // 1 + index, by hash; a power of two of them
}

func (s *seen) reset() {
	s.text, s.ends = s.text[:0], s.ends[:0]
	clear(s.slots)
}

// add adds the name prefix+name, and reports whether it was new.
func (s *seen) add(prefix string, name []byte) bool {
	if 2*(len(s.ends)+1) > len(s.slots) {
		s.grow()
	}
	start := len(s.text)
	s.text = append(append(s.text, prefix...), name...)
	mine := s.text[start:]
	i := s.slot(mine)
	for ; s.slots[i] != 0; i = (i + 1) & (len(s.slots) - 1) {
		if string(s.name(s.slots[i]-1)) == string(mine) {
			s.text = s.text[:start]
			return false
		}
	}
	s.ends = append(s.ends, len(s.text))
	s.slots[i] = len(s.ends)
	return true
}

func (s *seen) name(i int) []byte {
	start := 0
	if i > 0 {
		start = s.ends[i-1]
	}
	return s.text[start:s.ends[i]]
}

func (s *seen) slot(name []byte) int {
	return int(maphash.Bytes(seed, name) & uint64(len(s.slots)-1))
}

func (s *seen) grow() {
	s.slots = make([]int, max(64, 2*len(s.slots)))
	for n := range s.ends {
		i := s.slot(s.name(n))
		for s.slots[i] != 0 {
			i = (i + 1) & (len(s.slots) - 1)
		}
		s.slots[i] = n + 1
	}
}
