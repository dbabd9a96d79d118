package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/internal/quorum"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

// oneRoute takes every record.
type oneRoute struct{ route sluice.Route }

func (o *oneRoute) Routes() []*sluice.Route { return []*sluice.Route{&o.route} }
func (o *oneRoute) Match(dst []*sluice.Route, _ *sluice.Record) ([]*sluice.Route, error) {
	return append(dst, &o.route), nil
}

// Handlers that wait for one key do not delay other handlers or a batch. In this test
// four handlers may run, and nothing waits for a linger.
func TestHandlersBehindOneKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{delay: 10 * time.Millisecond}
		st := s.store(t, Options{Linger: -1, Keys: map[string][]string{"t": {"pk"}}})
		h := func(ctx context.Context, rec *sluice.Record) error {
			n, _ := rec.Keys.Lookup("n")
			pk := "hot"
			if len(n.Str()) > 2 { // from 100 on
				pk = n.Str()
			}
			return st.Put(ctx, "t", thing(pk, n.Str()))
		}
		recs := make([]sluice.Record, 200)
		for i := range recs {
			recs[i] = sluice.Record{EventName: sluice.Insert, Table: "t", Keys: item.Of(item.Number("n", fmt.Sprint(i))), Sequence: recordtest.Sequence(i + 1), SizeBytes: 100}
		}
		f := flow.Open(t.Context(), &oneRoute{sluice.Route{Name: "put", Handler: h}}, flow.Options{Concurrency: 4})
		start := time.Now()
		if _, err := f.Submit(t.Context(), recs...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Millisecond)
		s.mu.Lock()
		if len(s.items) != 101 {
			t.Errorf("%d items after the first round trip, want those of all other keys", len(s.items))
		}
		s.mu.Unlock()
		if n, err := f.Close(t.Context()); n != 200 || err != nil {
			t.Errorf("%d settled: %v", n, err)
		}
		if took := time.Since(start); took != 100*s.delay {
			t.Errorf("100 writes of one key took %v", took)
		}
	})
}

// counted is the flow of a handler.
type counted struct{ running int }

func (c *counted) Parked(n int)   { c.running -= n }
func (c *counted) Unparked(n int) { c.running += n }

// A handler is counted as running again once it has waited behind another one,
// to the end or not.
func TestWaitingForAKeyIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lanes
		a, b := keyID{"t", 1}, keyID{"t", 2}
		scope, c := new(quorum.Scope), &counted{running: 1}
		scope.Enter(1)
		ctx, cancel := context.WithCancel(quorum.With(t.Context(), &quorum.Member{Scope: scope, Host: c}))
		if err := l.enter(ctx, []keyID{a}); err != nil || c.running != 1 {
			t.Fatal(err, c.running)
		}
		wait := func() <-chan error {
			done := make(chan error, 1)
			go func() { done <- l.enter(ctx, []keyID{b, a}) }()
			synctest.Wait()
			if c.running != 0 || !scope.Idle() {
				t.Errorf("%d run while one waits", c.running)
			}
			return done
		}
		done := wait()
		l.leave([]keyID{a})
		if err := <-done; err != nil || c.running != 1 || scope.Idle() {
			t.Error(err, c.running)
		}
		done = wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || c.running != 1 || scope.Idle() {
			t.Error(err, c.running)
		}
		l.leave([]keyID{a, b})
		if len(l.queues) != 0 {
			t.Error(l.queues)
		}
	})
}

// The oracle: for each key, the table has the last write that was called and succeeded,
// with any failures in between.
func TestTheLastWriteOfEachKeyWins(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				rng := rand.New(rand.NewPCG(seed, 1))
				s := tablesStub{delay: 10 * time.Millisecond, units: func(string, string) float64 { return 1 }}
				s.reply = func(_ int, writes []string) (a stubbed) {
					mu.Lock()
					defer mu.Unlock()
					if strings.Contains(strings.Join(writes, " "), "=bad") {
						return stubbed{code: "ValidationException"}
					}
					switch rng.IntN(10) {
					case 0:
						return stubbed{code: "ThrottlingException"}
					case 1:
						return stubbed{status: 500, code: "InternalServerError"}
					case 2:
						a.lost = true
					}
					for _, w := range writes {
						if rng.IntN(3) == 0 {
							a.back = append(a.back, w)
						}
					}
					return a
				}
				o := Options{Attempts: 1000, Timeout: time.Hour, InFlight: 4}
				if seed%2 == 1 {
					o.Budget = map[string]float64{"t": 500}
				}
				st := s.store(t, o)
				draw := rand.New(rand.NewPCG(seed, 2))
				want := map[string]string{}
				var results sync.Mutex
				type call struct {
					key, value string
					err        error
				}
				var calls []*call // in order
				gone := errors.New("gone")
				var wg sync.WaitGroup
				for i := range 60 {
					ctx, cancel := context.WithCancelCause(t.Context())
					if draw.IntN(5) == 0 {
						time.AfterFunc(time.Duration(draw.IntN(50))*time.Millisecond, func() { cancel(gone) })
					}
					var cs []*call
					var its []sluice.Item
					put := draw.IntN(3) > 0
					for range 1 + draw.IntN(40)*draw.IntN(2) {
						c := &call{key: fmt.Sprint("k", draw.IntN(30))}
						if put {
							c.value = fmt.Sprint("v", i, ".", len(its))
							if draw.IntN(20) == 0 {
								c.value = "bad"
							}
						}
						cs = append(cs, c)
						its = append(its, thing(c.key, c.value))
					}
					calls = append(calls, cs...)
					wg.Go(func() {
						defer cancel(nil)
						var errs []error
						switch {
						case put && len(its) == 1:
							errs = []error{st.Put(ctx, "t", its[0])}
						case put:
							errs = st.PutAll(ctx, "t", its)
						case len(its) == 1:
							errs = []error{st.Delete(ctx, "t", its[0])}
						default:
							errs = st.DeleteAll(ctx, "t", its)
						}
						results.Lock()
						defer results.Unlock()
						for k, err := range errs {
							cs[k].err = err
						}
					})
					synctest.Wait()
					if draw.IntN(4) == 0 {
						time.Sleep(time.Duration(draw.IntN(30)) * time.Millisecond)
					}
				}
				wg.Wait()
				for _, c := range calls {
					bad := c.value == "bad"
					switch {
					case bad && c.err == nil, c.err != nil && !sluice.IsPermanent(c.err) && !errors.Is(c.err, gone), !bad && sluice.IsPermanent(c.err):
						t.Errorf("%s=%s: %v", c.key, c.value, c.err)
					case c.err != nil:
					case c.value == "":
						delete(want, "t "+c.key)
					default:
						want["t "+c.key] = c.value
					}
				}
				if !maps.Equal(s.items, want) {
					t.Errorf("%v\nwant %v", s.items, want)
				}
				if len(st.order.queues) != 0 {
					t.Errorf("lanes are left: %v", st.order.queues)
				}
			})
		})
	}
}
