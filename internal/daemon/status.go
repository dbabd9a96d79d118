package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/page"
)

// status is what the process knows of itself: without the tables, and without what other
// workers say.
func (s *sources) status() page.Status {
	st := page.Status{
		Reasons: s.unready(), Queues: []page.Queue{}, Backfills: []page.Backfill{}, Routes: s.routesShown(),
		Held: len(s.waiting()), Gaps: len(s.Gaps()),
	}
	if st.Ready = len(st.Reasons) == 0; st.Ready {
		st.Reasons = []string{}
	}
	if s.poller != nil {
		st.Worker = s.poller.Owner()
	}
	for _, b := range s.backfills.all {
		p := b.Progress()
		st.Backfills = append(st.Backfills, page.Backfill{Table: p.Table, Items: p.Items, Settled: p.Settled, Expected: p.TableItems, Finished: p.Finished})
	}
	if s.consumer != nil {
		for name, h := range s.consumer.Hands() {
			st.Queues = append(st.Queues, page.Queue{Queue: name, InHand: h.Messages, OldestSeconds: h.Oldest.Seconds()})
		}
		slices.SortFunc(st.Queues, func(a, b page.Queue) int { return strings.Compare(a.Queue, b.Queue) })
	}
	return st
}

// byRoute returns the present state of each route. A route that fails for all messages of
// a queue has two states: the second counts.
func (s *sources) byRoute() []flow.RouteState {
	all := s.group.States()
	for _, st := range s.routes() {
		if i := slices.IndexFunc(all, func(r flow.RouteState) bool { return r.Route == st.Route }); i >= 0 {
			st.Throttle, st.Oldest = all[i].Throttle, all[i].Oldest // a queue does not know them
			all[i] = st
		}
	}
	return all
}

// routesShown lists all routes.
func (s *sources) routesShown() []page.Route {
	all := []page.Route{}
	for i, r := range s.byRoute() {
		one := page.Route{
			Route: r.Route, State: r.State.String(), Since: r.Since, Failing: r.Failing, Waiting: r.Waiting, Limit: r.Limit, Error: plain(r.Err), Hour: s.rates.of(i),
		}
		if r.State == flow.Outage { // only probes are sent
			one.Limit = 0
		}
		if n := len(one.Hour); n > 0 {
			one.Last = one.Hour[n-1]
		}
		if st := s.throttles.status(r); st.Throttled() {
			one.Throttle = &page.Throttle{Paused: st.Paused, Concurrency: st.Concurrency, Rate: st.Rate, LeftSeconds: st.LeftSeconds, Text: st.Text()}
		}
		all = append(all, one)
	}
	return all
}

// awaited returns the unsettled work by source.
func (s *sources) awaited() (all []string) {
	st := s.status()
	add := func(n int, one, of string) {
		if n > 0 {
			all = append(all, plural(n, one)+" of "+of)
		}
	}
	if s.poller != nil {
		for _, t := range tablesShown(s.poller.Lineage(), s.poller.Shards(), nil, st.Worker) {
			add(int(t.Unsettled), "record", "table "+t.Table)
		}
	}
	for _, b := range st.Backfills {
		add(int(b.Items-b.Settled), "item", "the backfill of table "+b.Table)
	}
	for _, q := range st.Queues {
		add(q.InHand, "message", "queue "+q.Queue)
	}
	return all
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// plural counts things whose name gets an s when they are several.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// heldFlows are the held items as metrics take them.
func heldFlows(all []holders.Item) []flow.Held {
	held := make([]flow.Held, len(all))
	for i, l := range all {
		held[i] = flow.Held{Route: l.Route, Age: time.Duration(l.AgeSeconds * float64(time.Second))}
	}
	return held
}

// letterCounts counts dead letters for no more than a fiftieth of the time: each count
// reads all of them. While a count hangs, as on a dead disk, get returns the one before.
type letterCounts struct {
	count func(context.Context) ([]deadletter.Count, error)

	counting singleflight.Group

	mu    sync.Mutex
	last  []deadletter.Count
	at    time.Time // of last
	tried time.Time // end of the last count, which may have failed
	took  time.Duration
}

const (
	countEvery  = 30 * time.Second // for metrics; whoever asks for the status gets a new count
	countWithin = 2 * time.Second  // longest wait of a request
)

// get returns the counts and their time. It counts anew if the last count is older than
// every.
func (l *letterCounts) get(every time.Duration) ([]deadletter.Count, time.Time) {
	if l.due(every) {
		select {
		case <-l.counting.DoChan("", func() (any, error) { l.read(every); return nil, nil }):
		case <-time.After(countWithin):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.at
}

func (l *letterCounts) due(every time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tried.IsZero() || time.Since(l.tried) >= max(every, 50*l.took)
}

func (l *letterCounts) read(every time.Duration) {
	if !l.due(every) { // another call has counted since this one looked
		return
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	counts, err := l.count(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried = time.Now()
	l.took = l.tried.Sub(begin)
	// The code that lists letters reports unreadable ones.
	if counts != nil || err == nil {
		l.last, l.at = counts, begin
	}
}

// itemOf is an item whose changes wait, as the API shows it.
func itemOf(source, table, shard string, h flow.Held) holders.Item {
	return holders.Item{
		Source: source, Table: table, Shard: shard, Sequence: string(h.Sequence), Key: fmt.Sprintf("%016x", h.KeyHash), Route: h.Route, Attempts: h.Attempts,
		AgeSeconds: h.Age.Seconds(), Bytes: h.Bytes, Stuck: h.Stuck, Error: plain(h.Err),
	}
}
