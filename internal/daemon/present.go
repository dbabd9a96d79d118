package daemon

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/holders"
)

// present puts the error of the call that runs in place of the last call's, once it
// has run for slowAfter, and says else when the last one was. flow counts an item as
// failing once its call has returned, and forgets a message that goes back to its
// queue: present counts both, unless another state of the route tells of them.
func (c *calls) present(states []flow.RouteState, now time.Time) []flow.RouteState {
	before := states
	states = slices.Clone(states)
	for i := range states {
		s := &states[i]
		rc := c.named(s.Route)
		if rc == nil {
			continue
		}
		rc.mu.Lock()
		running := rc.slow(now)
		failing, _, last := rc.troubled(now, running)
		told := slices.ContainsFunc(before, func(b flow.RouteState) bool { return b.Route == s.Route && b.State != flow.Works })
		if s.Err == nil && !told {
			s.Err = last
		}
		var hanging int
		s.Err, hanging = rc.present(s.Err, now, running)
		if !told {
			s.Failing = max(s.Failing, failing, hanging)
		}
		rc.mu.Unlock()
	}
	return states
}

// reasons corrects why a daemon is not ready: each route's error is the present
// one, and routes are added that have just begun to fail.
func (c *calls) reasons(reasons []string, before []flow.RouteState) []string {
	now := time.Now()
	for i, s := range c.present(before, now) {
		if old := before[i].Trouble(); old != "" {
			if at := slices.Index(reasons, old); at >= 0 {
				reasons[at] = s.Trouble()
			}
			continue
		}
		if rc := c.named(s.Route); rc != nil && i == slices.IndexFunc(before, func(b flow.RouteState) bool { return b.Route == s.Route }) {
			if trouble := rc.trouble(now); trouble != "" {
				reasons = append(reasons, trouble)
			}
		}
	}
	return reasons
}

// forEverybody names the routes that have just begun to fail, for readers without
// the daemon's token. It omits routes in states.
func (c *calls) forEverybody(states []flow.RouteState, now time.Time) (all []string) {
	for _, rc := range c.routes {
		if slices.ContainsFunc(states, func(s flow.RouteState) bool { return s.Route == rc.name && s.Trouble() != "" }) {
			continue
		}
		rc.mu.Lock()
		if n, since, _ := rc.troubled(now, rc.slow(now)); n > 0 {
			all = append(all, fmt.Sprintf("route %q: fails since %s", rc.name, since.Format(time.RFC3339)))
		}
		rc.mu.Unlock()
	}
	return all
}

// lanes adds the slow calls to the items that wait, the oldest first.
func (c *calls) lanes(held []holders.Item) []holders.Item {
	type place struct{ route, table, shard, sequence string }
	at := make(map[place]int, len(held))
	for i, l := range held {
		at[place{l.Route, l.Table, l.Shard, l.Sequence}] = i
	}
	for _, one := range c.slow(time.Now()) {
		i, ok := at[place{one.route, one.of.table, one.of.shard, one.of.sequence}]
		if ok && one.of.sequence != "" {
			held[i].Error = plain(one.err)
			continue
		}
		source := "stream"
		switch {
		case one.origin == sluice.Backfilled:
			source = "backfill"
		case one.of.sequence == "":
			source = "queue"
		}
		held = append(held, holders.Item{
			Source: source, Table: one.of.table, Shard: one.of.shard, Sequence: one.of.sequence, Route: one.route,
			Attempts: 1, AgeSeconds: time.Since(one.began).Seconds(), Error: plain(one.err),
		})
	}
	slices.SortStableFunc(held, func(a, b holders.Item) int { return cmp.Compare(b.AgeSeconds, a.AgeSeconds) })
	return held
}

// retriesEnd is how long no sink must retry before its next retries are logged.
const retriesEnd = time.Minute

// watchRetries has the log say once that the sink of a route tries again by
// itself, until ctx ends.
func (c *calls) watchRetries(ctx context.Context, logger *slog.Logger) {
	last := make(map[string]time.Time) // by route
	for backoff.Sleep(ctx, time.Second) == nil {
		now := time.Now()
		for _, one := range c.slow(now) {
			if !one.retries {
				continue
			}
			if seen, ok := last[one.route]; !ok || now.Sub(seen) > retriesEnd {
				logger.Warn("sink fails and is tried again; sluice status --held lists the records that wait for it", "route", one.route, "since", one.began, "error", one.err)
			}
			last[one.route] = now
		}
	}
}
