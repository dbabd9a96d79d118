package positions

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// One reader after another takes some records and settles some of these: the next one
// gets the records that are not settled, and no other.
func TestAheadOfManyReaders(t *testing.T) {
	for seed := range uint64(1000) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		all := make([]sluice.Record, 1+rnd.IntN(60))
		for i := range all {
			all[i].Sequence = wide(10 + 7*i)
		}
		settled := make(map[sluice.Sequence]bool)
		after, text := sluice.Sequence(""), ""
		for reader := range 8 {
			before := ParseAhead(text)
			p := New(after, time.Now(), nil)
			var taken []sluice.Sequence
			rest := slices.DeleteFunc(slices.Clone(all[:rnd.IntN(len(all)+1)]), func(rec sluice.Record) bool {
				return rec.Sequence.Compare(after) <= 0
			})
			for len(rest) > 0 {
				page := rest[:min(1+rnd.IntN(5), len(rest))]
				rest = rest[len(page):]
				want := sequences(slices.DeleteFunc(slices.Clone(page), func(rec sluice.Record) bool { return settled[rec.Sequence] }))
				read := page[len(page)-1].Sequence
				recs := before.Unsettled(slices.Clone(page))
				if got := sequences(recs); got != want {
					t.Fatalf("seed %d: reader %d gets %q, want %q", seed, reader, got, want)
				}
				p.Add(recs)
				if n := len(recs); n == 0 || recs[n-1].Sequence != read {
					p.Skip(read)
				}
				for _, rec := range recs {
					taken = append(taken, rec.Sequence)
				}
			}
			taken = taken[:rnd.IntN(len(taken)+1)] // the last are not submitted
			var unsettled []uint64
			for i, seq := range taken {
				if settled[seq] = rnd.IntN(4) > 0; !settled[seq] {
					unsettled = append(unsettled, uint64(i+1))
				}
			}
			low := uint64(len(taken))
			if len(unsettled) > 0 {
				low = unsettled[0] - 1
			}
			after = p.Settle(low)
			text = p.Ahead(before, uint64(len(taken)), unsettled)
		}
	}
}
