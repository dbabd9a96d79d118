package poller

import (
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

// positions maps a flow's ordinals to sequence numbers: record n of the flow
// is at position of(n). It keeps the digits of those that are not settled, and
// their times by the second, without a pointer per record.
//
// The reader adds, the checkpointer settles.
type positions struct {
	mu      sync.Mutex
	runs    []run
	last    uint64          // ordinal of the newest
	settled sluice.Sequence // position of what was asked for last
	seenTo  time.Time       // everything written before was read
}

// run is consecutive records whose sequence numbers have the same width.
type run struct {
	first  uint64 // ordinal
	width  int
	digits []byte
	times  []uint32 // of creation, in Unix seconds
}

func (r *run) len() int { return len(r.times) }

// startAt returns the map of a shard whose stored position is seq.
func startAt(seq sluice.Sequence, seenTo time.Time) *positions {
	return &positions{settled: seq, seenTo: seenTo}
}

// add notes records that will be submitted next.
func (p *positions) add(recs []sluice.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range recs {
		p.last++
		seq := recs[i].Sequence
		if !seq.Valid() {
			seq = "" // not a position: what was settled before it is
		}
		r := p.tail()
		if r == nil || r.width != len(seq) {
			p.runs = append(p.runs, run{first: p.last, width: len(seq),
				digits: make([]byte, 0, len(seq)*(len(recs)-i)), times: make([]uint32, 0, len(recs)-i)})
			r = p.tail()
		}
		r.digits = append(r.digits, seq...)
		r.times = append(r.times, uint32(max(0, recs[i].Created.Unix())))
	}
}

func (p *positions) tail() *run {
	if len(p.runs) == 0 {
		return nil
	}
	return &p.runs[len(p.runs)-1]
}

// saw notes that everything written before t has been added.
func (p *positions) saw(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seenTo = t
}

// settle returns the position when the first n records are durable, and
// forgets what is before it. n never falls.
func (p *positions) settle(n uint64) sluice.Sequence {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.runs) > 0 {
		r := &p.runs[0]
		if n < r.first {
			break
		}
		k := min(int(n-r.first)+1, r.len())
		if r.width > 0 {
			p.settled = sluice.Sequence(r.digits[(k-1)*r.width : k*r.width])
		}
		if k < r.len() {
			r.first += uint64(k)
			r.digits, r.times = r.digits[k*r.width:], r.times[k:]
			break
		}
		p.runs = p.runs[1:]
	}
	if len(p.runs) == 0 {
		p.runs = nil // the array
	}
	return p.settled
}

// oldest returns the creation time of the first record that is not settled
// (as of the last settle), or else up to when everything was read.
func (p *positions) oldest() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.runs) == 0 {
		return p.seenTo
	}
	if t := time.Unix(int64(p.runs[0].times[0]), 0); t.Before(p.seenTo) {
		return t
	}
	return p.seenTo
}
