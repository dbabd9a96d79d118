package cascade

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/keyhash"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/internal/parallel"
)

const (
	pagesAhead  = 2  // read while deletes run
	pagesAtOnce = 2  // deleted at a time: the next page fills the last requests of one
	readsAtOnce = 16 // reads of rows found by an index

	// maxPasses limits the readings from the start in one run. Every pass
	// except the last has deleted something, so only children that are written
	// as fast as they are deleted reach the limit.
	maxPasses = 16

	// maxLookAge is how long a response that the parent is gone is used.
	maxLookAge = 100 * time.Millisecond
)

// ending is the reason why a run ended.
type ending uint8

const (
	goOn       ending = iota
	emptied           // a reading from the start found nothing to delete
	more              // the limit of rows or time was reached
	parentBack        // the parent exists again
	gaveUp            // too many deletes failed in a row
)

// text describes for the log how a run ended.
func (e ending) text(err error) string {
	switch {
	case err != nil:
		return "failed"
	case e == parentBack:
		return parentExists
	case e == more:
		return "more to do"
	}
	return "no children left"
}

// errStopped is the error of rows that were not tried, because the run ends.
var errStopped = errors.New("the cascade has stopped")

// purge is one run: it deletes the children of one parent, up to a limit.
type purge struct {
	t     *target
	rows  int       // rows that may be tried; or Unlimited
	until time.Time // when no more deletes begin; zero is no limit
	other bool      // another run with more time continues: until holds even if nothing was deleted
	told  bool      // its end deserves a log line

	looking chan struct{} // held by the caller that checks whether the parent is back

	mu         sync.Mutex
	began      time.Time
	reportedAt time.Time
	look       look
	end        ending
	err        error // except of single deletes
	tried      int
	full       bool // no more rows may be tried
	deleted    int
	failures   failures
}

// look is the time of the last read of the parent.
type look struct{ began, ended time.Time }

func newPurge(t *target) *purge {
	now := time.Now()
	return &purge{t: t, rows: Unlimited, looking: make(chan struct{}, 1), began: now, reportedAt: now}
}

// parentIsBack reads the parent, and stops the pass if it exists again.
func (p *purge) parentIsBack(ctx context.Context) (bool, error) {
	began := time.Now()
	it, err := p.t.c.c.Get(ctx, p.t.c.c.Table, p.t.parent)
	if err != nil {
		return false, fmt.Errorf("cascade of %s: is the parent there again? %w", keyhash.Item(p.t.parent), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look = look{began, time.Now()}
	if it.Exists() {
		p.end = parentBack
	}
	return it.Exists(), nil
}

// run makes passes until one finds nothing to delete, or a limit is reached. It
// returns failed deletes as an error, unless it made progress and another run
// follows: those rows are found again.
func (p *purge) run(ctx context.Context) (end ending, err error) {
	defer func() { p.report(end.text(err)) }()
	for pass := 0; ; pass++ {
		before := p.deleted
		if p.end = goOn; pass == maxPasses {
			p.end = more
			return more, nil
		}
		p.pass(ctx)
		switch failed := p.failures.err(p.t, p.deleted); {
		case p.err != nil:
			return goOn, p.err
		case p.end == parentBack:
			return parentBack, nil
		case failed != nil && (p.end != more || p.deleted == 0):
			return goOn, failed
		case p.end == more:
			return more, nil
		case p.deleted == before:
			return emptied, nil
		}
	}
}

// page is rows that may be children.
type page struct {
	rows  []sluice.Item
	first bool // of the pass
}

// pass reads the children from first to last and deletes them. It reads pages
// ahead while deletes run. When pass returns, its goroutines have ended.
func (p *purge) pass(ctx context.Context) {
	reading, stopReading := context.WithCancel(ctx)
	pages := make(chan page, pagesAhead)
	var reader, deleters sync.WaitGroup
	reader.Go(func() {
		defer close(pages)
		p.guard(func() error { return p.read(reading, pages) })
	})
	for range pagesAtOnce {
		deleters.Go(func() {
			for page := range pages {
				p.guard(func() error { return p.delete(ctx, page) })
				if p.stopped() {
					stopReading() // the reader ends, and closes pages
				}
			}
		})
	}
	deleters.Wait()
	stopReading()
	reader.Wait()
	if p.full {
		p.stop(more)
	}
}

// read reads pages from the start until the last, or until ctx ends.
func (p *purge) read(ctx context.Context, pages chan<- page) error {
	q := p.t.query()
	for first := true; ; first = false {
		answer, err := p.t.c.c.Query(ctx, q)
		if err != nil {
			if ctx.Err() != nil && p.stopped() {
				return nil // no receiver is left
			}
			return fmt.Errorf("cascade of %s: reading the keys of table %s: %w", keyhash.Item(p.t.parent), q.Table, err)
		}
		select {
		case pages <- page{answer.Items, first}:
		case <-ctx.Done():
			if p.stopped() {
				return nil // no receiver is left
			}
			return fmt.Errorf("cascade of %s: %w", keyhash.Item(p.t.parent), context.Cause(ctx))
		}
		if q.After = answer.Next; !q.After.Exists() || p.stopped() {
			return nil
		}
	}
}

// delete deletes the children among the rows of a page. A later page than the
// first proves that more rows exist, which another run may delete.
func (p *purge) delete(ctx context.Context, page page) error {
	if p.stopped() || !page.first && !p.mayGoOn(ctx) {
		return nil
	}
	keys, err := p.candidates(page.rows)
	if err == nil && p.t.child.Index != "" && p.t.child.Exclude != nil {
		keys, err = p.children(ctx, keys)
	}
	if err != nil {
		return err
	}
	if keys = p.admit(keys); len(keys) == 0 {
		return nil
	}
	begun := time.Now()
	d := p.t.deletion(keys)
	d.Guard = func(request context.Context) error { return p.mayDelete(ctx, request, begun) }
	d.Done = func(keys []sluice.Item, errs []error) {
		p.guard(func() error { p.settle(keys, errs); return nil })
	}
	p.t.c.c.Delete(ctx, d)
	return nil
}

// admit returns the rows that may be tried.
func (p *purge) admit(keys []sluice.Item) []sluice.Item {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows != Unlimited && p.tried+len(keys) > p.rows {
		keys, p.full = keys[:p.rows-p.tried], true
	}
	p.tried += len(keys)
	return keys
}

// candidates returns the keys of the rows to delete. A row found by an index needs
// its item to decide.
func (p *purge) candidates(rows []sluice.Item) ([]sluice.Item, error) {
	keys := make([]sluice.Item, 0, len(rows))
	for _, row := range rows {
		key, err := keyOf(row, p.t.child.Table, p.t.child.Key)
		if err != nil {
			return nil, sluice.Permanent(fmt.Errorf("cascade of %s: %w", keyhash.Item(p.t.parent), err))
		}
		if p.t.isParent(key) || p.t.child.Index == "" && p.stays(key, row) {
			continue
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// stays reports whether a row must stay.
func (p *purge) stays(key, row sluice.Item) bool {
	if exclude := p.t.child.Exclude; exclude != nil && exclude(row) {
		return true
	}
	if err := p.t.incomparable(row); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.failures.add(key, err)
		return true
	}
	return p.t.newer(row)
}

// children reads rows found by an index, by their keys, and returns the keys of
// rows that are children now.
func (p *purge) children(ctx context.Context, keys []sluice.Item) ([]sluice.Item, error) {
	is := make([]bool, len(keys))
	parallel.Do(len(keys), readsAtOnce, func(i int) {
		p.guard(func() error {
			it, err := p.t.c.c.Get(ctx, p.t.child.Table, keys[i])
			if err != nil {
				return fmt.Errorf("cascade of %s: reading a row of table %s that index %s has led to: %w", keyhash.Item(p.t.parent), p.t.child.Table, p.t.child.Index, err)
			}
			is[i] = it.Exists() && p.t.belongs(it) && !p.stays(keys[i], it)
			return nil
		})
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	var out []sluice.Item
	for i, key := range keys {
		if is[i] {
			out = append(out, key)
		}
	}
	return out, nil
}

// mayDelete runs right before a request that deletes rows of a page. The parent
// must have been gone after the page was begun, and within maxLookAge.
func (p *purge) mayDelete(ctx, request context.Context, begun time.Time) error {
	select {
	case p.looking <- struct{}{}:
		defer func() { <-p.looking }()
	case <-request.Done():
		return context.Cause(request)
	}
	if !p.mayGoOn(ctx) {
		return errStopped
	}
	p.mu.Lock()
	fresh := !p.look.began.Before(begun) && time.Since(p.look.ended) < maxLookAge
	p.mu.Unlock()
	if fresh {
		return nil
	}
	back, err := p.parentIsBack(request)
	if err != nil {
		p.fail(err)
	}
	if back || err != nil {
		return errStopped
	}
	return nil
}

// mayGoOn reports whether more deletes may begin, and stops the pass if not.
func (p *purge) mayGoOn(ctx context.Context) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.end != goOn || p.err != nil:
		return false
	case ctx.Err() != nil:
		p.err = fmt.Errorf("cascade of %s: %w", keyhash.Item(p.t.parent), context.Cause(ctx))
		return false
	case !p.until.IsZero() && !time.Now().Before(p.until) && (p.other || p.deleted > 0):
		// A message that has deleted nothing continues. Sent again, it would
		// begin with the same rows and repeat for ever.
		p.end = more
		return false
	}
	return true
}

// settle counts the results of deletes.
func (p *purge) settle(keys []sluice.Item, errs []error) {
	p.mu.Lock()
	gone := len(keys)
	for i, err := range errs {
		condition, _ := errors.AsType[*dynamo.ConditionError](err)
		switch {
		case err == nil:
			continue
		case errors.Is(err, errStopped): // not tried
		case condition != nil: // no longer a child, or newer
			for _, it := range condition.Items {
				if err := p.t.incomparable(it); err != nil && p.t.belongs(it) {
					p.failures.add(keys[i], err)
				}
			}
		default:
			p.failures.add(keys[i], err)
		}
		gone--
	}
	if gone > 0 {
		p.failures.inARow = 0
	}
	p.deleted += gone
	if p.failures.inARow >= tooMany && p.end == goOn {
		p.end = gaveUp
	}
	p.mu.Unlock()
	if gone > 0 {
		p.t.c.counts.rows.Add(float64(gone), p.t.child.Table)
	}
	p.report("")
}

func (p *purge) stop(why ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == goOn {
		p.end = why
	}
}

func (p *purge) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end != goOn || p.err != nil || p.full
}

// guard calls f and keeps its error. A panic or Goexit becomes an error too. On
// this goroutine it would end the process; on the caller's it fails the record.
// f has no goroutine of its own, because each would grow its stack anew for a request:
// that makes the read of a row a third dearer.
func (p *purge) guard(f func() error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		p.fail(&outcomes.Panic{Value: recover(), Stack: debug.Stack()})
	}()
	err := f()
	returned = true
	if err != nil {
		p.fail(err)
	}
}

func (p *purge) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
}
