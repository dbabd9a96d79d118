package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/routed"
)

// limited is a Matcher whose routes give a record up after some attempts: a replay
// does not wait for an outage to end.
type limited struct {
	sluice.Matcher
	attempts int
	items    *Items

	mu     sync.Mutex
	failed map[string]int // by record and route
}

var errBehind = errors.New("an earlier change of the item has failed again")

func limit(m sluice.Matcher, attempts int, items *Items) *limited {
	l := &limited{attempts: attempts, items: items, failed: make(map[string]int)}
	l.Matcher = routed.Rewrite(m, func(own *sluice.Route) {
		own.Handler = l.handler(own, own.Handler)
		own.MaxAge = ages // the records are old, and nothing forgets them
	})
	return l
}

const ages = 100 * 365 * 24 * time.Hour

func (l *limited) handler(rt *sluice.Route, h sluice.Handler) sluice.Handler {
	return func(ctx context.Context, rec *sluice.Record) error {
		if rec.Origin == sluice.Redriven && l.items.have(rec, rt.Name) { // which a flow holds behind nothing
			return sluice.Permanent(errBehind)
		}
		err := h(ctx, rec)
		if err == nil || sluice.IsSkip(err) || ctx.Err() != nil || sluice.IsPermanent(err) {
			return err
		}
		name := fmt.Sprintf("%d %s %s %s", rt.Index, rec.StreamARN, rec.Sequence, rec.EventID)
		l.mu.Lock()
		l.failed[name]++
		n := l.failed[name]
		if n >= l.attempts {
			delete(l.failed, name)
		}
		l.mu.Unlock()
		var rest *sluice.Remaining
		switch {
		case n >= l.attempts:
			return sluice.Permanent(fmt.Errorf("given up after %d attempts: %w", n, err))
		case errors.As(err, &rest):
			return &sluice.Remaining{Rest: l.handler(rt, rest.Rest), After: rest.After, Err: rest.Err}
		}
		return err
	}
}

// only is a Matcher for one route. Where strict is set, it must take each record:
// a dead letter's must not be passed over.
type only struct {
	*limited
	route  string
	strict bool
}

func (o only) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	n := len(dst)
	dst, err := o.limited.Match(dst, rec)
	i := slices.IndexFunc(dst[n:], func(rt *sluice.Route) bool { return rt.Name == o.route })
	switch {
	case i >= 0: // what other routes refuse does not matter
		dst[n] = dst[n+i]
		return dst[:n+1], nil
	case err != nil:
		return dst[:n], err
	case o.strict:
		return dst[:n], sluice.Permanent(fmt.Errorf("route %q does not take this record: it was removed or filters it now", o.route))
	}
	return dst[:n], nil
}
