package streamtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/outcomes"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

var errDown = errors.New("down")

// orderRecord is a record of an order's n-th change.
func orderRecord(id string, n int) sluice.Record {
	was := map[string]any{"pk": id, "entityType": "order", "n": n - 1}
	is := map[string]any{"pk": id, "entityType": "order", "n": n}
	if n == 0 {
		return Insert("orders", is)
	}
	return Modify("orders", was, is)
}

func orderRouter(h sluice.Handler, opts ...router.Option) *router.Router {
	r := router.New()
	r.Handle("order#*", h, opts...)
	return r
}

func wantText(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

func TestRunTellsWhatHappened(t *testing.T) {
	var calls []string
	note := func(name string, h func(n int) error) sluice.Handler {
		n := 0
		return func(_ context.Context, rec *sluice.Record) error {
			n++
			pk, _ := rec.Keys.Lookup("pk")
			calls = append(calls, name+" "+pk.Str())
			return h(n)
		}
	}
	r := router.New()
	r.Handle("order#INSERT", note("done", func(int) error { return nil }), router.Name("done"))
	r.Handle("order#INSERT", note("skips", func(int) error { return sluice.Skip("nothing to do") }), router.Name("skips"))
	r.Handle("order#MODIFY", note("works at last", func(n int) error {
		if n < 3 {
			return errDown
		}
		return nil
	}), router.Name("works at last"))
	r.Handle("order#MODIFY", note("beside", func(int) error { return nil }), router.Name("beside"))
	r.Handle("order#REMOVE", note("poison", func(int) error { return errDown }), router.Name("poison"), router.Attempts(2))
	r.Handle("user#*", note("permanent", func(int) error { return sluice.Permanent(errDown) }), router.Name("permanent"))
	r.Handle("user#*", note("panics", func(int) error { panic("oh") }), router.Name("panics"))

	page, err := sluice.DecodeGetRecords([]byte(`{"Records":[{"eventName":"INSERT","dynamodb":{"SequenceNumber":"977119800000398701107540001","Keys":{"pk":{"S":"bad"}}, "NewImage":{"n":{"N":"x"}}}}]}`), sluice.Source{})
	if err != nil {
		t.Fatal(err)
	}
	res := Run(t.Context(), r,
		orderRecord("a", 0),
		orderRecord("a", 1),
		Remove("orders", `{"pk":{"S":"a"},"entityType":{"S":"order"}}`),
		Insert("orders", `{"pk":{"S":"b"},"entityType":{"S":"user"}}`),
		Insert("orders", `{"pk":{"S":"c"}}`),
		page.Records[0],
	)
	wantText(t, "result", res.String(), `0 INSERT {"pk":"a"} done: done
0 INSERT {"pk":"a"} skips: skipped: nothing to do
1 MODIFY {"pk":"a"} works at last: done after 3 calls
1 MODIFY {"pk":"a"} beside: done
2 REMOVE {"pk":"a"} poison: parked after 2 calls: down
3 INSERT {"pk":"b"} permanent: parked: down
3 INSERT {"pk":"b"} panics: parked after 8 calls: panic: oh
4 INSERT {"pk":"c"}: unrouted
5 INSERT {"pk":"bad"}: parked: `+strings.SplitN(fmt.Sprint(page.Records[0].Err()), "\n", 2)[0]+"\n")
	if res.Settled != 6 || res.Err != nil {
		t.Errorf("%d settled, %v", res.Settled, res.Err)
	}
	wantText(t, "calls", strings.Join(calls, ", "), "done a, skips a, works at last a, beside a, works at last a, works at last a, poison a, poison a, permanent b"+strings.Repeat(", panics b", 8))

	of := res.Of(1)
	if len(of) != 2 || len(of[0].Errs) != 2 || of[0].Err != nil || of[0].Result != flow.Done {
		t.Errorf("record 1: %+v", of)
	}
	poison := res.Of(2)[0]
	if len(poison.Errs) != 2 || poison.Errs[0] != errDown || poison.Err != errDown { //nolint:errorlint // the very error that the handler returned
		t.Errorf("record 2: %+v", poison)
	}
	if p, ok := errors.AsType[*outcomes.Panic](res.Of(3)[1].Err); !ok || p.Value != "oh" {
		t.Errorf("record 3: %v", res.Of(3)[1].Err)
	}
}

// What a handler asks to wait for is not waited for, and what it says besides
// is heard.
func TestRunDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var calls []string
		rest := func(_ context.Context, rec *sluice.Record) error {
			calls = append(calls, "rest")
			if len(calls) < 4 {
				return sluice.RetryAfter(time.Hour, errDown)
			}
			return nil
		}
		h := func(context.Context, *sluice.Record) error {
			calls = append(calls, "first")
			if len(calls) == 1 {
				return fmt.Errorf("wrapped: %w", sluice.RetryAfter(time.Hour, errDown))
			}
			return fmt.Errorf("wrapped: %w", &sluice.Remaining{Rest: rest, After: time.Hour})
		}
		res := Run(t.Context(), orderRouter(h, router.Backoff(time.Hour, time.Hour), router.Rate(0.001, 1)), orderRecord("a", 0), Insert("orders", `{"pk":{"S":"b"},"entityType":{"S":"order"}}`))
		wantText(t, "calls", strings.Join(calls, " "), "first first rest rest first rest")
		if d := time.Since(start); d > time.Millisecond {
			t.Errorf("it took %v", d)
		}
		wantText(t, "result", res.String(), `0 INSERT {"pk":"a"} order#*: done after 4 calls
1 INSERT {"pk":"b"} order#*: done after 2 calls
`)
		first := res.Outcomes[0].Errs
		if retry, ok := errors.AsType[*outcomes.Retry](first[0]); !ok || retry.After != time.Hour || !errors.Is(first[0], errDown) {
			t.Errorf("the handler's own error: %v", first[0])
		}
	})
}

// An outage, in which the daemon would wait for the route to work again, ends.
func TestRunEndsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var letters DeadLetters
		var recs []sluice.Record
		for i := range 20 {
			recs = append(recs, orderRecord(fmt.Sprint(i), 0))
		}
		down := func(context.Context, *sluice.Record) error { return sluice.RetryAfter(time.Minute, errDown) }
		for _, concurrency := range []int{0, 5} {
			start := time.Now()
			res := RunWith(t.Context(), flow.Options{Concurrency: concurrency, DeadLetter: &letters}, orderRouter(down), recs...)
			for _, o := range res.Outcomes {
				if o.Result != flow.Parked || o.Calls != 8 {
					t.Errorf("%v", o)
				}
			}
			if d := time.Since(start); d > time.Second || len(res.Outcomes) != 20 {
				t.Errorf("%d outcomes after %v", len(res.Outcomes), d)
			}
		}
		for _, l := range letters.Values() {
			if l.Failure.Attempts != 8 || l.Failure.Route != "order#*" || !errors.Is(l.Failure.First, errDown) || !errors.Is(l.Failure.Last, errDown) {
				t.Errorf("parked: %+v", l.Failure)
			}
		}
		if len(letters.Values()) != 40 {
			t.Errorf("%d dead letters", len(letters.Values()))
		}
	})
}

// A handler that ends its goroutine, as t.FailNow does, is called once.
func TestRunWithGoexit(t *testing.T) {
	calls := 0
	res := Run(t.Context(), orderRouter(func(context.Context, *sluice.Record) error {
		calls++
		runtime.Goexit()
		return nil
	}), orderRecord("a", 0), orderRecord("b", 0))
	if calls != 2 || len(res.Outcomes) != 2 {
		t.Fatalf("%d calls\n%v", calls, res)
	}
	for _, o := range res.Outcomes {
		if p, ok := errors.AsType[*outcomes.Panic](o.Err); o.Result != flow.Parked || o.Calls != 1 || !ok || p.Value != nil {
			t.Errorf("%v", o)
		}
	}
}

func TestRunStops(t *testing.T) {
	h := func(_ context.Context, rec *sluice.Record) error {
		if pk, _ := rec.Keys.Lookup("pk"); pk.Is("b") {
			return errDown
		}
		return nil
	}
	var letters DeadLetters // of permanent failures alone
	res := RunWith(t.Context(), flow.Options{Policy: flow.Stop, DeadLetter: &letters}, orderRouter(h, router.Attempts(1)), orderRecord("a", 0), orderRecord("b", 0), orderRecord("c", 0))
	if _, ok := errors.AsType[*flow.RecordError](res.Err); !ok || !errors.Is(res.Err, errDown) || res.Settled != 1 {
		t.Errorf("%d settled, %v", res.Settled, res.Err)
	}
	wantText(t, "result", res.String(), `0 INSERT {"pk":"a"} order#*: done
1 INSERT {"pk":"b"} order#*: stopped: down
1 settled: `+res.Err.Error()+"\n")
	if res.Of(2) != nil {
		t.Errorf("record 2: %v", res.Of(2))
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	release, returned := make(chan struct{}), make(chan struct{})
	r := orderRouter(func(context.Context, *sluice.Record) error {
		defer close(returned)
		cancel(errDown)
		<-release // whatever its context says
		return nil
	})
	r.Handle("*#INSERT", uncalled(t))
	res := Run(ctx, r, orderRecord("a", 0), orderRecord("b", 0))
	close(release)
	<-returned
	if res.Settled != 0 || !errors.Is(res.Err, errDown) || len(res.Outcomes) != 1 || res.Outcomes[0].Result != flow.Retried {
		t.Errorf("%v", res)
	}
	if res = Run(ctx, orderRouter(uncalled(t)), orderRecord("a", 0)); !errors.Is(res.Err, errDown) || len(res.Outcomes) != 0 {
		t.Errorf("ended before: %v", res)
	}
}

// uncalled is a handler that is not called.
func uncalled(t *testing.T) sluice.Handler {
	return func(context.Context, *sluice.Record) error {
		t.Error("called")
		return nil
	}
}

// Changes behind a parked one are parked too.
func TestRunParksItems(t *testing.T) {
	h := func(_ context.Context, rec *sluice.Record) error {
		if rec.EventName == sluice.Insert {
			return sluice.Permanent(errDown)
		}
		return nil
	}
	r := orderRouter(h)
	res := RunWith(t.Context(), flow.Options{ParkItem: true, Group: flow.NewGroup(r)}, r, orderRecord("a", 0), orderRecord("a", 1), orderRecord("b", 1))
	wantText(t, "result", res.String(), `0 INSERT {"pk":"a"} order#*: parked: down
1 MODIFY {"pk":"a"} order#*: parked: flow: an earlier change of the item is parked
2 MODIFY {"pk":"b"} order#*: done
`)
}

// Records of different items run beside each other when asked to, those of one
// item never; and records that are the same one, delivered twice, are told
// apart.
func TestRunConcurrently(t *testing.T) {
	const items, changes = 20, 5
	var recs []sluice.Record
	for n := range changes {
		for i := range items {
			rec := orderRecord(fmt.Sprint(i), n)
			recs = append(recs, rec, rec)
		}
	}
	var mu sync.Mutex
	last := map[string]int64{}
	busy := map[string]bool{}
	running, most := 0, 0
	meet := make(chan struct{}) // closed when two run at once
	h := func(_ context.Context, rec *sluice.Record) error {
		pk, _ := rec.Keys.Lookup("pk")
		n, _ := rec.New.Lookup("n")
		id := pk.Str()
		mu.Lock()
		v, _ := n.Int64()
		if busy[id] || v < last[id] {
			t.Errorf("item %s: change %d beside or after %d", id, v, last[id])
		}
		busy[id], last[id] = true, v
		running++
		if most = max(most, running); most == 2 && running == 2 {
			select {
			case <-meet:
			default:
				close(meet)
			}
		}
		mu.Unlock()
		<-meet
		mu.Lock()
		defer mu.Unlock()
		busy[id] = false
		running--
		return nil
	}
	res := RunWith(t.Context(), flow.Options{Concurrency: 4}, orderRouter(h), recs...)
	if res.Settled != len(recs) || res.Err != nil || len(res.Outcomes) != len(recs) || most < 2 || most > 4 {
		t.Errorf("%d settled, %d outcomes, %d at once, %v", res.Settled, len(res.Outcomes), most, res.Err)
	}
	for i, o := range res.Outcomes {
		if o.Index != i || o.Record != &recs[i] || o.Result != flow.Done || o.Calls != 1 {
			t.Fatalf("outcome %d: %+v", i, o)
		}
	}
}

// A handler that keeps parts of a record without Clone sees other values once
// the record is settled.
func TestRunOverwritesWhatIsSettled(t *testing.T) {
	rec := Modify("orders",
		map[string]any{"pk": "a", "entityType": "order"},
		map[string]any{"pk": "a", "entityType": "order", "n": 129, "l": []any{"x", map[string]any{"y": []byte("hi")}}, "t": true, "e": "\"é\n"},
	)
	ss := Insert("orders", `{"pk":{"S":"b"},"entityType":{"S":"order"},"s":{"SS":["x","yz"]},"ns":{"NS":["1","-2.5"]},"bs":{"BS":["AAAA","aGk="]}}`)
	var kept []*sluice.Record
	var copies []*sluice.Record
	var texts [][]byte
	n := 0
	h := func(_ context.Context, rec *sluice.Record) error {
		kept = append(kept, rec)
		copies = append(copies, rec.Clone())
		v, _ := rec.New.Lookup("entityType")
		texts = append(texts, v.Text())
		if string(texts[0]) != "order" && n == 1 {
			t.Error("overwritten before it is settled")
		}
		if n++; n == 1 {
			return errDown
		}
		return nil
	}
	hooked := ""
	res := RunWith(t.Context(), flow.Options{Hooks: flow.Hooks{Handled: func(_ context.Context, rec *sluice.Record, _ *sluice.Route, how flow.Result, _ time.Duration, _ error) {
		hooked += how.String() + " " + string(rec.Keys.Raw()) + "\n"
	}}}, orderRouter(h), rec, ss)
	wantText(t, "hook", hooked, "retried {\"pk\":{\"S\":\"a\"}}\ndone {\"pk\":{\"S\":\"a\"}}\ndone {\"pk\":{\"S\":\"b\"}}\n")
	if res.Settled != 2 || n != 3 {
		t.Fatalf("%d calls\n%v", n, res)
	}
	const a = `{"e":{"S":"******"},"entityType":{"S":"*****"},"l":{"L":[{"S":"*"},{"M":{"y":{"B":"AAA="}}}]},"n":{"N":"998"},"pk":{"S":"*"},"t":{"BOOL":true}}`
	const b = `{"pk":{"S":"*"},"entityType":{"S":"*****"},"s":{"SS":["*","**"]},"ns":{"NS":["9","-9.9"]},"bs":{"BS":["QQQQ","AAA="]}}`
	for i, want := range []string{a, a, b} {
		wantText(t, "kept image", string(kept[i].New.Raw()), want)
		if string(texts[i]) != "*****" || strings.Trim(string(kept[i].Raw()), "*") != "" {
			t.Errorf("kept text %q, raw %s", texts[i], kept[i].Raw())
		}
		if got := string(kept[i].Keys.Raw()); got != `{"pk":{"S":"*"}}` {
			t.Errorf("kept keys %s", got)
		}
		if _, err := item.Parse(kept[i].New.Raw()); err != nil {
			t.Errorf("the kept image is damaged: %v in %s", err, kept[i].New.Raw())
		}
	}
	if !copies[0].New.Equal(rec.New) || !copies[2].New.Equal(ss.New) || !copies[1].Old.Equal(rec.Old) {
		t.Error("clones were overwritten")
	}
	if v, _ := rec.New.Lookup("entityType"); !v.Is("order") || !strings.Contains(string(rec.Raw()), "order") {
		t.Error("the caller's record was overwritten")
	}
}

// What is not settled is not overwritten: it may still be read.
func TestRunLeavesWhatIsNotSettled(t *testing.T) {
	var kept *sluice.Record
	RunWith(t.Context(), flow.Options{Policy: flow.Stop}, orderRouter(func(_ context.Context, rec *sluice.Record) error {
		kept = rec
		return errDown
	}), orderRecord("a", 0))
	if v, _ := kept.Keys.Lookup("pk"); !v.Is("a") {
		t.Errorf("keys %s", kept.Keys.Raw())
	}
}

// A route that all records take is over only with its last one.
func TestRunOverwritesAfterTheLastRoute(t *testing.T) {
	var seen atomic.Int32
	r := router.New()
	for i := range 3 {
		n := 0
		r.Handle("order#*", func(_ context.Context, rec *sluice.Record) error {
			if v, _ := rec.New.Lookup("pk"); v.Is("a") {
				seen.Add(1)
			}
			if n++; n < 3-i {
				return errDown
			}
			return nil
		}, router.Name(fmt.Sprint("route ", i)))
	}
	if res := Run(t.Context(), r, orderRecord("a", 0)); seen.Load() != 3+2+1 || res.Settled != 1 {
		t.Errorf("%d calls saw the item\n%v", seen.Load(), res)
	}
}

// So does one that keeps a part of the copies that a flow makes of records
// that wait, when little else of their page is left.
func TestRunOverwritesCopies(t *testing.T) {
	var kept []*sluice.Record
	res := Run(t.Context(), orderRouter(func(_ context.Context, rec *sluice.Record) error {
		kept = append(kept, rec)
		return errDown
	}), orderRecord("a", 0))
	if len(kept) != 8 || res.Settled != 1 {
		t.Fatal(res)
	}
	for i, rec := range kept {
		if v, _ := rec.New.Lookup("pk"); !v.Is("*") {
			t.Errorf("call %d kept %s", i, rec.New.Raw())
		}
	}
}
