package snapshot

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/budget"
	"github.com/sluicehq/sluice/internal/wire"
)

// scanner is shared by the readers of a table's segments.
type scanner struct {
	client   *client
	table    table
	segments int
	budget   *budget.Bucket
	o        ScanOptions
}

// newScanner asks for the table; segments is 0 for the default.
func newScanner(ctx context.Context, c *client, o ScanOptions) (*scanner, error) {
	t, err := c.find(ctx, o.StartTimeout)
	if err != nil {
		return nil, err
	}
	s := &scanner{client: c, table: t, segments: o.Segments, o: o}
	s.segments = cmp.Or(s.segments, defaultSegments(t.bytes))
	s.budget = budget.New(s.rate())
	return s, nil
}

// rate is how many read units a second may be taken.
func (s *scanner) rate() float64 {
	switch {
	case s.o.ReadUnits > 0:
		return s.o.ReadUnits
	case s.table.units > 0:
		return s.table.units * s.o.Share
	}
	return onDemandUnits
}

// reader reads the pages of one segment. It is used by one goroutine.
type reader struct {
	*scanner
	segment  int
	after    sluice.Item   // of the last page; absent before the first
	patience time.Duration // of failures in a row; 0: no end
	failed   func(err error, retryIn time.Duration)
	worked   func() // a call has; may be nil

	estimate float64   // of the next page's units
	perItem  float64   // units; 0 while it is not known
	failures int       // in a row
	damaged  int       // answers in a row
	since    time.Time // of the first failure in a row
}

// send sends the segment's pages, up to its end or that of ctx.
func (r *reader) send(ctx context.Context, pages chan<- wire.ScanPage) error {
	for {
		page, err := r.next(ctx)
		if err != nil {
			return err
		}
		select {
		case pages <- page:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if !page.Last.Exists() {
			return nil
		}
	}
}

// confirmations is the number of damaged responses in a row after which the damage
// counts as permanent.
const confirmations = 5

// next returns the next page; the one after it is behind its Last. Its error is
// ctx's, or a [*TableError] that no other try mends.
func (r *reader) next(ctx context.Context) (wire.ScanPage, error) {
	for {
		page, err := r.call(ctx)
		if err == nil {
			r.failures, r.damaged, r.since = 0, 0, time.Time{}
			r.after = page.Last
			if r.worked != nil {
				r.worked()
			}
			return page, nil
		}
		if ctx.Err() != nil {
			return page, context.Cause(ctx)
		}
		k := classify(err)
		if d := (*errDamaged)(nil); errors.As(err, &d) {
			if r.damaged++; r.damaged >= confirmations {
				k = fatal
			}
		}
		if r.since.IsZero() {
			r.since = time.Now()
		}
		r.failures++
		wait := retryIn(k, r.failures)
		if k == fatal || r.patience > 0 && time.Since(r.since)+wait > r.patience {
			return page, r.client.explain("dynamodb:Scan", err)
		}
		r.failed(err, wait)
		if backoff.Sleep(ctx, wait) != nil {
			return page, context.Cause(ctx)
		}
	}
}

// call makes one call within the budget.
func (r *reader) call(ctx context.Context) (wire.ScanPage, error) {
	limit := r.limit()
	estimate := r.guess(limit)
	if err := r.budget.Take(ctx, estimate); err != nil {
		return wire.ScanPage{}, err
	}
	start := time.Now()
	page, bytes, err := r.client.scan(ctx, &r.table, r.segment, r.segments, r.after, limit)
	c := Call{Table: r.table.name, Segment: r.segment, Items: len(page.Records), Bytes: bytes, Units: page.Units, Took: time.Since(start), Err: err}
	switch {
	case err == nil && page.Units > 0:
		r.budget.Add(estimate - page.Units)
		r.estimate = page.Units
		if page.Scanned > 0 {
			r.perItem = page.Units / float64(page.Scanned)
		}
	case classify(err) == throttled:
		r.budget.Add(estimate) // nothing was read
		c.Throttled = true
	}
	if hook := r.o.Hooks.Scanned; hook != nil && ctx.Err() == nil {
		hook(c)
	}
	return page, err
}

// A page of 1 MB takes 256 units when it is read consistently. Of a table with
// little to spend smaller pages are asked for, each worth a second of the
// budget, so that what reads the table besides is not starved in bursts.
const wholePage = 256

// limit is the number of items that the next page may have; 0 is the service's
// limit.
func (r *reader) limit() int32 {
	n := r.o.PageItems
	if rate := r.budget.Rate(); rate < wholePage {
		worth := int32(max(1, min(rate/r.unitsPerItem(), 1<<20)))
		if n == 0 || worth < n {
			n = worth
		}
	}
	return n
}

// unitsPerItem is measured from the last page, and before it from the table's
// description. Without either, it is one.
func (r *reader) unitsPerItem() float64 {
	if r.perItem > 0 {
		return r.perItem
	}
	if r.table.items <= 0 || r.table.bytes <= 0 {
		return 1
	}
	units := float64(r.table.bytes) / float64(r.table.items) / 4096
	if r.o.Eventual {
		units /= 2
	}
	return max(units, 1e-3)
}

// guess estimates the units of the next page.
func (r *reader) guess(limit int32) float64 {
	most := float64(wholePage)
	if r.estimate > 0 {
		most = r.estimate
	}
	if limit > 0 {
		most = min(most, float64(limit)*r.unitsPerItem())
	}
	return most
}
