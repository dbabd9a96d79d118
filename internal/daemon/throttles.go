package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/backoff"
	"github.com/sluicehq/sluice/internal/pauses"
	"github.com/sluicehq/sluice/state"
)

const (
	throttleTick   = 500 * time.Millisecond
	changeTimeout  = 10 * time.Second
	readUntold     = 4 * time.Second // pauses, by a worker that others cannot tell of a change
	lossAlarm      = 6 * time.Hour
	lossAlarmEvery = time.Hour
)

// newsStore is a state of several processes that tell each other of changes.
type newsStore interface{ News(app string) uint64 }

// throttles applies the stored pauses of routes to the routes of this process.
type throttles struct {
	store  state.Values
	app    string
	news   newsStore // nil: this process alone changes the state
	logger *slog.Logger

	changing sync.Mutex // held during requests, taken before mu

	mu      sync.Mutex
	group   *flow.Group
	claims  bool                // of shards: from the first on, News counts
	more    bool                // the process calls routes without a claim, too
	known   map[string]*running // by route
	read    time.Time           // start of the last good read; zero: none yet
	tried   time.Time           // start of the last one
	failed  bool                // the last one
	heard   uint64              // News before that
	ended   []pauses.Pause      // to be removed from the state
	alarmed map[string]time.Time
}

// running is a pause that this process has seen.
type running struct {
	pauses.Pause
	ends  time.Time // by this process' monotonic clock
	began bool      // seen soon after its begin: its end is known exactly
	over  bool
}

func newThrottles(store state.Values, app string, group *flow.Group, claims, more bool, logger *slog.Logger) *throttles {
	t := &throttles{store: store, app: app, group: group, claims: claims, more: more, logger: logger, known: make(map[string]*running), alarmed: make(map[string]time.Time)}
	t.news, _ = store.(newsStore)
	return t
}

// use replaces the routes by those of another group. The pauses last, by the names.
func (t *throttles) use(group *flow.Group, claims, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := group != t.group
	t.group, t.claims, t.more = group, claims, more
	for _, s := range group.States() { // which may have inherited a pause that is over
		group.Throttle(s.Route, flow.Throttle{})
	}
	for _, r := range t.known {
		if r.over {
			continue
		}
		if !group.Throttle(r.Route, flow.Throttle{Paused: r.Paused(), Concurrency: r.Concurrency, Rate: r.Rate}) && fresh {
			t.logger.Warn(pausedNoRoute, "route", r.Route)
		}
	}
}

const pausedNoRoute = "the state has a pause of a route that this daemon does not have"

// states returns the states of the routes.
func (t *throttles) states() []flow.RouteState {
	t.mu.Lock()
	group := t.group
	t.mu.Unlock()
	return group.States()
}

// refresh reads the pauses and applies them.
func (t *throttles) refresh(ctx context.Context) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	return t.refreshNow(ctx)
}

func (t *throttles) refreshNow(ctx context.Context) error {
	var heard uint64
	if t.news != nil {
		heard = t.news.News(t.app)
	}
	begin := time.Now()
	t.mu.Lock()
	t.tried, t.failed = begin, true
	t.mu.Unlock()
	all, err := pauses.Read(ctx, t.store, t.app)
	if err != nil {
		return fmt.Errorf("the pauses of routes: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for _, p := range all {
		if have := t.known[p.Route]; have == nil || have.ID != p.ID {
			t.begin(p, now)
		}
	}
	for route, have := range t.known {
		if slices.ContainsFunc(all, func(p pauses.Pause) bool { return p.Route == route }) {
			continue
		}
		delete(t.known, route)
		if !have.over {
			t.group.Throttle(route, flow.Throttle{})
			t.logger.Info("route goes on: an operator has resumed it", "route", route)
		}
	}
	t.read, t.heard, t.failed = begin, heard, false
	return nil
}

// begin applies p, which was set after the last read. So its age is less than the time
// since then, whatever the clocks of two machines say. mu is held.
func (t *throttles) begin(p pauses.Pause, now time.Time) {
	age := max(0, time.Since(p.Since))
	if !t.read.IsZero() {
		age = min(age, now.Sub(t.read))
	}
	length := min(p.For, pauses.Longest)
	r := &running{Pause: p, ends: now.Add(length - age), began: !t.read.IsZero()}
	old := t.known[p.Route]
	t.known[p.Route] = r
	if r.over = age >= length; r.over {
		if old != nil && !old.over {
			t.group.Throttle(p.Route, flow.Throttle{})
		}
		return
	}
	if !t.group.Throttle(p.Route, flow.Throttle{Paused: p.Paused(), Concurrency: p.Concurrency, Rate: p.Rate}) {
		t.logger.Warn(pausedNoRoute, "route", p.Route)
		return
	}
	attrs := []any{"route", p.Route, "until", r.ends.Round(time.Second).UTC().Format(time.RFC3339)}
	if p.Paused() {
		t.logger.Warn("route paused by an operator: its records wait, and other routes go on until a shard ends or its window is full", attrs...)
	} else {
		t.logger.Warn("route slowed by an operator", append(attrs, "concurrency", p.Concurrency, "rate", p.Rate)...)
	}
}

// change makes a change of the stored pauses and applies it here, even if the client
// does not wait for that.
func (t *throttles) change(ctx context.Context, do func(context.Context) (*pauses.Pause, error)) (before *pauses.Pause, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTimeout)
	defer cancel()
	t.changing.Lock()
	defer t.changing.Unlock()
	before, err = do(ctx)
	if readErr := t.refreshNow(ctx); err == nil {
		err = readErr
	}
	return before, err
}

// watch applies changes and ends pauses until ctx ends. No pause waits at its end for
// the state, whose requests may hang.
func (t *throttles) watch(ctx context.Context) {
	var ending sync.WaitGroup
	defer ending.Wait()
	ending.Go(func() {
		for backoff.Sleep(ctx, throttleTick) == nil {
			t.expire()
			t.alarm()
		}
	})
	failed := false
	for backoff.Sleep(ctx, throttleTick) == nil {
		if t.due() {
			reading, cancel := context.WithTimeout(ctx, changeTimeout)
			err := t.refresh(reading)
			if cancel(); err != nil && !failed && ctx.Err() == nil {
				t.logger.Error("the pauses of routes cannot be read: they stay as they are", "error", err)
			}
			failed = err != nil
		}
		t.remove(ctx)
	}
}

// due reports whether the pauses must be read.
func (t *throttles) due() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case time.Since(t.tried) < time.Second: // also after a failure
		return false
	case t.failed:
		return true
	case t.news == nil: // only requests to this process change them
		return false
	}
	news, every := t.news.News(t.app), readUntold
	if t.claims && (news > 0 || !t.more) {
		every = pauses.ReadEvery
	}
	return news != t.heard || time.Since(t.read) >= every
}

// expire ends pauses whose time is over.
func (t *throttles) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for route, r := range t.known {
		if r.over || time.Until(r.ends) > 0 {
			continue
		}
		r.over = true
		t.group.Throttle(route, flow.Throttle{})
		t.logger.Info("route goes on: the time of its pause is over", "route", route)
		if r.began || t.news == nil {
			t.ended = append(t.ended, r.Pause)
		}
	}
}

// remove removes from the state the pauses that are over and whose begin this process
// has seen: a worker whose clock is wrong must not begin them again.
func (t *throttles) remove(ctx context.Context) {
	t.mu.Lock()
	ended := t.ended
	t.ended = nil
	t.mu.Unlock()
	for _, p := range ended {
		writing, cancel := context.WithTimeout(ctx, changeTimeout)
		t.changing.Lock()
		err := pauses.Over(writing, t.store, t.app, p)
		t.changing.Unlock()
		cancel()
		if err != nil && ctx.Err() == nil {
			t.logger.Warn("a pause that is over cannot be removed from the state: only a daemon whose clock is wrong would begin it again", "route", p.Route, "error", err)
		}
	}
}

// alarm logs which routes will lose records while they are paused or slowed.
func (t *throttles) alarm() {
	t.mu.Lock()
	none := len(t.known) == 0
	t.mu.Unlock()
	if none {
		return
	}
	for _, s := range t.states() {
		left, ok := s.TimeToTrim()
		if !ok || left > lossAlarm || time.Since(t.alarmed[s.Route]) < lossAlarmEvery {
			continue
		}
		t.alarmed[s.Route] = time.Now()
		t.logger.Error("the stream will forget a record that waits for a paused or slowed route: sluice route resume",
			"route", s.Route, "waiting", s.Waiting, "left", left.Round(time.Minute))
	}
}

// pauseOf returns the pause of a route, and the rest of its time.
func (t *throttles) pauseOf(route string) (p pauses.Pause, left time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.known[route]
	if r == nil || r.over {
		return pauses.Pause{}, 0, false
	}
	return r.Pause, max(0, time.Until(r.ends)), true
}

// NoSuchRoute says that name is not the name of a route.
func NoSuchRoute(name string, names []string) error {
	return fmt.Errorf("there is no route %q: want one of %s", name, strings.Join(names, ", "))
}
