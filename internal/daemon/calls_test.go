package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/retrying"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// quiet is a flow whose calls are watched, and the sink of its route.
type quiet struct {
	*sources
	t    *testing.T
	flow *flow.Flow
	sink atomic.Value // func(ctx context.Context, id string) error
}

func (q *quiet) calling(sink func(ctx context.Context, id string) error) { q.sink.Store(sink) }

func watchedFlow(t *testing.T, opts ...router.Option) *quiet {
	t.Helper()
	q := &quiet{t: t}
	m := router.New()
	m.Handle("*#*", func(ctx context.Context, rec *sluice.Record) error {
		id, _ := rec.Keys.Lookup("id")
		return q.sink.Load().(func(context.Context, string) error)(ctx, id.Str())
	}, append(opts, router.Name("search"))...)
	calls, watched := watchCalls(m)
	q.sources = &sources{group: flow.NewGroup(watched), checks: &checks{}, calls: calls, letters: &kept{Box: deadletter.NewBox(state.NewMemory(), "app")}}
	hooks := flow.Hooks{Handled: q.calls.handled}
	q.flow = flow.Open(t.Context(), watched, flow.Options{Group: q.group, Hooks: hooks, DeadLetter: q.letters, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, _ = q.flow.Close(ctx) // what waits is left
	})
	return q
}

func (q *quiet) put(ids ...string) {
	q.t.Helper()
	for _, id := range ids {
		rec := streamtest.Insert("orders", map[string]any{"id": id})
		if _, err := q.flow.Submit(q.t.Context(), rec); err != nil {
			q.t.Fatal(err)
		}
	}
}

func (q *quiet) ready(want string) {
	q.t.Helper()
	got := strings.Join(q.lastReasons(), "\n")
	if want == "" && got != "" || !strings.Contains(got, want) {
		q.t.Errorf("not ready because of %q, want %q", got, want)
	}
}

func (q *quiet) lastReasons() []string {
	var reasons []string
	for _, s := range q.group.States() {
		if trouble := s.Trouble(); trouble != "" {
			reasons = append(reasons, trouble)
		}
	}
	return q.calls.reasons(reasons, q.lastStates())
}

func after(d time.Duration) { time.Sleep(d); synctest.Wait() }

// While a sink gives no answer, the reason does not advise to park records.
func TestNothingIsParkedWhereNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := watchedFlow(t)
		q.calling(func(context.Context, string) error {
			return fmt.Errorf("sink search: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
		})
		q.put("a")
		after(6 * time.Second)
		q.ready(`sink search: dial: connection refused: repair what it calls`)
		if got := strings.Join(q.lastReasons(), "\n"); strings.Contains(got, "park") {
			t.Error(got)
		}
	})
}

// On a quiet table one failing record makes the route fail: no other record comes.
func TestOneRecordThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := watchedFlow(t)
		q.calling(func(context.Context, string) error { return errors.New("sink search: connection refused") })
		q.put("a")
		after(time.Second)
		q.ready("")
		after(5 * time.Second)
		q.ready(`route "search" fails for 1 record since 2000-01-01T00:00:00Z, and no other has succeeded since: ` +
			`sink search: connection refused: repair what it calls; if the record is at fault: sluice park --route "search"`)
		if got := strings.Join(q.calls.forEverybody(q.lastStates(), time.Now()), "\n"); got != `route "search": fails since 2000-01-01T00:00:00Z` {
			t.Errorf("to everybody: %q", got)
		}
		q.calling(func(context.Context, string) error { return nil })
		after(time.Minute)
		q.ready("")
		if got := q.calls.forEverybody(q.lastStates(), time.Now()); got != nil {
			t.Errorf("to everybody: %q", got)
		}
	})
}

// A record that fails while others succeed is at fault itself, and makes nothing
// of the daemon unready.
func TestBadRecordOfAQuietTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := watchedFlow(t)
		q.calling(func(_ context.Context, id string) error {
			if id == "bad" {
				return errors.New("a bug")
			}
			return nil
		})
		q.put("bad")
		after(6 * time.Second)
		q.ready("a bug")
		q.put("good")
		for range 60 {
			after(5 * time.Second)
			q.ready("")
		}
		// And then the sink is down.
		q.calling(func(context.Context, string) error { return errors.New("refused") })
		q.put("good")
		after(6 * time.Second)
		q.ready("fails for 1 record since 2000-01-01T00:05:06Z")
		q.ready("refused")
		q.calling(func(context.Context, string) error { return sluice.Permanent(errors.New("never")) })
		after(time.Minute)
		q.ready("")
	})
}

// RetryAfter and interrupted calls are no sign that the route is down.
func TestRecordsThatTellNothing(t *testing.T) {
	for name, sink := range map[string]func(context.Context, string) error{
		"later":   func(context.Context, string) error { return sluice.RetryAfter(time.Second, errors.New("later")) },
		"skipped": func(context.Context, string) error { return sluice.Skip("none") },
		"parked":  func(context.Context, string) error { return sluice.Permanent(errors.New("never")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := watchedFlow(t)
				q.calling(sink)
				q.put("a")
				after(30 * time.Second)
				q.ready("")
			})
		})
	}
}

// While the sink of a route that is down hangs, the error is that it hangs.
func TestPresentErrorOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := watchedFlow(t)
		q.calling(func(context.Context, string) error { return errors.New("connection refused") })
		const n = 40 // flow takes it for an outage, by whatever jitter
		for i := range n {
			q.put(strconv.Itoa(i))
			if i == 0 {
				after(time.Second) // calls count from a first failure on
			}
		}
		after(time.Minute)
		q.ready("fails for every record since 2000-01-01T00:00:0")
		if got := q.calls.forEverybody(q.lastStates(), time.Now()); got != nil {
			t.Errorf("told twice: %q", got)
		}
		q.ready("connection refused")
		release := make(chan struct{})
		q.calling(func(context.Context, string) error { <-release; return nil })
		after(40 * time.Second)
		reasons := q.lastReasons()
		if len(reasons) != 1 || !strings.Contains(reasons[0], "no answer for ") || strings.Contains(reasons[0], "refused") {
			t.Errorf("reasons %q", reasons)
		}
		if s := q.routes()[0]; !strings.Contains(fmt.Sprint(s.Err), "no answer for ") {
			t.Errorf("status shows %v", s.Err)
		}
		all := q.calls.lanes(lanesOf(q.flow))
		hanging := slices.DeleteFunc(slices.Clone(all), func(l holders.Item) bool { return !strings.Contains(l.Error, "no answer for ") })
		if len(all) != n || len(hanging) == 0 || len(hanging) > 2 {
			t.Errorf("lanes %+v, want %d, with the probes", all, n)
		}
		close(release)
		after(time.Minute)
		q.ready("")
	})
}

func lanesOf(f *flow.Flow) (all []holders.Item) {
	for _, h := range f.Held() {
		all = append(all, itemOf("stream", "orders", "", h))
	}
	return all
}

// A sink that tries again by itself is heard within 5 s: in the log, among the
// items that wait, and in why the daemon is not ready.
func TestSinkThatRetriesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := watchedFlow(t)
		var free atomic.Bool
		q.calling(func(ctx context.Context, _ string) error {
			for !free.Load() {
				time.Sleep(100 * time.Millisecond)
				retrying.From(ctx).Retrying(errors.New("index orders: cluster_block_exception"))
			}
			return nil
		})
		var log bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			q.calls.watchRetries(ctx, slog.New(slog.NewTextHandler(&log, nil)))
		}()
		q.put("a", "b")
		after(5 * time.Second)
		if lanes := q.calls.lanes(nil); len(lanes) != 2 || lanes[0].Error != "tried again by the sink since 2000-01-01T00:00:00Z: index orders: cluster_block_exception" {
			t.Errorf("lanes %+v", lanes)
		}
		if r := q.routes()[0]; r.Route != "search" || r.Failing != 2 {
			t.Errorf("route %+v, want 2 failing items", r)
		}
		after(30 * time.Second)
		q.ready("fails for 2 records since 2000-01-01T00:00:00Z")
		q.ready("cluster_block_exception")
		free.Store(true)
		after(time.Second)
		q.ready("")
		if lanes := q.calls.lanes(nil); len(lanes) != 0 {
			t.Errorf("lanes %+v", lanes)
		}
		stop()
		<-watched
		if n := strings.Count(log.String(), "level=WARN msg=\"sink fails and is tried again"); n != 1 || !strings.Contains(log.String(), "time=2000-01-01T00:00:03.000Z") {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
	})
}

// flow forgets a message that goes back to its queue. The status shows it as long as
// the daemon is not ready for it, and once.
func TestMessageThatFailsIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rc := &routeCalls{name: "send", lasts: failureLasts}
		c := &calls{routes: []*routeCalls{rc}}
		rc.failed(identity{}, errors.New("down"), time.Now())
		after(6 * time.Second)
		works, outage := flow.RouteState{Route: "send"}, flow.RouteState{Route: "send", State: flow.Outage, Failing: 9}
		if s := c.present([]flow.RouteState{works}, time.Now())[0]; rc.trouble(time.Now()) == "" || s.Failing != 1 || s.Err == nil {
			t.Errorf("%+v", s)
		}
		if s := c.present([]flow.RouteState{works, outage}, time.Now()); s[0].Failing != 0 || s[0].Err != nil || s[1].Failing != 9 {
			t.Errorf("shown twice: %+v", s)
		}
	})
}

// An old error has its time.
func TestErrorOfAWhileAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rc := &routeCalls{}
		down := errors.New("down")
		rc.failed(identity{}, down, time.Now())
		if got, _ := rc.present(down, time.Now().Add(9*time.Second), nil); got != down {
			t.Error(got)
		}
		if got, _ := rc.present(down, time.Now().Add(10*time.Second), nil); got.Error() != "last tried 2000-01-01T00:00:00Z: down" || !errors.Is(got, down) {
			t.Error(got)
		}
	})
}

// The rest of a record's work is watched as well.
func TestRestIsWatched(t *testing.T) {
	m := router.New()
	m.Handle("*#*", func(context.Context, *sluice.Record) error {
		return &sluice.Remaining{Err: errors.New("half"), Rest: func(ctx context.Context, _ *sluice.Record) error {
			if retrying.From(ctx) == nil {
				t.Error("nobody listens")
			}
			return nil
		}}
	})
	_, watched := watchCalls(m)
	rec := streamtest.Insert("orders", map[string]any{"id": "a"})
	var rest *sluice.Remaining
	if err := watched.Routes()[0].Handler(t.Context(), &rec); !errors.As(err, &rest) {
		t.Fatal(err)
	}
	if err := rest.Rest(t.Context(), &rec); err != nil {
		t.Error(err)
	}
}

// BenchmarkWatched measures the cost of watching for each call, with many workers.
func BenchmarkWatched(b *testing.B) {
	m := router.New()
	m.Handle("*#*", func(context.Context, *sluice.Record) error { return nil })
	_, watched := watchCalls(m)
	h, rec := watched.Routes()[0].Handler, streamtest.Insert("orders", map[string]any{"id": "a"})
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = h(b.Context(), &rec)
		}
	})
}
