package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/holders"
	"github.com/sluicehq/sluice/internal/localtest"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/streamtest"
)

// Page and metrics show the held records and the reason.
func TestDaemonTellsWhatItHolds(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	c := startChild(t, "holding", nil, "--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0", "--log-level", "debug", "--grace", "10s",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL())
	c.until("shard started", 1)
	if code, body := c.ask("GET", "/lanes"); code != 200 || body != "no item is held\n" {
		t.Errorf("/lanes: %d %q", code, body)
	}
	if code, body := c.ask("GET", "/lanes?format=json"); code != 200 || !strings.Contains(body, `"lanes": []`) {
		t.Errorf("/lanes in JSON: %d %q", code, body)
	}
	for _, id := range []string{"held", "held", "poison", "well"} {
		table.Put(map[string]any{"id": id, "payload": "secret"})
	}
	c.until("msg=handled", 3) // all but the second of held

	_, body := c.ask("GET", "/lanes?format=json")
	var got struct{ Lanes []lane }
	if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Lanes) != 1 {
		t.Fatalf("/lanes in JSON: %s, %v", body, err)
	}
	shard, seq := table.Shards()[0].ID, string(table.Changes()[0].Sequence)
	if l := got.Lanes[0]; l.Source != "stream" || l.Table != "orders" || l.Shard != shard || l.Sequence != seq || len(l.Key) != 16 || l.Route != "work" ||
		l.Attempts != 1 || l.Bytes <= 0 || l.Stuck || l.Error != "retry after 1h0m0s: not\tyet\nof all" {
		t.Errorf("lane %+v", l)
	}
	_, body = c.ask("GET", "/lanes")
	if row := regexp.MustCompile(`(?m)^orders +` + shard + ` +` + seq + ` +[0-9a-f]{16} +work +1 +\d+s +\d+ +retry after 1h0m0s: not yet`); !row.MatchString(body) || strings.Contains(body, "of all") {
		t.Errorf("/lanes: %s", body)
	}

	_, body = c.ask("GET", "/")
	for _, want := range []string{"holding, version ", "\nworker ", "\nready\n", "held items: 1 (/lanes)", "dead letters: 1\n  1 of table orders, route work (record)", "table orders: 1 shard, lag ", shard} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the status:\n%s", want, body)
		}
	}
	var st status
	if _, body := c.ask("GET", "/?format=json"); json.Unmarshal([]byte(body), &st) != nil || !st.Ready || st.Reasons == nil || st.HeldLanes != 1 || len(st.Tables) != 1 || st.Tables[0].Unsettled < 2 {
		t.Errorf("status in JSON: %s", body)
	}
	_, body = c.ask("GET", "/metrics")
	for _, want := range []string{
		"\nsluice_ready 1\n", "\nsluice_held_lanes{route=\"work\"} 1\n", "\nsluice_dead_letters{kind=\"record\",route=\"work\"} 1\n",
		"\nsluice_stream_shards{state=\"reading\",table=\"orders\"} 1\n", "\nsluice_time_to_loss_seconds{table=\"orders\"} 86",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the metrics", strings.TrimSpace(want))
		}
	}
	if strings.Contains(c.output(), "secret") {
		t.Error("the log holds what is in the items")
	}
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit %d:\n%s", code, c.output())
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestAwaited(t *testing.T) {
	st := status{
		Tables:    []tableStatus{{Table: "a", Unsettled: 2}, {Table: "b"}, {Table: "c", Unsettled: 1}},
		Backfills: []backfilling{{Table: "a", Items: 7, Settled: 4}, {Table: "b", Items: 9, Settled: 9, Finished: true}},
		Queues:    []queueStatus{{Queue: "jobs", InHand: 1}, {Queue: "calls"}},
	}
	want := []string{"2 records of table a", "1 record of table c", "3 items of the backfill of table a", "1 message of queue jobs"}
	if got := st.awaited(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestStatusText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(90 * time.Second)
		var shards []poller.Status
		for i := range 25 {
			shards = append(shards, poller.Status{Shard: poller.Shard{Table: "a", ID: fmt.Sprintf("s%02d", i)}, Lag: time.Duration(i) * time.Second, Unsettled: 2, LastPoll: began})
		}
		shards = append(shards, poller.Status{Shard: poller.Shard{Table: "b", ID: "x"}, Err: errors.New("throttled\nmore"), LastPoll: time.Now()})
		st := status{
			Application: "shop", Version: "v1", Started: began, CountedAt: time.Now().Add(-7 * time.Second), Reasons: []string{"one", "two"}, Tables: tablesOf(shards, map[string]int{"a": 30, "b": 1, "c": 3}), Worker: "host/1/A", Config: "1a2b3c4d",
			Queues: []queueStatus{{"jobs", 3, 61}}, Backfills: []backfilling{{Table: "a", Settled: 5, Expected: 9}, {Table: "b", Settled: 7, Finished: true}},
			HeldLanes: 4, Routes: []routeStatus{{"r", "outage", began, 3, 5, 0, "down\nand out", nil}, {"s", "overloaded", began, 0, 1, 4, "429", nil}, {"t", "works", began, 1, 2, 0, "bad", nil}, {"u", "works", began, 0, 0, 0, "once", nil},
				{"v", "works", began, 0, 2, 0, "", &RouteStatus{Route: "v", Paused: true, LeftSeconds: 3600, TrimSeconds: new(float64(7200))}}, {"w", "outage", began, 3, 0, 0, "down", &RouteStatus{Concurrency: 4, Rate: 0.5, LeftSeconds: 60}}}, Gaps: 1,
			DeadLetters: []deadletter.Count{{Route: "r", Table: "a", Kind: "record", N: 2}, {Table: "b", Kind: "gap", N: 1}},
		}
		w := httptest.NewRecorder()
		statusPage(func() status { return st }).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		got := w.Body.String()
		for _, want := range []string{
			"shop, version v1, running for 1m30s\nworker host/1/A, configuration 1a2b3c4d\nNOT READY\n  one\n  two\n", "held items: 4", "dead letters: 3 (counted 7s ago)\n  2 of table a, route r (record)\n  1 of table b, route - (gap)\n",
			"acknowledged: 1\nroute r: outage since 2000-01-01T00:00:00Z, 3 items failing, 5 records waiting: down\nroute s: overloaded since 2000-01-01T00:00:00Z, 1 record waiting, 4 calls at a time: 429\nroute t: 1 item failing, 2 records waiting: bad\nroute u: works, after an error: once\nroute v: paused for 1h0m0s, and the stream forgets the oldest waiting record in 2h0m0s; works, 2 records waiting\nroute w: slowed to 4 calls at a time, 0.5 records a second for 1m0s; outage since 2000-01-01T00:00:00Z, 3 items failing: down\n",
			"table a: 25 of 30 open shards, lag 24s, 50 records unsettled\n  s24  lag 24s  2 unsettled  polled 1m30s ago", "  and 5 that lag less (?format=json shows all)\n",
			"table b: 1 shard, lag 0s, 0 records unsettled\n  x  lag 0s  0 unsettled  polled 0s ago  throttled\n",
			"table c: 0 of 3 open shards, lag 0s, 0 records unsettled\n",
			"queue jobs: 3 messages in hand, the oldest for 1m1s\n", "backfill of table a: 5 of about 9 items settled\n", "backfill of table b: finished, 7 items\n",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept", "application/json")
		w = httptest.NewRecorder()
		statusPage(func() status { return st }).ServeHTTP(w, r)
		var back status
		if err := json.Unmarshal(w.Body.Bytes(), &back); err != nil || w.Header().Get("Content-Type") != "application/json" || len(back.Tables[0].Shards) != 25 || back.Tables[1].Shards[0].Error != "throttled\nmore" {
			t.Errorf("%s, %v", w.Body.String(), err)
		}
	})
}

// In an outage one probe at a time runs, regardless of the learned limit.
func TestNoLimitInAnOutage(t *testing.T) {
	for state, want := range map[flow.State]int{flow.Outage: 0, flow.Recovering: 7, flow.Overloaded: 7, flow.Partial: 7} {
		r := routeStatusOf(flow.RouteState{Route: "r", State: state, Limit: 7, Failing: 1, Waiting: 2, Err: errors.New("down")})
		if r.Limit != want || r.Route != "r" || r.State != state.String() || r.Failing != 1 || r.Waiting != 2 || r.Error != "down" {
			t.Errorf("%v: %+v, want limit %d", state, r, want)
		}
	}
}

func TestLaneTells(t *testing.T) {
	l := laneOf("backfill", "t", "", flow.Held{KeyHash: 255, Stuck: true, Age: time.Minute})
	of := laneOf("stream", "t", "s1", flow.Held{KeyHash: 1, Sequence: "977119800000398701107540001", Attempts: 2, Route: "r", Bytes: 9})
	w := httptest.NewRecorder()
	var others []holders.Worker
	var failed error
	h := lanes(func() ([]holders.Item, []string) { return addItems(items([]lane{l, of}), others, failed) })
	h.ServeHTTP(w, httptest.NewRequest("GET", "/lanes", nil))
	want := `TABLE  SHARD  SEQUENCE                     KEY               ROUTE  ATTEMPTS  AGE   BYTES  ERROR
t      -      -                            00000000000000ff  -      0         1m0s  0      its handler does not return
t      s1     977119800000398701107540001  0000000000000001  r      2         0s    9      
`
	if got := w.Body.String(); got != want {
		t.Errorf("%s", got)
	}
	others = []holders.Worker{{Name: "h/2/B", Report: &holders.Report{Held: 3, Items: []holders.Item{{Worker: "h/2/B", Table: "t", Route: "r", AgeSeconds: 30}}}}}
	failed = errors.New("timeout")
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/lanes", nil))
	if got := w.Body.String(); !strings.Contains(got, "\nthis one  t      s1 ") || !strings.Contains(got, "\nh/2/B     t      -  ") || !strings.HasSuffix(got, "\nworker h/2/B holds 2 more\nwhat other workers do is not known: timeout\n") {
		t.Errorf("%s", got)
	}
	w = httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/lanes?format=json", nil))
	var body struct {
		Lanes    []holders.Item
		Unlisted []string
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || len(body.Lanes) != 3 || body.Lanes[1].Worker != "h/2/B" || body.Lanes[0].Worker != "" || len(body.Unlisted) != 2 {
		t.Errorf("%v: %s", err, w.Body)
	}
}

// Dead letters are counted now and then for metrics, and anew for who asks if that is quick.
func TestLetterCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, took := 0, time.Second
		var fail error
		l := &letterCounts{count: func(context.Context) ([]deadletter.Count, error) {
			calls++
			time.Sleep(took)
			if fail != nil {
				return nil, fail
			}
			return []deadletter.Count{{N: calls}}, nil
		}}
		get := func(every time.Duration) []deadletter.Count {
			counts, _ := l.get(every)
			return counts
		}
		for range 3 {
			if got := get(countEvery); calls != 1 || len(got) != 1 || got[0].N != 1 {
				t.Errorf("%d calls, %v", calls, got)
			}
		}
		time.Sleep(49 * time.Second)
		if get(0); calls != 1 {
			t.Error("counted again within fifty times the time that it took")
		}
		time.Sleep(2 * time.Second)
		took = 0
		if got := get(countEvery); calls != 2 || got[0].N != 2 {
			t.Errorf("%d calls, %v", calls, got)
		}
		time.Sleep(countEvery - time.Second)
		if get(countEvery); calls != 2 {
			t.Error("counted again for metrics within half a minute")
		}
		at := time.Now()
		if got, counted := l.get(0); calls != 3 || got[0].N != 3 || !counted.Equal(at) {
			t.Errorf("for who asks: %d calls, %v of %v", calls, got, counted)
		}
		time.Sleep(countEvery)
		fail = errors.New("disk")
		if got, counted := l.get(0); calls != 4 || got[0].N != 3 || !counted.Equal(at) {
			t.Errorf("after a failure: %d calls, %v of %v", calls, got, counted)
		}
	})
}

// A store that hangs hangs nobody who asks.
func TestLetterCountsOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var calls atomic.Int64
		l := &letterCounts{count: func(context.Context) ([]deadletter.Count, error) {
			n := calls.Add(1)
			if n > 1 {
				<-hang
			}
			return []deadletter.Count{{N: int(n)}}, nil
		}}
		l.get(countEvery)
		for range 3 {
			time.Sleep(countEvery)
			start := time.Now()
			if got, _ := l.get(countEvery); calls.Load() != 2 || len(got) != 1 || got[0].N != 1 || time.Since(start) > countWithin {
				t.Errorf("%d calls, %v after %v", calls.Load(), got, time.Since(start))
			}
		}
		close(hang)
		synctest.Wait()
		if got, _ := l.get(countEvery); calls.Load() != 2 || got[0].N != 2 {
			t.Errorf("when it goes on: %d calls, %v", calls.Load(), got)
		}
	})
}

func TestPolled(t *testing.T) {
	if got := polled(time.Time{}); got != "never polled" {
		t.Errorf("%q", got)
	}
	if got := polled(time.Now().Add(-90 * time.Second)); got != "polled 1m30s ago" {
		t.Errorf("%q", got)
	}
}

// The daemon as a whole: one record that fails makes it unready, and who asks
// reads why.
func TestOneRecordMakesTheDaemonUnready(t *testing.T) {
	noAWS(t)
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	c := startChild(t, "broken", nil, "--table", "orders", "--start", "TRIM_HORIZON", "--listen", "127.0.0.1:0", "--grace", "1s",
		"--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", svc.URL())
	table.Put(map[string]any{"id": "a"})
	const want = `fails for 1 record since `
	localtest.Await(t, "/readyz", func() string {
		if code, body := c.ask("GET", "/readyz"); code != 503 || !strings.Contains(body, want) || !strings.Contains(body, "the sink is down") {
			return fmt.Sprint(code, " ", body)
		}
		return ""
	})
	if _, body := c.ask("GET", "/metrics"); !strings.Contains(body, "\nsluice_ready 0\n") {
		t.Error("metrics say that it is ready")
	}
	c.signal(syscall.SIGTERM)
	c.exit()
}
