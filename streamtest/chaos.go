package streamtest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// Chaos is misbehaviour drawn from a seed. Each kind has its probability per
// call, from 0 to 1. Whether a call is hit depends on the seed, its operation,
// its table and shard, and on how many such calls came before it; not on time
// nor on what other goroutines do meanwhile.
type Chaos struct {
	Seed uint64

	Errors    float64       // answers 500, 502 and 503
	Throttles float64       // LimitExceededException and its like
	Hang      float64       // no answer ever
	Cut       float64       // a connection that breaks within the answer
	Slow      float64       // an answer that takes up to SlowFor
	SlowFor   time.Duration // default 1 s

	// Of GetRecords:
	Empty   float64 // no records, although there may be some
	Short   float64 // ten records at most
	Expired float64 // an iterator that expires early

	// Of DescribeStream, each for one page:
	Shuffled   float64 // shards in another order
	Incomplete float64 // a quarter of its shards left out
	Repeated   float64 // shards of other pages again
	// Stale lists what was true some time ago: shards as open that are closed,
	// without their children or with them, and shards that were trimmed away.
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

// dice draw what happens to each call.
type dice struct {
	Chaos
	seen map[string]int // calls, by what they are about; nil without chaos
}

// Chaos has the service misbehave from now on, beside what is scripted by
// [Service.Fail]. The zero Chaos ends it.
func (s *Service) Chaos(c Chaos) {
	s.helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := c.validate(); err != nil {
		s.fatalf("Chaos: %v", err)
	}
	if c.SlowFor == 0 {
		c.SlowFor = time.Second
	}
	s.chaos = dice{Chaos: c}
	if s.chaos.Chaos != (Chaos{SlowFor: c.SlowFor}) {
		s.chaos.seen = make(map[string]int)
	}
}

// about names what a call is about, the same in every run: ids and ARNs hold
// the time.
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

// effect draws what happens to a call.
func (d *dice) effect(c *call) effect {
	if d.seen == nil {
		return effect{}
	}
	about := c.about()
	d.seen[about]++
	r := rand.New(rand.NewPCG(d.Seed, hash(fmt.Appendf(nil, "%s %d", about, d.seen[about]))))
	draw := func(p float64) bool { return r.Float64() < p } // always drawn: one kind does not shift the others
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

// listing is what chaos makes of one page of shards.
type listing struct {
	shuffled, incomplete, repeated, stale bool
	rand                                  *rand.Rand
}

// garble returns what is listed instead of page.
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
