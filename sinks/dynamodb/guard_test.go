package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

var errBack = errors.New("the parent is back")

// guarded is a call of DeleteGuarded whose guard notes when it is asked, and
// refuses from a time on.
type guarded struct {
	mu      sync.Mutex
	begun   time.Time
	until   time.Duration // 0 is for ever
	takes   time.Duration // the first answer
	asked   []time.Duration
	deleted int
	held    int
	failed  []error
}

func (g *guarded) delete(keys ...sluice.Item) dynamo.GuardedDelete {
	g.begun = time.Now()
	return dynamo.GuardedDelete{Table: "t", Keys: keys, Guard: g.guard, Done: g.done}
}

func (g *guarded) guard(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	time.Sleep(g.takes)
	g.takes = 0
	now := time.Since(g.begun)
	g.asked = append(g.asked, now.Round(time.Millisecond))
	if g.until > 0 && now >= g.until {
		return errBack
	}
	return nil
}

func (g *guarded) done(keys []sluice.Item, errs []error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range keys {
		switch {
		case errs == nil || errs[i] == nil:
			g.deleted++
		case errors.Is(errs[i], errBack):
			g.held++
		default:
			g.failed = append(g.failed, errs[i])
		}
	}
}

func rows(n int) (keys []sluice.Item) {
	for i := range n {
		keys = append(keys, thing(fmt.Sprintf("%04d", i), ""))
	}
	return keys
}

// With 20 units a second, 300 deletes take 14 s. What a guard learns meanwhile
// holds back all requests that are not yet sent, at once: also the wait of the
// others is over then.
func TestGuardIsAskedAfterTheWaitForTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{units: func(string, string) float64 { return 1 }}
		var sent []time.Duration
		g := guarded{until: 5 * time.Second}
		s.reply = func(int, []string) stubbed {
			g.mu.Lock()
			defer g.mu.Unlock()
			sent = append(sent, time.Since(g.begun).Round(time.Millisecond))
			return stubbed{}
		}
		st := s.store(t, Options{Budget: map[string]float64{"t": 20}})
		st.DeleteGuarded(t.Context(), g.delete(rows(300)...))
		took := time.Since(g.begun)
		if fmt.Sprint(sent) != "[0s 250ms 1.5s 2.75s 4s]" || fmt.Sprint(g.asked) != "[0s 250ms 1.5s 2.75s 4s 5.25s]" {
			t.Errorf("sent at %v, asked at %v", sent, g.asked)
		}
		if g.deleted != 125 || g.held != 175 || g.failed != nil || took > 5250*time.Millisecond+time.Millisecond {
			t.Errorf("%d deleted, %d held back in %v, %v", g.deleted, g.held, took, g.failed)
		}
		// Held back writes use no units: the budget is as after the last request.
		began := time.Now()
		if err := st.Delete(t.Context(), "t", thing("x", "")); err != nil || time.Since(began) > 2*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// The guard is asked again before each repetition of a throttled request. The same
// holds for unprocessed writes, and for each half of a divided request.
func TestGuardIsAskedBeforeEachRepetition(t *testing.T) {
	throttle := stubbed{code: "ProvisionedThroughputExceededException"}
	for name, reply := range map[string]stubbed{"throttled": throttle, "unprocessed": {back: []string{"t-0000", "t-0001"}}, "lost": {lost: true}} {
		synctest.Test(t, func(t *testing.T) {
			s := tablesStub{delay: 10 * time.Millisecond}
			s.reply = func(int, []string) stubbed { return reply }
			g := guarded{until: 100 * time.Millisecond}
			s.store(t, Options{Attempts: 100}).DeleteGuarded(t.Context(), g.delete(rows(2)...))
			if len(g.asked) != len(s.requests)+1 || len(s.requests) < 2 || g.held != 2 || g.failed != nil {
				t.Errorf("%s: asked at %v for %d requests, %d held back, %v", name, g.asked, len(s.requests), g.held, g.failed)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var s tablesStub
		s.reply = func(_ int, writes []string) stubbed {
			if strings.Contains(strings.Join(writes, " "), "0002") {
				return stubbed{code: "ValidationException"}
			}
			return stubbed{}
		}
		var g guarded
		s.store(t, Options{}).DeleteGuarded(t.Context(), g.delete(rows(4)...))
		if len(g.asked) != len(s.requests) || len(s.requests) < 4 || g.deleted != 3 || len(g.failed) != 1 || !sluice.IsPermanent(g.failed[0]) {
			t.Errorf("asked %d times for %d requests, %d deleted, %v", len(g.asked), len(s.requests), g.deleted, g.failed)
		}
	})
}

// Calls share requests. One that is held back does not hold back the other; and
// no answer gets old while another call's guard takes its time.
func TestGuardsThatShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s tablesStub
		st := s.store(t, Options{})
		quick, slow, back := guarded{}, guarded{takes: time.Second}, guarded{until: 1}
		began := time.Now()
		s.reply = func(int, []string) stubbed {
			quick.mu.Lock()
			defer quick.mu.Unlock()
			if last := quick.asked[len(quick.asked)-1]; time.Since(began)-last > promptly+2*time.Millisecond {
				t.Errorf("it was sent %v after the quick guard was asked", time.Since(began)-last)
			}
			return stubbed{}
		}
		var wg sync.WaitGroup
		for i, g := range []*guarded{&quick, &slow, &back} {
			d := g.delete(thing(fmt.Sprint(i), ""))
			wg.Go(func() { st.DeleteGuarded(t.Context(), d) })
		}
		wg.Wait()
		s.expect(t, "t-0 t-1")
		if back.held != 1 || quick.deleted != 1 || slow.deleted != 1 || len(back.asked) != 1 {
			t.Errorf("%+v\n%+v\n%+v", &quick, &slow, &back)
		}
	})
}

func TestGuardThatFails(t *testing.T) {
	for name, guard := range map[string]func(context.Context) error{
		"panics":              func(context.Context) error { panic("oh") },
		"ended its goroutine": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var s tablesStub
			st := s.store(t, Options{})
			var g, other guarded
			d, e := g.delete(rows(40)...), other.delete(thing("other", ""))
			d.Guard = guard
			var wg sync.WaitGroup
			wg.Go(func() { st.DeleteGuarded(t.Context(), e) }) // runs the commit
			synctest.Wait()
			wg.Go(func() { st.DeleteGuarded(t.Context(), d) })
			wg.Wait()
			if name == "panics" && (len(g.failed) != 40 || !strings.Contains(g.failed[0].Error(), "oh")) || g.deleted > 0 {
				t.Errorf("%s: %d deleted, %d failed: %v", name, g.deleted, len(g.failed), g.failed)
			}
			for _, r := range s.requests {
				if strings.Contains(strings.Join(r, " "), "00") {
					t.Errorf("%s: sent %q", name, r)
				}
			}
		})
	}
}

// Each key has one result: also an invalid or repeated key.
func TestDoneIsToldOfEachKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s tablesStub
		st := s.store(t, Options{})
		var g guarded
		keys := append(rows(60), sluice.Item{}, thing("0001", ""))
		st.DeleteGuarded(t.Context(), g.delete(keys...))
		if g.deleted != 61 || len(g.failed) != 1 || !sluice.IsPermanent(g.failed[0]) {
			t.Errorf("%d deleted, %v", g.deleted, g.failed)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		g = guarded{}
		st.DeleteGuarded(ended, g.delete(rows(60)...))
		if len(g.failed) != 60 || !errors.Is(g.failed[0], context.Canceled) || len(g.asked) > 0 {
			t.Errorf("%d deleted, %v", g.deleted, g.failed)
		}
		st.DeleteGuarded(t.Context(), g.delete())
	})
}

// With a condition each item is a request, and the guard is asked before it, too.
func TestGuardedDeletesByCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{delay: 10 * time.Millisecond}
		n := 0
		s.other = func(call string) (int, string) {
			n++ // tablesStub answers one call at a time: InFlight is 1
			switch {
			case call != "DeleteItem":
				t.Error(call)
			case n == 2:
				return 400, `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","message":"no","Item":{"pk":{"S":"0001"},"v":{"N":"9"}}}`
			case n == 3:
				return 400, refusal("ProvisionedThroughputExceededException")
			}
			return 200, `{}`
		}
		g := guarded{until: 300 * time.Millisecond}
		d := g.delete(rows(40)...)
		d.Condition, d.Names, d.Values = "#v <= :v", map[string]string{"#v": "v"}, map[string]any{":v": 7}
		s.store(t, Options{InFlight: 1}).DeleteGuarded(t.Context(), d)
		if g.deleted+g.held+1 != 40 || g.held == 0 || len(g.failed) != 1 || !dynamo.IsCondition(g.failed[0]) {
			t.Errorf("%d deleted, %d held back, %v", g.deleted, g.held, g.failed)
		}
		if len(g.asked) != n+1 {
			t.Errorf("asked at %v for %d requests", g.asked, n)
		}
		if want := `"ConditionExpression":"#v <= :v"`; !strings.Contains(s.bodies[0], want) || !strings.Contains(s.bodies[0], `{":v":{"N":"7"}}`) {
			t.Error(s.bodies[0])
		}
	})
}

// All calls together have InFlight requests under a condition at a time, and no
// guard is asked before there is one free.
func TestGuardedDeletesByConditionAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tablesStub{delay: 10 * time.Millisecond}
		s.other = func(string) (int, string) { return 200, `{}` }
		st := s.store(t, Options{InFlight: 2})
		var wg sync.WaitGroup
		calls := make([]guarded, 3)
		began := time.Now()
		for i := range calls {
			d := calls[i].delete(rows(4)...)
			d.Condition, d.Names = "attribute_not_exists(#v)", map[string]string{"#v": "v"}
			wg.Go(func() { st.DeleteGuarded(t.Context(), d) })
		}
		wg.Wait()
		if took := time.Since(began); took != 60*time.Millisecond {
			t.Errorf("12 requests, 2 at a time, took %v", took)
		}
		for i := range calls {
			if calls[i].deleted != 4 || calls[i].asked[3] == 0 {
				t.Errorf("%d deleted, asked at %v", calls[i].deleted, calls[i].asked)
			}
		}
	})
}
