package reindex

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/backoff"
)

// Backfilled counts the work of a backfill.
type Backfilled struct {
	Items     int64
	Documents int64 // that were written, or are there in a newer version
	Failed    int64 // items and documents that are left out
}

// IncompleteError says that an index cannot be filled, for items that cannot be
// projected or documents that it refuses.
type IncompleteError struct {
	Index  string
	Failed int64
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("reindex: %d items or documents do not get into index %s: mend them, or the mapping, and start again, or skip them", e.Failed, e.Index)
}

// filler writes the items of a scan to one index.
type filler struct {
	Reindex
	index string
	asked time.Time // last time that the index certainly was to be filled

	mu   sync.Mutex
	done Backfilled
}

// backfill writes a document for each item at the version of its item. What a
// live write has put there in the same version or an older one is written again,
// by the new projection; newer ones stay.
func (r Reindex) backfill(ctx context.Context, index string) (Backfilled, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &filler{Reindex: r, index: index, asked: time.Now()}
	slots := make(chan struct{}, r.Concurrency)
	var wg sync.WaitGroup
	defer wg.Wait() // after an early return, too

	for rec, err := range r.Scan(ctx) {
		if err == nil {
			err = context.Cause(ctx) // a write has failed for good
		}
		if err == nil {
			err = f.wanted(ctx)
		}
		if err != nil {
			cancel(err)
			break
		}
		ops, err := r.Project(rec)
		if err != nil {
			f.fail(rec.Keys, err)
		}
		var key sluice.Item
		for _, op := range ops {
			if op.Index != r.Alias {
				continue
			}
			if !key.Exists() {
				key = rec.Keys.Clone() // the record is gone by the time of a failure
			}
			op.Index = index
			if op.Fence == document.Newer {
				op.Fence = document.NewerOrEqual
			}
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				if err := f.write(ctx, key, op); err != nil {
					cancel(err)
				}
			})
		}
		f.item()
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return f.done, fmt.Errorf("reindex: filling %s: %w", index, err)
	}
	r.Progress(f.done)
	return f.done, nil
}

// wanted returns an error if the index is no longer to be filled. It checks as
// often as every writer. Abandon waits for that before it deletes the index.
func (f *filler) wanted(ctx context.Context) error {
	if time.Since(f.asked) < f.TTL {
		return nil
	}
	for attempt := 1; ; attempt++ {
		asked := time.Now()
		st, err := f.Status(ctx)
		switch {
		case err == nil && st.Other != f.index && st.Current != f.index:
			return fmt.Errorf("%s is no longer to be filled: the reindex was abandoned meanwhile, or finished", f.index)
		case err == nil:
			f.asked = asked
			return nil
		case attempt >= f.Attempts:
			return err
		}
		if err := f.pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// write writes one document, and tries again as long as that may help.
func (f *filler) write(ctx context.Context, key sluice.Item, op document.Op) error {
	for attempt := 1; ; attempt++ {
		err := f.Write(ctx, op)
		switch {
		case err == nil:
			f.mu.Lock()
			f.done.Documents++
			f.mu.Unlock()
			return nil
		case sluice.IsPermanent(err):
			f.fail(key, err)
			return nil
		case attempt >= f.Attempts || ctx.Err() != nil:
			return err
		}
		if err := f.pause(ctx, attempt); err != nil {
			return err
		}
	}
}

func (f *filler) pause(ctx context.Context, attempt int) error {
	return backoff.Sleep(ctx, backoff.Full(200*time.Millisecond, 100*time.Millisecond<<8, attempt))
}

func (f *filler) fail(key sluice.Item, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done.Failed++
	f.Failed(key, err)
}

func (f *filler) item() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done.Items++; f.done.Items%1000 == 0 {
		f.Progress(f.done)
	}
}
