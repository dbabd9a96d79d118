package streamtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// Chaos is random misbehaviour from a seed. Each kind has a probability per call,
// from 0 to 1. The result for a call depends on the seed, the operation, table and
// shard, and the number of such calls before it. Time and other goroutines do not
// affect it.
type Chaos struct {
	Seed uint64

	Errors    float64       // responses 500, 502 and 503
	Throttles float64       // LimitExceededException and similar errors
	Hang      float64       // calls without a response
	Cut       float64       // connections that break within the response
	Slow      float64       // responses that take up to SlowFor
	SlowFor   time.Duration // default 1 s

	// For GetRecords:
	Empty   float64 // no records, even if some exist
	Short   float64 // at most ten records
	Expired float64 // iterators that expire early

	// For DescribeStream, each for one page:
	Shuffled   float64 // shards in another order
	Incomplete float64 // a quarter of its shards omitted
	Repeated   float64 // shards of other pages repeated
	// Stale lists an earlier state: closed shards as open, with or without
	// their children, and trimmed shards.
	Stale float64
}

func (c Chaos) validate() error {
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"Errors", c.Errors}, {"Throttles", c.Throttles}, {"Hang", c.Hang}, {"Cut", c.Cut}, {"Slow", c.Slow},
		{"Empty", c.Empty}, {"Short", c.Short}, {"Expired", c.Expired},
		{"Shuffled", c.Shuffled}, {"Incomplete", c.Incomplete}, {"Repeated", c.Repeated}, {"Stale", c.Stale},
	} {
		if !(p.value >= 0 && p.value <= 1) {
			return fmt.Errorf("Chaos.%s is %v; want a probability from 0 to 1", p.name, p.value)
		}
	}
	if c.SlowFor < 0 {
		return fmt.Errorf("Chaos.SlowFor is %v; want more than 0, or 0 for the default", c.SlowFor)
	}
	return nil
}

// dice draw the effect on each call.
type dice struct {
	Chaos
	seen map[string]int // number of calls by subject; nil without chaos
}

// Chaos makes the service misbehave from now on, in addition to the faults of
// [Service.Fail]. The zero Chaos ends it.
func (s *Service) Chaos(c Chaos) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := c.validate(); err != nil {
		s.fatalf("Chaos: %v", err)
	}
	c.SlowFor = cmp.Or(c.SlowFor, time.Second)
	s.chaos = dice{Chaos: c}
	if s.chaos.Chaos != (Chaos{SlowFor: c.SlowFor}) {
		s.chaos.seen = make(map[string]int)
	}
}

// about names the subject of a call, the same in every run. Ids and ARNs contain
// the time, so it omits them.
func (c *call) about() string {
	name := c.op + " " + c.note.Table
	if c.stream != nil {
		name = fmt.Sprintf("%s %d", name, c.stream.generation)
	}
	if c.shard != nil {
		name = fmt.Sprintf("%s %d", name, c.shard.nth)
	}
	return name
}

// effect draws the effect on a call.
func (d *dice) effect(c *call) effect {
	if d.seen == nil {
		return effect{}
	}
	about := c.about()
	d.seen[about]++
	r := rand.New(rand.NewPCG(d.Seed, hash(fmt.Appendf(nil, "%s %d", about, d.seen[about]))))
	draw := func(p float64) bool { return r.Float64() < p } // always drawn, so that kinds do not affect each other
	e := effect{}
	failed, throttled, expired := draw(d.Errors), draw(d.Throttles), draw(d.Expired) && c.op == getRecords
	which := r.IntN(6)
	switch {
	case failed:
		e.err = []*apiError{
			failure("InternalServerError", 0), failure("ServiceUnavailable", 0), failure("", http.StatusBadGateway),
		}[which%3]
	case throttled:
		e.err = failure([]string{"LimitExceededException", "ProvisionedThroughputExceededException", "ThrottlingException"}[which%3], 0)
	case expired:
		e.err = expiredIterator(0)
	}
	e.hang, e.cut = draw(d.Hang), draw(d.Cut)
	slow, wait := draw(d.Slow), r.Float64()
	if slow {
		e.delay = time.Duration(wait * float64(d.SlowFor))
	}
	switch c.op {
	case getRecords:
		e.empty = draw(d.Empty)
		short, n := draw(d.Short), 1+r.IntN(10)
		if short {
			e.records = n
		}
	case describeStream:
		e.listing = listing{shuffled: draw(d.Shuffled), incomplete: draw(d.Incomplete), repeated: draw(d.Repeated), stale: draw(d.Stale), rand: r}
	}
	return e
}

// listing is the effect of chaos on one page of shards.
type listing struct {
	shuffled, incomplete, repeated, stale bool
	rand                                  *rand.Rand
}

// garble returns the shards to list instead of page.
func (l *listing) garble(st *stream, page []shardDescription) []shardDescription {
	if l.rand == nil {
		return page
	}
	out := []shardDescription{}
	forgotten := make(map[string]bool) // children of shards that are listed as open
	if l.stale {
		for i, d := range page {
			if d.SequenceNumberRange.EndingSequenceNumber == "" || l.rand.IntN(2) == 0 {
				continue
			}
			page[i].SequenceNumberRange.EndingSequenceNumber = ""
			forgotten[d.ShardId] = l.rand.IntN(2) == 0
		}
		for _, sh := range st.shards {
			if sh.buried && l.rand.IntN(4) == 0 {
				out = append(out, sh.describe())
			}
		}
	}
	for _, d := range page {
		if l.incomplete && l.rand.IntN(4) == 0 || forgotten[d.ParentShardId] {
			continue
		}
		out = append(out, d)
	}
	if l.repeated {
		for _, sh := range st.listed {
			if sh.hidden == 0 && l.rand.IntN(4) == 0 {
				out = append(out, sh.describe())
			}
		}
	}
	if l.shuffled {
		l.rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	return out
}
