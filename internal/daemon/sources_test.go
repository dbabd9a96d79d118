package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/sluicehq/sluice/internal/page"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/scrape"
	"github.com/sluicehq/sluice/metrics/prom"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

func init() {
	// held has every item wait, and never comes back from a message.
	children["held"] = App{Name: "held", Routes: func(_ context.Context, s Setup) (sluice.Matcher, error) {
		return holding(func() { select {} }), nil
	}}
}

// holding has every item wait, and messages for as long as block does.
func holding(block func()) *router.Router {
	r := router.New()
	r.Handle("*#*", func(context.Context, *sluice.Record) error {
		return sluice.RetryAfter(time.Hour, errors.New("not yet"))
	}, router.Name("changes"))
	r.Handle("*#SNAPSHOT", func(context.Context, *sluice.Record) error {
		return sluice.RetryAfter(time.Hour, errors.New("not yet"))
	}, router.Name("items"))
	r.Handle("*#MESSAGE", func(_ context.Context, rec *sluice.Record) error {
		if kind, _ := rec.New.Lookup("kind"); kind.Str() == "poison" {
			return sluice.Permanent(errors.New("never"))
		}
		block()
		return nil
	}, router.Name("messages"))
	return r
}

// Status, page and metrics show held records of streams, backfills and queues, the
// oldest first. A stopping daemon is not ready.
func TestDaemonTellsOfAllSources(t *testing.T) {
	noAWS(t)
	c := newCloud(t, `{"id":{"S":"old"}}`)
	table := c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	server := httptest.NewServer(c)
	defer server.Close()
	p := startChild(t, "held", []string{"SLUICE_ENDPOINT_SQS=" + server.URL}, "--table", "orders", "--start", "TRIM_HORIZON", "--backfill", "--queue", "jobs",
		"--listen", "127.0.0.1:0", "--log-level", "debug", "--state", filepath.Join(t.TempDir(), "state.db"), "--endpoint-dynamodb", server.URL)
	p.until("msg=handled", 1) // the backfill's, so that it waits longer than the stream's
	table.Put(map[string]any{"id": "new"})
	p.until("msg=handled", 2)
	c.send(`{"kind":"poison"}`)
	p.until("message parked as a dead letter", 1)
	inHand := func(want int) {
		for ok := false; !ok; {
			_, body := p.ask("GET", "/api/status")
			var st page.Status
			if err := json.Unmarshal([]byte(body), &st); err != nil {
				t.Fatal(err)
			}
			ok = len(st.Queues) == 1 && st.Queues[0].InHand == want
		}
	}
	inHand(0) // the poisonous one is deleted
	c.send(`{"kind":"stuck"}`)
	inHand(1)

	var got page.HeldItems
	if _, body := p.ask("GET", "/api/held"); json.Unmarshal([]byte(body), &got) != nil || len(got.Held) != 2 {
		t.Fatalf("/api/held: %s", body)
	}
	if a, b := got.Held[0], got.Held[1]; a.Source != "backfill" || a.Table != "orders" || a.Route != "items" || b.Source != "stream" || b.Table != "orders" || b.Route != "changes" {
		t.Errorf("lanes %+v: want the backfill's, which waits longer, before the stream's", got.Held)
	}
	_, body := p.ask("GET", "/")
	for _, want := range []string{"held items: 2 (sluice status --held)", "dead letters: 1\n  1 of table jobs, route messages (record)\n", "queue jobs: 1 message in hand, ", "backfill of table orders: 0 of about "} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in the status:\n%s", want, body)
		}
	}
	_, body = p.ask("GET", "/metrics")
	for _, want := range []string{`sluice_held_lanes{route="items"} 1`, `sluice_held_lanes{route="changes"} 1`, `sluice_dead_letters{kind="record",route="messages"} 1`, "sluice_ready 1"} {
		if !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("no %q in the metrics", want)
		}
	}
	if code, body := p.ask("GET", "/readyz"); code != 200 {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, body := p.ask("GET", "/deadletters"); code != 200 || !strings.Contains(body, `"table":"jobs"`) {
		t.Errorf("/deadletters: %d %s", code, body)
	}
	if code, _ := p.ask("GET", "/debug/pprof/"); code != 404 {
		t.Errorf("profiles are served though nobody asked for them: %d", code)
	}

	p.signal(syscall.SIGTERM) // and the message's handler does not return
	p.until("stopping: a second signal ends at once", 1)
	p.until("1 message of queue jobs\" reasons=", 1) // what it waits for
	for deadline := time.Now().Add(10 * time.Second); ; {
		code, body := p.ask("GET", "/readyz")
		if code == 503 && body == "stopping\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz while it stops: %d %s", code, body)
		}
	}
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 143 {
		t.Errorf("exit %d:\n%s", code, p.output())
	}
	http.DefaultClient.CloseIdleConnections()
}

// wired is a daemon's sources over a cloud, without the daemon, in a bubble.
type wired struct {
	*sources
	box     *deadletter.Box
	store   *brittle
	metrics http.Handler
	log     *sharedLog
	stop    func()
	ended   chan error // of their run
}

// sharedLog is a log that is read while others write to it.
type sharedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *sharedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *sharedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// brittle is a store in which no dead letter can be put while it is full.
type brittle struct {
	*state.Memory
	full bool
}

func (b *brittle) PutLetter(ctx context.Context, app, id string, data []byte) error {
	if b.full {
		return errors.New("no space left")
	}
	return b.Memory.PutLetter(ctx, app, id, data)
}

func wire(t *testing.T, c *cloud, m sluice.Matcher, o Options) *wired {
	t.Helper()
	return wireHeld(t, c, &checks{}, m, o)
}

// wireHeld is wire with checks of sinks, which have been started.
func wireHeld(t *testing.T, c *cloud, held *checks, m sluice.Matcher, o Options) *wired {
	t.Helper()
	w := &wired{store: &brittle{Memory: state.NewMemory()}, log: &sharedLog{}}
	o.Application, o.Start, o.DeadLetter, o.Grace = "shop", "TRIM_HORIZON", cmp.Or(o.DeadLetter, "record"), 10*time.Second
	w.box = deadletter.NewBox(w.store, o.Application)
	registry := scrape.NewRegistry()
	metrics := prom.New(registry)
	w.metrics = scrape.Handler(registry)
	s, err := newSources(o, held.hold(m), held, c.aws, nil, w.store, w.box, metrics, newLife(m, o, io.Discard), nil, newLogger(Options{LogFormat: "text", LogLevel: "info"}, w.log))
	if err != nil {
		t.Fatal(err)
	}
	s.throttles = newThrottles(state.NewMemory(), o.Application, s.group, false, false, slog.New(slog.DiscardHandler))
	w.sources = s
	ctx, cancel := context.WithCancel(t.Context())
	w.ended = make(chan error, 1)
	go func() { w.ended <- s.run(ctx) }()
	w.stop = func() {
		t.Helper()
		cancel()
		if err := <-w.ended; err != nil {
			t.Error(err)
		}
	}
	return w
}

// A message that fails for good becomes a dead letter. A handler that does not return
// is reported after limits.stuckAfter.
func TestQueuesAreWired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		back := make(chan struct{})
		w := wire(t, c, holding(func() { <-back }), Options{Queues: []string{"jobs"}, Limits: flow.Options{StuckAfter: 10 * time.Second, Concurrency: 2}})
		c.send(`{"kind":"poison"}`)
		time.Sleep(time.Second)
		if got := c.settled(); !slices.Equal(got, []string{`{"kind":"poison"}`}) {
			t.Errorf("deleted from the queue: %q", got)
		}
		if letters, _, err := w.box.List(t.Context(), "", 10); err != nil || len(letters) != 1 || letters[0].Table != "jobs" || letters[0].Route != "messages" {
			t.Errorf("dead letters %+v, %v", letters, err)
		}
		for i := range 3 {
			c.send(fmt.Sprintf(`{"kind":"long","n":%d}`, i))
		}
		time.Sleep(5 * time.Second)
		if h := w.status().Queues; len(h) != 1 || h[0].InHand != 2 {
			t.Errorf("in hand %+v, want the 2 that may run at once", h)
		}
		const stuck = "handler does not return"
		if strings.Contains(w.log.String(), stuck) {
			t.Errorf("told too early: %s", w.log)
		}
		time.Sleep(20 * time.Second) // less than the default
		if !strings.Contains(w.log.String(), stuck) {
			t.Errorf("handlers run for 25 s, and nobody is told:\n%s", w.log)
		}
		close(back)
		time.Sleep(time.Second)
		w.stop()
		if got := c.settled(); len(got) != 4 {
			t.Errorf("deleted from the queue: %q", got)
		}
	})
}

// Metrics count the work of streams, backfills and queues.
func TestMetricsAreWired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, `{"id":{"S":"old"}}`)
		table := c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
		m := router.New()
		for _, pattern := range []string{"*#*", "*#SNAPSHOT", "*#MESSAGE"} {
			m.Handle(pattern, func(context.Context, *sluice.Record) error { return nil })
		}
		w := wire(t, c, m, Options{Tables: []string{"orders"}, Queues: []string{"jobs"}, Backfill: true})
		table.Put(map[string]any{"id": "new"})
		c.send(`{"kind":"job"}`)
		time.Sleep(time.Minute)
		w.stop()
		page := httptest.NewRecorder()
		w.metrics.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
		for _, want := range []string{
			`sluice_polled_records_total{table="orders"} 1`, `sluice_checkpoints_total{outcome="stored"} 1`,
			`sluice_scanned_items_total{table="orders"} 1`, `sluice_backfill_settled_items_total{backfill="",table="orders"} 1`, `sluice_backfill_finished{backfill="",table="orders"} 1`,
			`sluice_queue_messages_total{end="settled",queue="jobs"} 1`, `sluice_records_total{outcome="done",route="*#*"} 1`,
			`sluice_records_total{outcome="done",route="*#SNAPSHOT"} 1`, `sluice_records_total{outcome="done",route="*#MESSAGE"} 1`,
		} {
			if !strings.Contains(page.Body.String(), "\n"+want+"\n") {
				t.Errorf("no %q in the metrics", want)
			}
		}
	})
}

// Dead letters and gaps that cannot be stored keep the daemon from being ready.
func TestWhatCannotBeKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &brittle{Memory: state.NewMemory(), full: true}
		k := &kept{Box: deadletter.NewBox(store, "shop")}
		rec := sluice.Record{Table: "orders", ShardID: "s", Sequence: recordtest.Sequence(1)}
		for what, keep := range map[string]func() error{
			"a record": func() error { return k.Park(t.Context(), &rec, sluice.Failure{Last: errors.New("never")}) },
			"a gap": func() error {
				return k.ParkGap(t.Context(), &sluice.Gap{Table: "orders", ShardID: "s", After: recordtest.Sequence(5)})
			},
		} {
			store.full = true
			if err := keep(); err == nil || !strings.Contains(err.Error(), "no space left") {
				t.Errorf("%s: %v", what, err)
			}
			if got := k.unready(); len(got) != 1 || !strings.Contains(got[0], "no space left") {
				t.Errorf("%s that cannot be stored: unready %q", what, got)
			}
			store.full = false
			if err := keep(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if got := k.unready(); got != nil {
				t.Errorf("%s that is stored: unready %q", what, got)
			}
		}
	})
}

// A failure of a backfill is a reason of the daemon, and its held items count as held.
func TestBackfillsAreWired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, `{"id":{"S":"old"}}`)
		c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
		w := wire(t, c, holding(nil), Options{Tables: []string{"orders"}, Backfill: true})
		time.Sleep(5 * time.Second)
		if held := w.held(); len(held) != 1 || held[0].Source != "backfill" || held[0].Table != "orders" || held[0].Route != "items" {
			t.Errorf("held %+v", held)
		}
		if got := w.unready(); got != nil {
			t.Errorf("unready: %q", got)
		}
		w.stop()

		c = newCloud(t)
		c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
		c.refuse("Scan")
		w = wire(t, c, holding(nil), Options{Tables: []string{"orders"}, Backfill: true})
		time.Sleep(5 * time.Minute)
		got := w.unready()
		if len(got) != 1 || !strings.Contains(got[0], `table "orders"`) || !strings.Contains(got[0], "not you") {
			t.Errorf("unready: %q", got)
		}
		if st := w.status(); st.Ready || !slices.Equal(st.Reasons, got) {
			t.Errorf("status %+v", st)
		}
		w.stop()
	})
}

// A route that fails for everything is an outage, wherever its records come from.
func TestOutagesAreWired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		table := c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
		m := router.New()
		m.Handle("*#*", func(context.Context, *sluice.Record) error { return errors.New("the index is down") }, router.Name("changes"))
		m.Handle("*#MESSAGE", func(context.Context, *sluice.Record) error { return errors.New("the sink is down") }, router.Name("messages"))
		w := wire(t, c, m, Options{Tables: []string{"orders"}, Queues: []string{"jobs"}})
		for i := range 30 {
			table.Put(map[string]any{"id": fmt.Sprint(i)})
			c.send(fmt.Sprintf(`{"kind":"job","n":%d}`, i))
		}
		time.Sleep(time.Minute)
		st := w.status()
		if len(st.Routes) != 2 || st.Routes[0].Route != "changes" || st.Routes[0].State != "outage" || st.Routes[0].Error != "the index is down" || st.Routes[0].Since.IsZero() ||
			st.Routes[1].Route != "messages" || st.Routes[1].State != "outage" || !strings.HasSuffix(st.Routes[1].Error, "the sink is down") || st.Routes[1].Since.IsZero() {
			t.Errorf("routes %+v", st.Routes)
		}
		if all := strings.Join(w.unready(), "\n"); st.Ready || !strings.Contains(all, `route "changes" fails`) || !strings.Contains(all, `route "messages" fails`) {
			t.Errorf("unready: %s", all)
		}
		if letters, _, err := w.box.List(t.Context(), "", 10); err != nil || letters != nil {
			t.Errorf("parked in an outage: %+v, %v", letters, err)
		}
		w.stop()
	})
}

// Later changes of an item that failed for good go on, or wait with it.
func TestDeadLetterIsWired(t *testing.T) {
	for of, want := range map[string]int{"record": 1, "item": 2} {
		t.Run(of, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				table := c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
				m := router.New()
				m.Handle("*#INSERT", func(context.Context, *sluice.Record) error { return sluice.Permanent(errors.New("never")) }, router.Name("changes"))
				var handled atomic.Int32
				m.Handle("*#MODIFY", func(context.Context, *sluice.Record) error { handled.Add(1); return nil }, router.Name("changes of items"))
				m.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
					if rec.EventName == sluice.Insert {
						return sluice.Permanent(errors.New("never"))
					}
					handled.Add(1)
					return nil
				}, router.Name("both"))
				w := wire(t, c, m, Options{Tables: []string{"orders"}, DeadLetter: of})
				table.Put(map[string]any{"id": "a"})
				table.Put(map[string]any{"id": "a", "n": 2})
				time.Sleep(5 * time.Second)
				counts, err := w.box.Counts(t.Context())
				n := 0
				for _, c := range counts {
					if c.Route == "both" {
						n += c.N
					}
				}
				if err != nil || n != want || handled.Load() != int32(3-want) {
					t.Errorf("dead letters %+v, %v; %d handled", counts, err, handled.Load())
				}
				w.stop()
			})
		})
	}
}

// When one source cannot start, the other does not go on without it, and no
// message is taken.
func TestOneSourceCannotStart(t *testing.T) {
	for op, want := range map[string]string{"DescribeTable": `table "orders"`, "DescribeStream": "orders", "GetQueueUrl": "queue"} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				c.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
				c.refuse(op)
				c.send(`{"kind":"poison"}`)
				w := wire(t, c, holding(nil), Options{Tables: []string{"orders"}, Queues: []string{"jobs"}})
				select {
				case err := <-w.ended:
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%v, want it to name %s", err, want)
					}
				case <-time.After(time.Hour):
					t.Error("it goes on")
					w.stop()
				}
				if c.mu.Lock(); c.received > 0 {
					t.Errorf("%d messages were received", c.received)
				}
				c.mu.Unlock()
			})
		})
	}
}
