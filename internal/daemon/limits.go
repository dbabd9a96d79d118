package daemon

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice/flow"
)

// Limits bound concurrent work. The zero value has the defaults of [flow.Options].
// Concurrency and StuckAfter also apply to each queue. The other limits do not
// apply to queues, whose messages are ordered only in groups.
type Limits struct {
	Concurrency int           // handlers running at once for one shard, segment or queue (default 64)
	Window      int           // unsettled records of a shard at most (default 4096)
	WindowBytes int64         // of them (default 64 MiB)
	HeldBytes   int64         // of failed records and those behind them; not part of the window (default 64 MiB)
	MaxAhead    int           // records settled past a held record at most (default 1,000,000)
	Order       string        // "item" (default) or "shard"
	StuckAfter  time.Duration // a handler running longer is reported (default 1 min)
	MaxAge      time.Duration // of a record that keeps failing, until it is parked (default 20 h)
}

// mostAge leaves a record that fails time to be parked before the stream
// forgets it.
const mostAge = 23 * time.Hour

func (l Limits) validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
		shown any
	}{
		{"concurrency", int64(l.Concurrency), l.Concurrency}, {"window", int64(l.Window), l.Window},
		{"windowBytes", l.WindowBytes, l.WindowBytes}, {"heldBytes", l.HeldBytes, l.HeldBytes}, {"maxAhead", int64(l.MaxAhead), l.MaxAhead},
		{"stuckAfter", int64(l.StuckAfter), l.StuckAfter}, {"maxAge", int64(l.MaxAge), l.MaxAge},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("limits: %s is %v: want more than 0, or 0 for the default", f.name, f.shown))
		}
	}
	if l.StuckAfter > 0 && l.StuckAfter < time.Millisecond {
		errs = append(errs, fmt.Errorf("limits: stuckAfter is %v: want 1ms at least, or 0 for the default", l.StuckAfter))
	}
	if l.MaxAge > mostAge {
		errs = append(errs, fmt.Errorf("limits: maxAge is %v: want %v at most, because a stream forgets its records after 24h", l.MaxAge, mostAge))
	}
	if l.Order != "" && l.Order != "item" && l.Order != "shard" {
		errs = append(errs, fmt.Errorf("limits: order is %q: want item or shard", l.Order))
	}
	return errors.Join(errs...)
}

// flow returns the limits of each flow; they are valid.
func (l Limits) flow() flow.Options {
	o := flow.Options{
		Concurrency: l.Concurrency, Window: l.Window, WindowBytes: l.WindowBytes, HeldBytes: l.HeldBytes,
		MaxAhead: l.MaxAhead, StuckAfter: l.StuckAfter, MaxAge: l.MaxAge,
	}
	if l.Order == "shard" {
		o.Order = flow.ByShard
	}
	return o
}
