package cascade

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

const (
	pagesAhead = 2  // that are read while deletes run
	chunkRows  = 25 // of one call of DeleteAll, what BatchWriteItem takes

	// maxPasses bounds the readings from the start of one run. Each but the
	// last has deleted something, so that only children that come as fast as
	// they go lead to it.
	maxPasses = 16

	// staleAfter is for how long it is taken for granted that the parent, which
	// was not there, is still not there.
	staleAfter = time.Second
)

// ending says why a run ended.
type ending uint8

const (
	goOn       ending = iota
	emptied           // a reading from the start found nothing to delete
	more              // the limit of rows or time was reached
	parentBack        // the parent exists again
	gaveUp            // too many deletes failed in a row
)

// purge is one run: it deletes the children of one parent, up to a limit.
type purge struct {
	t     *target
	rows  int       // how many rows may be tried; Unlimited is no limit
	until time.Time // when nothing more is begun; zero is no limit
	other bool      // another goes on from there, who has more time: until holds also when nothing was deleted
	told  bool      // its end is worth a line of the log

	mu       sync.Mutex
	began    time.Time
	toldAt   time.Time
	checked  time.Time // when it was last asked whether the parent is there
	end      ending
	err      error // of anything but a single delete
	tried    int
	deleted  int
	failures failures
}

func newPurge(t *target) *purge {
	now := time.Now()
	return &purge{t: t, rows: Unlimited, began: now, toldAt: now}
}

// parentIsBack reads the parent, and stops the pass if it exists again.
func (p *purge) parentIsBack(ctx context.Context) (bool, error) {
	now := time.Now()
	it, err := p.t.c.c.Get(ctx, p.t.c.c.Table, p.t.parent)
	if err != nil {
		return false, fmt.Errorf("cascade of %s: is the parent there again? %w", p.t.dedupeKey(), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checked = now
	if it.Exists() { // together: who finds a fresh look also finds what was seen
		p.end = parentBack
	}
	return it.Exists(), nil
}

// run makes passes until one finds nothing to delete, or a limit is reached.
// Deletes that failed are its error, unless it got somewhere and is to be
// called again anyway: those rows are still there then.
func (p *purge) run(ctx context.Context) (ending, error) {
	defer p.tell(true)
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

// pass reads the children from first to last and deletes them. Pages are read
// ahead while deletes run. When pass returns, nothing of it runs any more.
func (p *purge) pass(ctx context.Context) {
	reading, stopReading := context.WithCancel(ctx)
	pages := make(chan []sluice.Item, pagesAhead)
	var reader, deleters sync.WaitGroup
	defer func() {
		deleters.Wait()
		stopReading()
		reader.Wait()
	}()
	reader.Go(func() {
		defer close(pages)
		p.guard(func() error { return p.read(reading, pages) })
	})
	slots := make(chan struct{}, p.t.c.c.Concurrency)
	first := true
	for page := range pages {
		if !first { // there is more to read, or there was
			p.stopInTime()
		}
		first = false
		if p.stopped() {
			stopReading()
			continue
		}
		rows := page
		p.guard(func() (err error) {
			rows, err = p.candidates(page)
			return err
		})
		if len(rows) == 0 || p.stopped() {
			continue // the reader ends when a pass was stopped
		}
		p.guard(func() error {
			_, err := p.parentIsBack(ctx)
			return err
		})
		for chunk := range slices.Chunk(rows, chunkRows) {
			slots <- struct{}{} // given back, whatever becomes of ctx
			if chunk = p.admit(ctx, chunk); len(chunk) == 0 {
				<-slots
				break
			}
			deleters.Go(func() {
				defer func() { <-slots }()
				p.guard(func() error {
					err := p.delete(ctx, chunk)
					p.tell(false)
					return err
				})
			})
		}
		if p.stopped() {
			stopReading()
		}
	}
}

// read reads pages from the start until the last, or until ctx ends.
func (p *purge) read(ctx context.Context, pages chan<- []sluice.Item) error {
	q := p.t.query()
	for {
		page, err := p.t.c.c.Query(ctx, q)
		if err != nil {
			if ctx.Err() != nil && p.stopped() {
				return nil // nobody waits for it
			}
			return fmt.Errorf("cascade of %s: reading the keys of table %s: %w", p.t.dedupeKey(), q.Table, err)
		}
		select {
		case pages <- page.Items:
		case <-ctx.Done():
			if p.stopped() {
				return nil // nobody waits for it
			}
			return fmt.Errorf("cascade of %s: %w", p.t.dedupeKey(), context.Cause(ctx))
		}
		if q.After = page.Next; !q.After.Exists() || p.stopped() {
			return nil
		}
	}
}

// candidates returns the rows of a page that may have to go. Of those that an
// index has led to, only their item can tell.
func (p *purge) candidates(page []sluice.Item) ([]sluice.Item, error) {
	rows := make([]sluice.Item, 0, len(page))
	for _, row := range page {
		key, err := keyOf(row, p.t.child.Table, p.t.child.Key)
		if err != nil {
			return nil, sluice.Permanent(fmt.Errorf("cascade of %s: %w", p.t.dedupeKey(), err))
		}
		if p.t.child.Index != "" || !p.t.stays(row, key) {
			rows = append(rows, key)
		}
	}
	return rows, nil
}

// admit returns how much of a chunk may be tried; none when the pass is to stop.
func (p *purge) admit(ctx context.Context, chunk []sluice.Item) []sluice.Item {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.end != goOn || p.err != nil:
		return nil
	case ctx.Err() != nil:
		p.err = fmt.Errorf("cascade of %s: %w", p.t.dedupeKey(), context.Cause(ctx))
		return nil
	case p.outOfTime():
		p.end = more
		return nil
	case p.rows != Unlimited && p.tried+len(chunk) > p.rows:
		chunk, p.end = chunk[:p.rows-p.tried], more // these are still tried
	}
	p.tried += len(chunk)
	return chunk
}

// outOfTime reports whether the run is to end for the time that it took. The
// caller holds the lock. A message that has deleted nothing goes on: sent once
// more, it would begin with the same rows, and go round for ever.
func (p *purge) outOfTime() bool {
	return !p.until.IsZero() && !time.Now().Before(p.until) && (p.other || p.deleted > 0)
}

// stopInTime stops a pass that reads rows that stay, which nobody admits.
func (p *purge) stopInTime() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.end == goOn && p.err == nil && p.outOfTime() {
		p.end = more
	}
}

// delete deletes rows.
func (p *purge) delete(ctx context.Context, keys []sluice.Item) error {
	if p.t.child.Index != "" {
		var err error
		if keys, err = p.children(ctx, keys); err != nil {
			return err
		}
	}
	p.mu.Lock()
	stale := time.Since(p.checked) > staleAfter
	p.mu.Unlock()
	if stale {
		if _, err := p.parentIsBack(ctx); err != nil {
			return err
		}
	}
	if len(keys) == 0 || p.isBack() {
		return nil
	}
	errs := p.t.c.c.DeleteAll(ctx, p.t.child.Table, keys)
	if len(errs) != 0 && len(errs) != len(keys) {
		return fmt.Errorf("cascade of %s: DeleteAll of table %s returned %d errors for %d keys", p.t.dedupeKey(), p.t.child.Table, len(errs), len(keys))
	}
	p.settle(keys, errs)
	return nil
}

// settle counts what became of deletes.
func (p *purge) settle(keys []sluice.Item, errs []error) {
	p.mu.Lock()
	gone := len(keys)
	for i, err := range errs {
		if err != nil {
			gone--
			p.failures.add(keys[i], err)
		}
	}
	if gone > 0 {
		p.failures.inARow = 0
	}
	p.deleted += gone
	if p.failures.inARow >= tooMany && p.end == goOn {
		p.end = gaveUp
	}
	p.mu.Unlock()
	if gone > 0 && p.t.c.c.Hooks.Deleted != nil {
		p.t.c.c.Hooks.Deleted(p.t.child.Table, gone)
	}
}

// children reads rows that an index has led to and returns the keys of those
// that are children now.
func (p *purge) children(ctx context.Context, keys []sluice.Item) ([]sluice.Item, error) {
	var out []sluice.Item
	for _, key := range keys {
		it, err := p.t.c.c.Get(ctx, p.t.child.Table, key)
		if err != nil {
			return nil, fmt.Errorf("cascade of %s: reading a row of table %s that index %s has led to: %w", p.t.dedupeKey(), p.t.child.Table, p.t.child.Index, err)
		}
		if it.Exists() && p.t.belongs(it) && !p.t.stays(it, key) {
			out = append(out, key)
		}
	}
	return out, nil
}

func (p *purge) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end != goOn || p.err != nil
}

func (p *purge) isBack() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end == parentBack
}

// guard calls f and keeps its error. A panic, or the end of its goroutine, is
// one too: here it would take the process with it, where the caller's own is
// the record's.
func (p *purge) guard(f func() error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		p.fail(&sluice.PanicError{Value: recover(), Stack: debug.Stack()})
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
