package reindex

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/docrules"
)

// maxViews limits the names that a writer caches.
const maxViews = 1000

// view is where the writes for one name go.
type view struct {
	asked   time.Time // before the cluster was asked
	primary []string  // the indices behind the name; empty if it is not an alias
	also    []string
	deletes []string // deletions alone
}

// fresh reports whether v may still be used.
func (v *view) fresh(ttl time.Duration) bool {
	now := time.Now()
	return young(now.Sub(v.asked), now.Round(0).Sub(v.asked.Round(0)), ttl)
}

// young judges an age by two clocks: the monotonic one may have stood still
// while the machine was suspended, and the wall clock may have been set.
func young(monotonic, wall, ttl time.Duration) bool {
	return monotonic < ttl && wall < ttl && wall >= 0
}

// views are those of one writer.
type views struct {
	behind func(context.Context, ...string) (map[string][]string, error)
	ttl    time.Duration

	mu    sync.Mutex
	known map[string]*view
	asked map[string]chan struct{} // by a call in progress; closed at its end
}

// of returns a view that is fresh when it is returned. Calls that need the same
// one ask once.
func (v *views) of(ctx context.Context, name string) (*view, error) {
	for {
		v.mu.Lock()
		if is := v.known[name]; is != nil && is.fresh(v.ttl) {
			v.mu.Unlock()
			return is, nil
		}
		inProgress, ok := v.asked[name]
		if !ok {
			ended := make(chan struct{})
			v.asked[name] = ended
			v.mu.Unlock()
			return v.ask(ctx, name, ended)
		}
		v.mu.Unlock()
		select {
		case <-inProgress: // and if it failed, by its own context perhaps, it is our turn
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (v *views) ask(ctx context.Context, name string, ended chan struct{}) (is *view, err error) {
	defer func() {
		v.mu.Lock()
		if err == nil {
			v.keep(name, is)
		}
		delete(v.asked, name)
		v.mu.Unlock()
		close(ended)
	}()
	asked := time.Now()
	also, deletes := name+docrules.AlsoSuffix, name+docrules.DeletesSuffix
	found, err := v.behind(ctx, name, also, deletes)
	if err != nil {
		return nil, fmt.Errorf("looking up what is behind the alias %s: %w", name, err)
	}
	return &view{asked: asked, primary: found[name], also: found[also], deletes: found[deletes]}, nil
}

// keep caches a view. Names may be made of data, so old entries are dropped when
// there are too many.
func (v *views) keep(name string, is *view) {
	if len(v.known) >= maxViews {
		for other, view := range v.known {
			if !view.fresh(v.ttl) {
				delete(v.known, other)
			}
		}
		if len(v.known) >= maxViews {
			clear(v.known)
		}
	}
	v.known[name] = is
}
