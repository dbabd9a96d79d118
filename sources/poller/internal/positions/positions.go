// Package positions maps the records that a flow counts to their positions in
// the shard.
package positions

import (
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

// Map maps a flow's ordinals to sequence numbers: record n of the flow is at
// position Settle(n). It keeps the digits of unsettled numbers, and the times of
// their records in seconds, without a pointer per record.
//
// The reader adds and the checkpointer settles: a Map is safe for concurrent use.
type Map struct {
	freed func(bytes int64) // called with the memory that a settle frees; may be nil

	mu        sync.Mutex
	bytes     int64 // memory in use
	runs      []run
	last      uint64          // ordinal of the newest record
	settled   sluice.Sequence // last position returned
	skipped   sluice.Sequence // position once ordinal skippedAt is settled
	skippedAt uint64
	seenTo    time.Time // everything written before was read
}

// run is consecutive records whose sequence numbers have the same width, up to its
// capacity.
type run struct {
	first  uint64 // ordinal
	width  int
	digits []byte
	times  []uint32 // of creation, in Unix seconds
}

func (r *run) len() int { return len(r.times) }

// New returns the Map of a shard. seq is its stored position; records written before
// seenTo were read. The Map calls freed, unless that is nil, with the number of
// bytes that it frees. freed must not call the Map.
func New(seq sluice.Sequence, seenTo time.Time, freed func(bytes int64)) *Map {
	return &Map{settled: seq, seenTo: seenTo, freed: freed}
}

// Bytes is the memory for the position of rec.
func Bytes(rec *sluice.Record) int64 { return int64(len(position(rec)) + timeBytes) }

const timeBytes = 4

// position returns the digits of rec's position, or "" when rec has none. The
// position is then the one before it.
func position(rec *sluice.Record) sluice.Sequence {
	if rec.Sequence.Valid() {
		return rec.Sequence
	}
	return ""
}

// Add adds the next records. It returns the memory for their positions, in bytes.
func (p *Map) Add(recs []sluice.Record) (bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range recs {
		p.last++
		seq := position(&recs[i])
		bytes += Bytes(&recs[i])
		r := p.tail()
		if r == nil || r.width != len(seq) || r.len() == cap(r.times) {
			room := max(len(recs)-i, leastRun)
			p.runs = append(p.runs, run{first: p.last, width: len(seq),
				digits: make([]byte, 0, len(seq)*room), times: make([]uint32, 0, room)})
			r = p.tail()
		}
		r.digits = append(r.digits, seq...)
		r.times = append(r.times, uint32(max(0, recs[i].Created.Unix())))
	}
	p.bytes += bytes
	return bytes
}

// Skip notes that the records from the newest one to seq were settled before.
func (p *Map) Skip(seq sluice.Sequence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skipped, p.skippedAt = seq, p.last
}

// leastRun is the capacity of a run for small pages.
const leastRun = 16

func (p *Map) tail() *run {
	if len(p.runs) == 0 {
		return nil
	}
	return &p.runs[len(p.runs)-1]
}

// Added returns the ordinal of the newest record.
func (p *Map) Added() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// Saw notes that all records written before t have been added.
func (p *Map) Saw(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seenTo = t
}

// Settle returns the position at which the first n records are durable, and frees the
// memory for earlier ones. n never falls.
func (p *Map) Settle(n uint64) sluice.Sequence {
	p.mu.Lock()
	defer p.mu.Unlock()
	var free int64
	for len(p.runs) > 0 {
		r := &p.runs[0]
		if n < r.first {
			break
		}
		k := min(int(n-r.first)+1, r.len())
		free += int64(k * (r.width + timeBytes))
		if r.width > 0 {
			p.settled = sluice.Sequence(r.digits[(k-1)*r.width : k*r.width])
		}
		if k < r.len() {
			r.first += uint64(k)
			r.digits, r.times = r.digits[k*r.width:], r.times[k:]
			break
		}
		*r = run{}
		p.runs = p.runs[1:]
	}
	if len(p.runs) == 0 {
		p.runs = nil // the array
	}
	if p.skipped != "" && n >= p.skippedAt {
		if n == p.skippedAt {
			p.settled = p.skipped
		}
		p.skipped = ""
	}
	p.free(free)
	return p.settled
}

// free notes n freed bytes. The caller holds mu.
func (p *Map) free(n int64) {
	p.bytes -= n
	if n > 0 && p.freed != nil {
		p.freed(n)
	}
}

// End frees the memory for unsettled records.
func (p *Map) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = nil
	p.free(p.bytes)
}

// Oldest returns the creation time of the first record that was unsettled at the last
// Settle. Without such a record it returns the time up to which the shard was read.
func (p *Map) Oldest() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.runs) == 0 {
		return p.seenTo
	}
	if at := p.runs[0].times[0]; at > 0 && time.Unix(int64(at), 0).Before(p.seenTo) { // else its time is unknown
		return time.Unix(int64(at), 0)
	}
	return p.seenTo
}
