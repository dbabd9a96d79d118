package opensearch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/tally"
)

// A request sends only the last of several writes of a document, and answers
// all. The same id in another index or with another routing is another
// document.
func TestOnlyTheLastWriteOfADocumentIsSent(t *testing.T) {
	equal := func(op document.Op) document.Op { op.Fence = document.NewerOrEqual; return op }
	routed := func(op document.Op) document.Op { op.Routing = "r"; return op }
	for _, tt := range []struct {
		name       string
		ops        []document.Op
		want       []string
		superseded int
	}{
		{"by order", []document.Op{put("i", "a", `{"n":1}`), put("i", "a", `{"n":2}`)}, []string{`i+a={"n":2}`}, 1},
		{"deleted", []document.Op{put("i", "a", `{"n":1}`), put("i", "a", `{"n":2}`), del("i", "a")}, []string{"i-a"}, 2},
		{"recreated", []document.Op{del("i", "a"), put("i", "a", `{"n":1}`)}, []string{`i+a={"n":1}`}, 1},
		{"by version", []document.Op{putAt("i", "a", 2, `{"n":2}`), delAt("i", "a", 3), putAt("i", "a", 1, `{"n":1}`)}, []string{"i-a@3"}, 2},
		{"equal versions", []document.Op{putAt("i", "a", 2, `{"n":1}`), putAt("i", "a", 2, `{"n":2}`)}, []string{`i+a@2={"n":1}`}, 1},
		{"equal versions, written again", []document.Op{putAt("i", "a", 2, `{"n":1}`), equal(putAt("i", "a", 2, `{"n":2}`))}, []string{`i+a@2~={"n":2}`}, 1},
		{"two indices", []document.Op{put("i", "a", "{}"), put("j", "a", "{}")}, []string{"i+a={}", "j+a={}"}, 0},
		{"two routings", []document.Op{put("i", "a", "{}"), routed(put("i", "a", "{}"))}, []string{"i+a={}", "i+a^r={}"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c cluster
				var counts tally.Tally
				s := c.sink(t, Options{Metrics: &counts})
				if errs := writeAll(t, s, tt.ops...); errs != nil {
					t.Error(errs)
				}
				c.expect(t, tt.want)
				if superseded := counts.Sum("sluice_documents_superseded_total"); superseded != tt.superseded {
					t.Errorf("%d superseded, want %d", superseded, tt.superseded)
				}
				expectFree(t, s)
			})
		})
	}
}

// expectFree reports entries in the lanes and the budget when nobody writes.
func expectFree(t *testing.T, s *Sink) {
	t.Helper()
	if n := len(s.order.lanes); n != 0 {
		t.Errorf("%d lanes are taken", n)
	}
	if !s.waiting.free.TryAcquire(int64(s.waiting.max)) {
		t.Error("bytes are still taken, or wait")
	}
	if s.limit.running != 0 || len(s.limit.queue) != 0 {
		t.Errorf("%d requests run, %d wait", s.limit.running, len(s.limit.queue))
	}
}

// When the last write can never be made, the one before it is made.
func TestTheWriteBeforeARejectedOneIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{item: func(_ int, w string) *verdict {
			if strings.Contains(w, "bad") {
				return &verdict{status: 400, typ: "mapper_parsing_exception"}
			}
			return nil
		}}
		s := c.sink(t, Options{})
		errs := writeAll(t, s, put("i", "a", `{"n":1}`), put("i", "a", `{"n":2}`), put("i", "a", `{"bad":3}`), put("i", "a", `{"bad":4}`), put("i", "b", "{}"))
		for i, err := range errs {
			if bad := i == 2 || i == 3; bad != (err != nil) || bad && !sluice.IsPermanent(err) {
				t.Errorf("%d: %v", i, err)
			}
		}
		c.expect(t, []string{`i+a={"bad":4}`, "i+b={}"}, []string{`i+a={"bad":3}`}, []string{`i+a={"n":2}`})
		if errs := writeAll(t, s, put("i", "a", `{"bad":1}`), put("i", "a", `{"bad":2}`)); !sluice.IsPermanent(errs[0]) || !sluice.IsPermanent(errs[1]) {
			t.Error(errs)
		}
		expectFree(t, s)
	})
}

// All writes of a document that fails for the moment fail, each with its own
// error.
func TestAllWritesOfADocumentFailWithTheirOwnErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{item: func(int, string) *verdict { return &verdict{status: 503} }}
		s := c.sink(t, Options{Timeout: time.Second})
		errs := writeAll(t, s, putAt("i", "a", 1, "{}"), putAt("i", "a", 3, "{}"), putAt("i", "a", 2, "{}"))
		for i, version := range []int64{1, 3, 2} {
			var e *document.Error
			if errs == nil || !errors.As(errs[i], &e) || e.Version != version || e.Status != 503 || sluice.IsPermanent(errs[i]) {
				t.Errorf("%d: %v", i, errs)
			}
		}
		expectFree(t, s)
	})
}

// A write waits while another write of its document is on its way. Writes that
// wait go together.
func TestAWriteWaitsForTheOneBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: time.Second}
		s := c.sink(t, Options{})
		var wg sync.WaitGroup
		write := func(op document.Op) {
			wg.Go(func() {
				if err := s.Write(t.Context(), op); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		write(put("i", "a", `{"n":1}`))
		time.Sleep(10 * time.Millisecond)
		for n := 2; n < 5; n++ {
			write(put("i", "a", fmt.Sprintf(`{"n":%d}`, n)))
			time.Sleep(10 * time.Millisecond)
		}
		write(put("i", "b", "{}"))
		wg.Wait()
		c.expect(t, []string{`i+a={"n":1}`}, []string{"i+b={}"}, []string{`i+a={"n":4}`})
		expectFree(t, s)
	})
}

// A write that waits for another is withdrawn when its caller gives up. The writes
// behind it continue.
func TestCanceledBehindAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: time.Second}
		s := c.sink(t, Options{})
		cause := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for n, ctx := range []context.Context{t.Context(), ctx, t.Context(), ctx} {
			wg.Go(func() {
				err := s.Write(ctx, put("i", "a", fmt.Sprintf(`{"n":%d}`, n)))
				if gone := n%2 == 1; gone != errors.Is(err, cause) || !gone && err != nil {
					t.Errorf("%d: %v", n, err)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		cancel(cause)
		wg.Wait()
		c.expect(t, []string{`i+a={"n":0}`}, []string{`i+a={"n":2}`})
		expectFree(t, s)
	})
}

// Two calls with the same documents in opposite orders do not wait for each
// other for ever.
func TestCallsThatCross(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: time.Second}
		s := c.sink(t, Options{MaxItems: 1})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				ops := []document.Op{put("i", "a", "{}"), put("i", "b", "{}"), put("i", "c", "{}"), put("i", "d", "{}")}
				if i%2 == 1 {
					slices.Reverse(ops)
				}
				if errs := s.WriteAll(t.Context(), ops[i/2:]); errs != nil {
					t.Error(errs)
				}
			})
		}
		wg.Wait()
		expectFree(t, s)
	})
}

// A temporary refusal of one index does not delay other writes of its request, or later
// writes, even with few requests.
func TestRefusedForTheMomentHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{delay: 10 * time.Millisecond, item: func(_ int, w string) *verdict {
			if strings.HasPrefix(w, "red") {
				return &verdict{status: 503, typ: "unavailable_shards_exception"}
			}
			return nil
		}}
		s := c.sink(t, Options{InFlight: 1, Timeout: time.Minute})
		var wg sync.WaitGroup
		begun := time.Now()
		for i := range 20 {
			wg.Go(func() {
				err := s.Write(t.Context(), put("red", fmt.Sprint(i), "{}"))
				var e *document.Error
				if !errors.As(err, &e) || e.Status != 503 || sluice.IsPermanent(err) || !strings.Contains(err.Error(), "given up after") {
					t.Errorf("red: %v", err)
				}
				if took := time.Since(begun); took < 2*time.Second || took > time.Minute+100*time.Millisecond {
					t.Errorf("red: given up after %v", took)
				}
			})
			wg.Go(func() {
				for n := range 10 {
					start := time.Now()
					if err := s.Write(t.Context(), put("green", fmt.Sprint(i), "{}")); err != nil {
						t.Error(err)
					}
					if took := time.Since(start); took > time.Second {
						t.Errorf("green: write %d took %v", n, took)
					}
					time.Sleep(time.Second)
				}
			})
		}
		wg.Wait()
		expectFree(t, s)
	})
}

// A write can run out of time while others use the only slot. Its error is still the
// cluster's own, and so are the errors of its neighbours.
func TestTimeRunsOutBetweenCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cluster{item: func(_ int, w string) *verdict {
			if strings.HasPrefix(w, "red") {
				return &verdict{status: 503}
			}
			return nil
		}, request: func(_ int, ws []string) *reply {
			if strings.HasPrefix(ws[0], "slow") {
				return &reply{hang: true}
			}
			return nil
		}}
		s := c.sink(t, Options{InFlight: 1, Timeout: time.Hour, Backoff: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			errs := s.WriteAll(ctx, []document.Op{put("red", "a", `{"n":1}`), putAt("red", "b", 7, "{}"), putAt("red", "b", 8, "{}")})
			for i, version := range []int64{0, 7, 8} {
				var e *document.Error
				if errs == nil || !errors.As(errs[i], &e) || e.Status != 503 || e.Version != version || sluice.IsPermanent(errs[i]) {
					t.Errorf("%d: %v", i, errs)
				}
			}
		})
		time.Sleep(time.Second)
		wg.Go(func() { _ = s.Write(t.Context(), put("slow", "a", "{}")) })
		wg.Wait()
		expectFree(t, s)
	})
}

// The cluster and the callers do anything. Each write has exactly one answer,
// the state follows from the writes that succeeded, and nothing is left behind.
func TestRandomHistories(t *testing.T) {
	for n := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(n, 1))
			fate := rand.New(rand.NewPCG(n, 2)) // under the cluster's lock
			c := cluster{delay: 10 * time.Millisecond}
			c.item = func(_ int, w string) *verdict {
				switch {
				case strings.Contains(w, "bad"):
					return &verdict{status: 400, typ: "mapper_parsing_exception"}
				case fate.IntN(5) == 0:
					return &verdict{status: 429, done: fate.IntN(2) == 0}
				}
				return nil
			}
			c.request = func(_ int, ws []string) *reply {
				switch fate.IntN(10) {
				case 0:
					return &reply{lost: true}
				case 1:
					return &reply{status: 503}
				case 2:
					if len(ws) > 2 {
						return &reply{status: 413}
					}
				}
				return nil
			}
			var counts tally.Tally
			s := c.sink(t, Options{MaxItems: 1 + rnd.IntN(6), InFlight: 1 + rnd.IntN(3), WaitBytes: 400 + rnd.IntN(2000), Timeout: time.Hour, Metrics: &counts})
			// Documents f… are fenced: the greatest version wins. Documents o… are
			// written by one caller each: the last one wins.
			want := map[string]string{}
			best := map[string]int64{}
			var failed atomic.Int64
			var wg sync.WaitGroup
			for caller := range 4 {
				var ops []document.Op
				for range rnd.IntN(30) {
					body := fmt.Sprintf(`{"c":%d,"n":%d}`, caller, len(ops))
					spoiled := rnd.IntN(8) == 0
					var op document.Op
					if rnd.IntN(2) == 0 {
						id, version := fmt.Sprintf("f%d", rnd.IntN(3)), rnd.Int64N(1<<40)
						op = putAt("i", id, version, body)
						if rnd.IntN(4) == 0 && !spoiled {
							op, body = delAt("i", id, version), ""
						}
						if !spoiled && version >= best[id] {
							best[id], want["i "+id] = version, body
						}
					} else {
						id := fmt.Sprintf("o%d.%d", caller, rnd.IntN(3))
						op = put("i", id, body)
						if rnd.IntN(4) == 0 && !spoiled {
							op, body = del("i", id), ""
						}
						if !spoiled {
							want["i "+id] = body
						}
					}
					if spoiled {
						op.Body = []byte(`{"bad":1}`)
					}
					ops = append(ops, op)
				}
				sizes := rnd.IntN(12) + 1
				wg.Go(func() {
					for part := range slices.Chunk(ops, sizes) {
						errs := s.WriteAll(t.Context(), part)
						for i, op := range part {
							var err error
							if errs != nil {
								err = errs[i]
							}
							// A write replaced by a later one has that one's success.
							if bad := string(op.Body) == `{"bad":1}`; err != nil && !(bad && sluice.IsPermanent(err)) {
								t.Errorf("seed %d: %s %s@%d: %v", n, op.Action, op.ID, op.Version, err)
							}
							if err != nil {
								failed.Add(1)
							}
						}
					}
				})
			}
			wg.Wait()
			for key, body := range want {
				if body == "" {
					delete(want, key)
				}
			}
			if diff := cmp.Diff(want, c.live()); diff != "" {
				t.Errorf("seed %d: %s", n, diff)
			}
			if rejected := counts.Sum("sluice_documents_rejected_total"); int(failed.Load()) != rejected {
				t.Errorf("seed %d: %d failed, %d rejected", n, failed.Load(), rejected)
			}
			expectFree(t, s)
		})
	}
}
