package opensearch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/tally"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// changes returns n changes of items of one type, with keys different keys.
func changes(n, keys int) []sluice.Record {
	recs := make([]sluice.Record, n)
	for i := range recs {
		it := item.Of(item.String("pk", fmt.Sprint(i%keys)), item.String("entityType", "search"), item.Number("n", fmt.Sprint(i)))
		recs[i] = sluice.Record{EventName: sluice.Insert, EventID: fmt.Sprint("e", i), Table: "t", Keys: it.Only("pk"), New: it, Sequence: recordtest.Sequence(i + 1), SizeBytes: 100}
	}
	return recs
}

// writing returns a router whose handler writes a record's image under its key,
// and its parts under others.
func writing(s *Sink, parts int) *router.Router {
	r := router.New()
	r.Handle("search#INSERT", func(ctx context.Context, rec *sluice.Record) error {
		pk, _ := rec.New.Lookup("pk")
		n, _ := rec.New.Lookup("n")
		op := put("i", pk.Str(), fmt.Sprintf(`{"n":%s}`, n.Str()))
		if parts == 0 {
			return s.Write(ctx, op)
		}
		ops := []document.Op{op}
		for i := range parts {
			ops = append(ops, put("i", fmt.Sprintf("%s.%d", op.ID, i), "{}"))
		}
		return errors.Join(s.WriteAll(ctx, ops)...)
	}, router.Name("project"))
	return r
}

// Nothing waits for a linger: the flow says when nobody is left who could join.
func TestFlowFillsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: 10 * time.Millisecond}
		s := c.sink(t, Options{Linger: -1})
		f := flow.Open(t.Context(), writing(s, 2), flow.Options{Concurrency: 4})
		start := time.Now()
		if _, err := f.Submit(t.Context(), changes(200, 200)...); err != nil {
			t.Fatal(err)
		}
		if n, err := f.Close(t.Context()); n != 200 || err != nil {
			t.Errorf("%d settled: %v", n, err)
		}
		if took := time.Since(start); took != c.delay || len(c.requests) != 1 || len(c.live()) != 600 {
			t.Errorf("%v, %d requests, %d documents", took, len(c.requests), len(c.live()))
		}
	})
}

// Callers that wait for room in the budget count as waiting. So the batch that holds
// the room is sent.
func TestBudgetDoesNotStopTheFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: 10 * time.Millisecond}
		s := c.sink(t, Options{Linger: -1, WaitBytes: 1000})
		f := flow.Open(t.Context(), writing(s, 30), flow.Options{Concurrency: 4})
		if _, err := f.Submit(t.Context(), changes(50, 50)...); err != nil {
			t.Fatal(err)
		}
		if n, err := f.Close(t.Context()); n != 50 || err != nil {
			t.Errorf("%d settled: %v", n, err)
		}
		for _, ws := range c.requests { // a call of more than WaitBytes goes alone
			if len(ws) > 31 {
				t.Errorf("%d documents in one request", len(ws))
			}
		}
		expectFree(t, s)
	})
}

// Many changes of one item are written in order, with any retries.
func TestFlowKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: time.Millisecond, item: func(n int, _ string) *verdict {
			if n%3 == 1 {
				return &verdict{status: 429}
			}
			return nil
		}}
		s := c.sink(t, Options{})
		f := flow.Open(t.Context(), writing(s, 0), flow.Options{Logger: slog.New(slog.DiscardHandler)})
		if _, err := f.Submit(t.Context(), changes(100, 5)...); err != nil {
			t.Fatal(err)
		}
		if n, err := f.Close(t.Context()); n != 100 || err != nil {
			t.Errorf("%d settled: %v", n, err)
		}
		for i := range 5 {
			if got, want := c.live()[fmt.Sprintf("i %d", i)], fmt.Sprintf(`{"n":%d}`, 95+i); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
}

// A record whose document can never be written is parked once, with the
// document's name and the cluster's reason. Its neighbours are written.
func TestADeadLetterNamesItsDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{item: func(_ int, w string) *verdict {
			if strings.HasPrefix(w, "i+3=") || strings.HasPrefix(w, "i+3.1=") {
				return &verdict{status: 400, typ: "mapper_parsing_exception", reason: "failed to parse field [n] of type [date]. Preview of field's value: '3'"}
			}
			return nil
		}}
		s := c.sink(t, Options{})
		box := deadletter.NewBox(state.NewMemory(), "app")
		f := flow.Open(t.Context(), writing(s, 2), flow.Options{DeadLetter: box, Logger: slog.New(slog.DiscardHandler)})
		if _, err := f.Submit(t.Context(), changes(10, 10)...); err != nil {
			t.Fatal(err)
		}
		if n, err := f.Close(t.Context()); n != 10 || err != nil {
			t.Errorf("%d settled: %v", n, err)
		}
		entries, _, err := box.List(t.Context(), "", 10)
		if err != nil || len(entries) != 1 {
			t.Fatalf("%d entries, %v; want one", len(entries), err)
		}
		e := entries[0]
		if e.EventID != "e3" || e.Route != "project" || len(e.Last.Details) != 2 {
			t.Fatalf("%+v", e)
		}
		for i, id := range []string{"3", "3.1"} {
			d := e.Last.Details[i]
			for k, want := range map[string]string{"action": "index", "index": "i", "id": id, "status": "400", "type": "mapper_parsing_exception", "reason": "failed to parse field [n] of type [date]. Preview of field's value: '3'"} {
				if d[k] != want {
					t.Errorf("%s is %q, want %q", k, d[k], want)
				}
			}
		}
		if !strings.Contains(e.Last.Error, "mapper_parsing_exception") || strings.Contains(e.Last.Error, "'3'") {
			t.Errorf("error %q", e.Last.Error)
		}
		if n := len(c.live()); n != 28 {
			t.Errorf("%d documents, want all but two", n)
		}
	})
}

// A request that is refused as a whole parks nothing. The records wait until it
// is mended, each with the real reason.
func TestARefusedRequestParksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mended := false
		c := cluster{request: func(int, []string) *reply {
			if mended {
				return nil
			}
			return &reply{status: 403, body: `{"error":{"type":"security_exception","reason":"no permissions for [indices:data/write/bulk]"}}`}
		}}
		s := c.sink(t, Options{})
		box := deadletter.NewBox(state.NewMemory(), "app")
		f := flow.Open(t.Context(), writing(s, 0), flow.Options{DeadLetter: box, Logger: slog.New(slog.DiscardHandler)})
		if _, err := f.Submit(t.Context(), changes(5, 5)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := f.Settled(); n != 0 {
			t.Errorf("%d settled", n)
		}
		c.mu.Lock()
		mended = true
		c.mu.Unlock()
		if n, err := f.Close(t.Context()); n != 5 || err != nil {
			t.Errorf("%d settled: %v", n, err)
		}
		if entries, _, _ := box.List(t.Context(), "", 10); len(entries) != 0 || len(c.live()) != 5 {
			t.Errorf("%d parked, %d written", len(entries), len(c.live()))
		}
	})
}

// Without a dead letter a document that can never be written is tried once. Its
// record holds only its own lane.
func TestWithoutADeadLetterARecordHoldsOnlyItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		c := cluster{item: func(_ int, w string) *verdict {
			if strings.HasPrefix(w, "i+3=") {
				tries++
				return &verdict{status: 400}
			}
			return nil
		}}
		s := c.sink(t, Options{})
		f := flow.Open(t.Context(), writing(s, 0), flow.Options{Logger: slog.New(slog.DiscardHandler)})
		if _, err := f.Submit(t.Context(), changes(10, 10)...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if tries != 1 || f.Settled() != 3 || len(c.live()) != 9 {
			t.Errorf("%d tries in an hour, %d settled, %d documents", tries, f.Settled(), len(c.live()))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = f.Close(ctx)
	})
}

// A meter panics in the middle of a commit. No caller waits for ever, and
// nothing is held afterwards.
func TestAPanicReleasesAllWrites(t *testing.T) {
	for name, metric := range map[string]string{
		"in a request":   "sluice_bulk_requests_total",
		"of an item":     "sluice_document_conflicts_total",
		"when rejecting": "sluice_documents_rejected_total",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cluster{delay: time.Second}
				c.docs = map[string]stored{"i\x00a\x00": {version: 9}}
				s := c.sink(t, Options{MaxItems: 2, Metrics: tally.Func(func(name, _ string, _ float64) {
					if name == metric {
						panic("meter")
					}
				})})
				var wg sync.WaitGroup
				for i := range 6 {
					wg.Go(func() {
						defer func() { _ = recover() }()
						ops := []document.Op{putAt("i", "a", 1, "{}"), putAt("i", "b", int64(i), "{}"), put("i", fmt.Sprint("c", i), "[]")}
						if errs := s.WriteAll(t.Context(), ops); errs == nil {
							t.Error("no error")
						}
					})
				}
				wg.Wait()
				expectFree(t, s)
			})
		})
	}
}
