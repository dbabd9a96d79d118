package indices

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice/document"
	"github.com/sluicehq/sluice/sinks/opensearch"
)

// retryCheck is how long a failed check counts for other writes.
const retryCheck = 5 * time.Second

// checks remembers which indices a check has passed.
type checks struct {
	check func(ctx context.Context, name string) error

	running chan struct{} // holds one token: one check at a time
	mu      sync.Mutex
	results map[string]checkResult // by name
}

type checkResult struct {
	err error
	at  time.Time
}

func newChecks(check func(ctx context.Context, name string) error) *checks {
	return &checks{check: check, running: make(chan struct{}, 1), results: map[string]checkResult{}}
}

// pass returns the result of the check of an index. A good result counts for ever.
func (c *checks) pass(ctx context.Context, name string) error {
	if r, ok := c.known(name); ok {
		return r.err
	}
	select {
	case c.running <- struct{}{}:
		defer func() { <-c.running }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if r, ok := c.known(name); ok {
		return r.err
	}
	err := c.check(ctx, name)
	if ctx.Err() == nil {
		c.mu.Lock()
		c.results[name] = checkResult{err, time.Now()}
		c.mu.Unlock()
	}
	return err
}

func (c *checks) known(name string) (checkResult, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.results[name]
	return r, ok && (r.err == nil || time.Since(r.at) < retryCheck)
}

// writer wraps write: the first write to an index waits for its check.
func (c *checks) writer(write func(context.Context, document.Op) error) func(context.Context, document.Op) error {
	return func(ctx context.Context, op document.Op) error {
		if err := c.pass(ctx, op.Index); err != nil {
			return err
		}
		return write(ctx, op)
	}
}

// Unmarked wraps the write of a program whose documents are not versioned by
// sequence: it never writes to an index whose documents are, nor to an alias of
// several indices ([SchemeError]). The check needs the permission to read the
// index. A program without it writes unchecked.
func (c *Cluster) Unmarked(write func(context.Context, document.Op) error) func(context.Context, document.Op) error {
	return newChecks(c.CheckUnmarked).writer(write)
}

// CheckUnmarked is the check of [Cluster.Unmarked] for one index. It asks each time.
func (c *Cluster) CheckUnmarked(ctx context.Context, name string) error {
	d, err := c.describe(ctx, name)
	var status *opensearch.StatusError
	switch {
	case errors.As(err, &status) && (status.Status == http.StatusForbidden || status.Status == http.StatusUnauthorized):
		return nil
	case err != nil || d == nil:
		return err
	case d.versions != versions{}:
		return &SchemeError{name, "its documents are versioned by " + d.versions.By, "use the same version in this program, or write to another index"}
	}
	return nil
}
