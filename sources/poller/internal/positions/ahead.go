package positions

import (
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
)

// MaxUnsettled is how many records Ahead names at most.
const MaxUnsettled = 256

// Ahead returns a state.Position's Ahead for a flow that has ended: of the records up
// to ordinal submitted, those with the ordinals unsettled are not settled. If that is
// less than the owner before had read, what that one has left counts for the rest. It
// is empty if nothing is settled past an unsettled record, or if a record cannot be
// named. Settle was called with the flow's watermark.
func (p *Map) Ahead(before Ahead, submitted uint64, unsettled []uint64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	readTo, rest := p.settled, []sluice.Sequence(nil)
	if len(unsettled) > 0 {
		readTo = sluice.Sequence(p.name(submitted))
		if p.skipped != "" && p.skippedAt == submitted {
			readTo = p.skipped
		}
	}
	if !before.Past(readTo) {
		i, found := slices.BinarySearchFunc(before.unsettled, readTo, sluice.Sequence.Compare)
		if found {
			i++
		}
		readTo, rest = before.last, before.unsettled[i:]
	} else if len(unsettled) == 0 {
		return ""
	} else if all := submitted-unsettled[0]+1 == uint64(len(unsettled)); all && before.Past(p.settled) {
		return ""
	}
	if len(unsettled)+len(rest) > MaxUnsettled {
		return ""
	}
	names := []string{string(readTo)}
	for _, ord := range unsettled {
		names = append(names, p.name(ord))
	}
	if slices.Contains(names, "") {
		return ""
	}
	for _, seq := range rest {
		names = append(names, string(seq))
	}
	return strings.Join(names, " ")
}

// name returns the sequence number of an ordinal, "" if it has none. mu is held.
func (p *Map) name(ord uint64) string {
	i, found := slices.BinarySearchFunc(p.runs, ord, func(r run, ord uint64) int {
		switch {
		case r.first > ord:
			return 1
		case r.first+uint64(r.len()) <= ord:
			return -1
		}
		return 0
	})
	if !found {
		return ""
	}
	r := p.runs[i]
	k := int(ord - r.first)
	return string(r.digits[k*r.width : (k+1)*r.width])
}

// Ahead are records that a reader before has settled past its position.
type Ahead struct {
	last      sluice.Sequence
	unsettled []sluice.Sequence // ascending
}

// ParseAhead reads a state.Position's Ahead. Of a text that it does not understand no
// record is settled.
func ParseAhead(text string) Ahead {
	var a Ahead
	for i, name := range strings.Fields(text) {
		seq := sluice.Sequence(name)
		switch {
		case !seq.Valid():
			return Ahead{}
		case i == 0:
			a.last = seq
			continue
		case i > 1 && seq.Compare(a.unsettled[i-2]) <= 0 || seq.Compare(a.last) > 0:
			return Ahead{}
		}
		a.unsettled = append(a.unsettled, seq)
	}
	return a
}

// Past reports whether nothing after seq is known to be settled.
func (a Ahead) Past(seq sluice.Sequence) bool { return a.last.Compare(seq) <= 0 }

// Unsettled returns recs, in the same array, without those that are settled.
func (a Ahead) Unsettled(recs []sluice.Record) []sluice.Record {
	if a.last == "" {
		return recs
	}
	return slices.DeleteFunc(recs, func(rec sluice.Record) bool {
		if !rec.Sequence.Valid() || rec.Sequence.Compare(a.last) > 0 {
			return false
		}
		_, open := slices.BinarySearchFunc(a.unsettled, rec.Sequence, sluice.Sequence.Compare)
		return !open
	})
}
