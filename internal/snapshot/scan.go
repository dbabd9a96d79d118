package snapshot

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/wire"
)

const (
	maxSegments   = 256
	segmentBytes  = 256 << 20 // of a table, for each segment by default
	perProcessor  = 4         // segments that are read side by side
	onDemandUnits = 1000      // a second, of a table without provisioned capacity
	defaultShare  = 0.25      // of provisioned capacity
)

// defaultSegments is one for each 256 MB of the table, and at most four for
// each processor: a segment waits for the service most of the time.
func defaultSegments(bytes int64) int {
	return min(segmentsBySize(bytes), perProcessor*runtime.GOMAXPROCS(0))
}

func segmentsBySize(bytes int64) int {
	return int(max(1, min((bytes+segmentBytes-1)/segmentBytes, maxSegments)))
}

// Scan yields all items of a table, as the SNAPSHOT records of a [Source], in no
// order. A record stays valid and shares no memory with others. A record that
// cannot be decoded has [sluice.Record.Err] set. An error ends the sequence:
// ctx's, one of the options, or a [*TableError] after calls have failed for
// ScanOptions.Patience, or permanently.
//
// An item that is written during the scan comes in its old or new state. An item
// that exists all the time comes at least once.
func Scan(ctx context.Context, cfg aws.Config, table string, o ScanOptions) iter.Seq2[*sluice.Record, error] {
	return func(yield func(*sluice.Record, error) bool) {
		o := o.withDefaults()
		if err := checkName(table); err != nil {
			yield(nil, err)
			return
		}
		s, err := newScanner(ctx, newClient(cfg, table, o), o)
		if err != nil {
			yield(nil, err)
			return
		}
		ctx, stop := context.WithCancelCause(ctx)
		found := make(chan wire.ScanPage)
		var reading sync.WaitGroup
		for i := range s.segments { // side by side, each at most one page ahead
			r := &reader{scanner: s, segment: i, patience: o.Patience, failed: func(err error, retryIn time.Duration) {
				o.Logger.Warn("a page could not be read and is tried again", "table", table, "segment", i, "retryIn", retryIn, "error", err)
			}}
			reading.Go(func() {
				if err := r.send(ctx, found); err != nil {
					stop(err) // the first counts
				}
			})
		}
		go func() {
			reading.Wait()
			close(found)
		}()
		defer func() { // also of a panic in yield
			stop(nil)
			for range found {
			}
		}()
		for page := range found {
			for i := range page.Records {
				if !yield(&page.Records[i], nil) {
					return
				}
			}
		}
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		if err := s.unchanged(ctx, o.Patience); err != nil {
			yield(nil, err)
		}
	}
}

// unchanged returns an error if the table was replaced since the reading began:
// part of the new table was not read.
func (s *scanner) unchanged(ctx context.Context, limit time.Duration) error {
	now, err := s.client.find(ctx, limit)
	if err == nil && !s.table.same(now) {
		err = &TableError{Table: s.table.name, Err: ErrRecreated, Do: "Read it again"}
	}
	return err
}
