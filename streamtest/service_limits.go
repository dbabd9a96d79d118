package streamtest

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Limits of the service. A zero field has its default.
type Limits struct {
	// Retention is how long records stay in a stream. Default 24 h.
	Retention time.Duration
	// IteratorLife is how long a shard iterator can be used. Default 15 min.
	IteratorLife time.Duration

	// PageRecords and PageBytes limit a GetRecords response; bytes count like
	// SizeBytes. Default 1,000 and 1 MB.
	PageRecords, PageBytes int
	// PageShards limits a DescribeStream response. Default 100.
	PageShards int

	// ReadsPerShard is the number of GetRecords calls per second for one shard
	// before it throttles. Default 10: two readers of five calls each.
	// math.Inf(1) never throttles.
	ReadsPerShard float64
	// DescribesPerStream is the number of DescribeStream calls per second for
	// one stream before it throttles. Default 10. math.Inf(1) never throttles.
	DescribesPerStream float64
}

func (l Limits) withDefaults() Limits {
	l.Retention = cmp.Or(l.Retention, 24*time.Hour)
	l.IteratorLife = cmp.Or(l.IteratorLife, 15*time.Minute)
	l.PageRecords = cmp.Or(l.PageRecords, 1000)
	l.PageBytes = cmp.Or(l.PageBytes, 1<<20)
	l.PageShards = cmp.Or(l.PageShards, 100)
	l.ReadsPerShard = cmp.Or(l.ReadsPerShard, 10)
	l.DescribesPerStream = cmp.Or(l.DescribesPerStream, 10)
	return l
}

func (l Limits) validate() error {
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"Retention", float64(l.Retention)}, {"IteratorLife", float64(l.IteratorLife)},
		{"PageRecords", float64(l.PageRecords)}, {"PageBytes", float64(l.PageBytes)}, {"PageShards", float64(l.PageShards)},
		{"ReadsPerShard", l.ReadsPerShard}, {"DescribesPerStream", l.DescribesPerStream},
	} {
		if f.value < 0 || math.IsNaN(f.value) {
			return fmt.Errorf("Limits.%s is %v; want more than 0, or 0 for the default", f.name, f.value)
		}
	}
	return nil
}

// bucket holds the calls of one second.
type bucket struct {
	used float64   // calls at at
	at   time.Time // as of then
}

// take reports whether one more call is within rate calls per second.
func (b *bucket) take(now time.Time, rate float64) bool {
	if math.IsInf(rate, 1) {
		return true
	}
	b.used = max(0, b.used-rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.used+1 > max(rate, 1) {
		return false
	}
	b.used++
	return true
}
