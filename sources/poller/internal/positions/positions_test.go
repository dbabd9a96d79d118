package positions

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
)

// The map agrees with a list of all records, whatever the widths of their
// sequence numbers, and records without one.
func TestMapAgainstList(t *testing.T) {
	type entry struct {
		seq     sluice.Sequence // position when this one and all before are settled
		created time.Time
	}
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		before := sluice.Sequence("")
		if rnd.IntN(2) == 0 {
			before = wide(5)
		}
		seen := time.Unix(1<<31, 0)
		p := New(before, seen, nil)
		var list []entry // list[i] is ordinal i+1
		at, n, settled := before, 10, uint64(0)
		check := func() {
			want := before
			if settled > 0 {
				want = list[settled-1].seq
			}
			if got := p.Settle(settled); got != want {
				t.Fatalf("seed %d: %d settled: position %q, want %q", seed, settled, got, want)
			}
			oldest := seen
			if settled < uint64(len(list)) {
				oldest = list[settled].created
			}
			if got := p.Oldest(); !got.Equal(oldest) {
				t.Fatalf("seed %d: %d settled: oldest %v, want %v", seed, settled, got, oldest)
			}
		}
		for range 40 {
			switch rnd.IntN(2) {
			case 0:
				recs := make([]sluice.Record, rnd.IntN(5))
				for i := range recs {
					n += 1 + rnd.IntN(30)
					recs[i].Created = time.Unix(int64(n), 0)
					if rnd.IntN(6) > 0 {
						recs[i].Sequence = wide(n)
						at = recs[i].Sequence
					}
					list = append(list, entry{at, recs[i].Created})
				}
				p.Add(recs)
			case 1:
				settled += uint64(rnd.IntN(len(list) - int(settled) + 1))
				check()
			}
		}
		settled = uint64(len(list))
		check()
	}
}

// wide returns sequence numbers that grow, in width too.
func wide(n int) sluice.Sequence {
	return sluice.Sequence(fmt.Sprintf("%d%020d", n, 2_395_190_001_559_217))
}

func TestMapKeepsLittle(t *testing.T) {
	p := New("", time.Now(), nil)
	recs := make([]sluice.Record, 1000)
	for i := range recs {
		recs[i].Sequence = wide(28902 + i)
	}
	allocs := testing.AllocsPerRun(100, func() { p.Add(recs) })
	if allocs > 4 {
		t.Errorf("a page of 1,000 records takes %v allocations, want a handful", allocs)
	}
	p.Settle(p.last)
	if p.runs != nil {
		t.Errorf("%d runs are kept of settled records", len(p.runs))
	}
}

// A record whose time nobody knows is not as old as time itself.
func TestOldestOfARecordWithoutATime(t *testing.T) {
	seen := time.Now()
	p := New("", seen, nil)
	p.Add(make([]sluice.Record, 1))
	if got := p.Oldest(); !got.Equal(seen) {
		t.Errorf("the oldest record is of %v, want %v", got, seen)
	}
}
