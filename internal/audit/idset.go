package audit

import (
	"hash/maphash"
	"slices"

	"github.com/sluicehq/sluice/effect/document"
)

// idSet remembers documents by a hash of 64 bits, in 8 bytes each and what
// slices keep in reserve. Its zero value is not ready: newIDSet.
type idSet struct {
	seed    maphash.Seed
	buckets [256][]uint64 // by the first bits, so that growing copies little
	sorted  bool
}

func newIDSet() *idSet { return &idSet{seed: maphash.MakeSeed()} }

func (s *idSet) hash(ref document.Ref) uint64 { return maphash.Comparable(s.seed, ref) }

// add remembers a document. One that is added twice takes its place twice.
func (s *idSet) add(ref document.Ref) {
	h := s.hash(ref)
	b := &s.buckets[h>>56]
	*b = append(*b, h)
	s.sorted = false
}

func (s *idSet) has(ref document.Ref) bool {
	if !s.sorted {
		for _, b := range s.buckets {
			slices.Sort(b)
		}
		s.sorted = true
	}
	h := s.hash(ref)
	_, found := slices.BinarySearch(s.buckets[h>>56], h)
	return found
}
