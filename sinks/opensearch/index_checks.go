package opensearch

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
)

const (
	// checkAgain is how long a good result counts: somebody can delete the index,
	// adopt it or change its alias while programs write to it.
	checkAgain = time.Minute
	// retryCheck is how long a failed check counts for other writes.
	retryCheck = 5 * time.Second
)

// checks remembers which indices a check has passed.
type checks struct {
	check func(ctx context.Context, name string) error

	running chan struct{} // holds one token: one check at a time
	mu      sync.Mutex
	results map[string]checkResult // by name
}

// checkResult is zero of an index that was not checked.
type checkResult struct {
	err   error
	until time.Time // it counts
}

func (r checkResult) fresh() bool { return time.Now().Before(r.until) }
func (r checkResult) good() bool  { return r.err == nil && !r.until.IsZero() }

func newChecks(check func(ctx context.Context, name string) error) *checks {
	return &checks{check: check, running: make(chan struct{}, 1), results: map[string]checkResult{}}
}

// pass returns the result of the check of an index. It asks again after a while.
// Meanwhile the index stays good for other writes, and it does so too if the
// cluster gives no answer.
func (c *checks) pass(ctx context.Context, name string) error {
	last := c.last(name)
	if last.fresh() {
		return last.err
	}
	if last.good() {
		select {
		case c.running <- struct{}{}:
		default:
			return nil
		}
	} else {
		select {
		case c.running <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-c.running }()
	if last = c.last(name); last.fresh() {
		return last.err
	}
	err := c.check(ctx, name)
	result := checkResult{err, time.Now().Add(checkAgain)}
	if err != nil {
		result.until = time.Now().Add(retryCheck)
		if scheme := new(docrules.SchemeError); last.good() && !errors.As(err, &scheme) {
			result.err = nil
		}
	}
	if ctx.Err() == nil {
		c.mu.Lock()
		c.results[name] = result
		c.mu.Unlock()
	}
	return result.err
}

func (c *checks) last(name string) checkResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.results[name]
}

// writer wraps write: the first write to an index waits for its check, and one a
// minute.
func (c *checks) writer(write func(context.Context, document.Op) error) func(context.Context, document.Op) error {
	return func(ctx context.Context, op document.Op) error {
		if err := c.pass(ctx, op.Index); err != nil {
			return op.Relabel(err)
		}
		return write(ctx, op)
	}
}

// Unmarked wraps the write of a program whose documents are not versioned by
// sequence: it never writes to an index whose documents are, nor to an alias of
// several indices. The check needs the permission to read the index. A program
// without it writes unchecked.
func (c *Indices) Unmarked(write func(context.Context, document.Op) error) func(context.Context, document.Op) error {
	return newChecks(c.CheckUnmarked).writer(write)
}

// CheckUnmarked is the check of [Indices.Unmarked] for one index. It asks each time.
func (c *Indices) CheckUnmarked(ctx context.Context, name string) error {
	d, err := c.describe(ctx, name)
	var status *StatusError
	switch {
	case errors.As(err, &status) && (status.Status == http.StatusForbidden || status.Status == http.StatusUnauthorized):
		return nil
	case err != nil || d == nil:
		return err
	case d.versions != versions{}:
		return unfit(name, "its documents are versioned by "+d.versions.By, "use the same version in this program, or write to another index")
	}
	return nil
}
