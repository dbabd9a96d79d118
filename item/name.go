package item

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/sluicehq/sluice/internal/jsonscan"
)

// entry is one attribute of a map.
type entry struct {
	sig uint32 // of the unescaped name
	off uint32 // of the name's opening quote
}

// sigSeed makes collisions unpredictable for the author of the names.
var sigSeed = rand.Uint64() | 1

// shortSig is nameSig of the first n bytes of w, n < 8.
func shortSig(w uint64, n int) uint32 {
	return finish(w&(1<<(8*n)-1), n)
}

// longSig is nameSig of 8 to 16 bytes: first and last hold the first and the last
// eight of them.
func longSig(first, last uint64, n int) uint32 {
	return finish(mix(first)^last, n)
}

// nameSig returns a hash of a name.
func nameSig[T string | []byte](name T) uint32 {
	n := len(name)
	if n < 8 {
		var w uint64
		for i := range n {
			w |= uint64(name[i]) << (8 * i)
		}
		return finish(w, n)
	}
	h := mix(word(name[:8]))
	for i := 8; i < n-8; i += 8 {
		h = mix(h ^ word(name[i:i+8]))
	}
	return finish(h^word(name[n-8:]), n)
}

func word[T string | []byte](b T) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

func mix(h uint64) uint64 {
	hi, lo := bits.Mul64(h^sigSeed, 0x9e3779b97f4a7c15)
	return hi ^ lo
}

func finish(h uint64, n int) uint32 { return uint32(mix(h+uint64(n)<<56) >> 32) }

// fewNames is the largest number of names that are compared pairwise as they come.
// More names are sorted once.
const fewNames = 64

// nameSet is a set of signatures with false positives: it stores nine bits of
// each.
type nameSet [8]uint64

// add adds a signature. It reports whether the set may already have had it.
func (s *nameSet) add(sig uint32) bool {
	word, bit := &s[sig>>29], uint64(1)<<(sig>>23&63)
	had := *word&bit != 0
	*word |= bit
	return had
}

// duplicate reports whether the name at start, whose closing quote is at end,
// is among p.names[base:]. Above fewNames it leaves that to duplicates.
func (p *Parser) duplicate(base int, sig uint32, start, end int) bool {
	names := p.names[base:]
	if len(names) >= fewNames {
		return false
	}
	for _, e := range names {
		if e.sig == sig && p.sameName(int(e.off), start) {
			return true
		}
	}
	return false
}

// duplicates returns the offset of a repeated name among p.names[base:], or -1.
func (p *Parser) duplicates(base int) int {
	names := slices.Clone(p.names[base:])
	slices.SortFunc(names, func(a, b entry) int {
		if a.sig != b.sig {
			return int(int64(a.sig) - int64(b.sig))
		}
		return int(int64(a.off) - int64(b.off))
	})
	for i, e := range names {
		for _, f := range names[i+1:] {
			if f.sig != e.sig {
				break
			}
			if p.sameName(int(e.off), int(f.off)) {
				return int(f.off)
			}
		}
	}
	return -1
}

// sameName compares two checked names by the offsets of their opening quotes.
func (p *Parser) sameName(i, j int) bool {
	a, b := p.b[i:jsonscan.StringEnd(p.b, i)], p.b[j:jsonscan.StringEnd(p.b, j)]
	return string(textBytes(a)) == string(textBytes(b))
}
