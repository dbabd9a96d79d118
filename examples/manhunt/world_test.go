package manhunt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/tabletest"
)

// town is Manhunt at work: a table, its stream, its queue, and people who can be
// called. It is made in a bubble.
type town struct {
	*tabletest.World
	*Table
	handle sluice.Handler
	calls  []string // time and key
	call   func(Call) error
}

func at(clock string) time.Time {
	when, err := time.Parse(time.DateTime, "2019-12-30 "+clock)
	if err != nil {
		panic(err)
	}
	return when
}

func newTown(t *testing.T, clock string) *town {
	w := &town{World: tabletest.NewWorld(at(clock))}
	w.Create("manhunt", "PK", "SK")
	w.Table = NewTable(w.World, "manhunt")
	provider := func(_ context.Context, c Call) error {
		w.calls = append(w.calls, w.Now().Format(time.TimeOnly)+" "+c.DedupeKey)
		if w.call != nil {
			return w.call(c)
		}
		return nil
	}
	r, err := NewRouter(Deps{
		Store: w.World, Send: w.Queue("attempts"), Watch: w.Queue("watch"), Notify: w.Queue("reflex"), Now: w.Now,
		Providers: map[string]Provider{"email": provider, "call": provider},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.handle = func(ctx context.Context, rec *sluice.Record) error {
		if strings.HasSuffix(rec.StreamARN, ":reflex") {
			return nil // the sister service's
		}
		return r.Dispatch(ctx, rec)
	}
	return w
}

func (w *town) run(t *testing.T, clock string) {
	t.Helper()
	if err := w.Run(t.Context(), w.handle, at(clock)); err != nil {
		t.Fatal(err)
	}
	if len(w.Parked) > 0 {
		t.Fatalf("parked: %v", w.Parked)
	}
}

func (w *town) put(t *testing.T, items ...sluice.Item) {
	t.Helper()
	for _, it := range items {
		if err := w.Table.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
}

// notices are the distinct messages to Reflex, sends what else was sent, and
// when.
func (w *town) notices() (all []string) {
	for _, s := range w.Sent {
		if s.Queue == "reflex" && !slices.Contains(all, s.Body) {
			all = append(all, s.Body)
		}
	}
	return all
}

func (w *town) sends() (all []string) {
	for _, s := range w.Sent {
		if s.Queue == "attempts" {
			all = append(all, fmt.Sprintf("%s +%v %s", s.At.Format(time.TimeOnly), s.Delay.Seconds(), s.Body))
		}
	}
	return all
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func (w *town) search(t *testing.T) Search {
	t.Helper()
	s, found, err := w.Search(t.Context(), "a271244")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	return s
}

// slow makes the email's provider take five seconds, and the stream show the
// attempt a second later, as in the example that the numbers are from.
func (w *town) slow() {
	w.call = func(c Call) error {
		if c.Type == "email" {
			time.Sleep(5 * time.Second)
		}
		return nil
	}
	next := w.handle
	w.handle = func(ctx context.Context, rec *sluice.Record) error {
		if v, ok := rec.New.Lookup("step"); ok && rec.EventName == sluice.Modify && v.Str() == "0" {
			time.Sleep(time.Second)
		}
		return next(ctx, rec)
	}
}

func TestSearchToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, "19:32:15")
		w.slow()
		w.put(t, Fixtures()[:attempt]...)
		w.run(t, "21:00:00")
		expiry := strings.Replace(expiryBody, "19:57:25", "19:57:20", 1)
		same(t, "sent", w.sends(),
			"19:32:15 +0 "+firstBody,
			"19:32:21 +900 "+secondBody,
			"19:47:21 +299 "+secondBody,
			"19:52:20 +300 "+expiry)
		same(t, "calls", w.calls, "19:32:15 a271244#0", "19:52:20 a271244#1")
		same(t, "notices", w.notices(), fmt.Sprintf(noticeBody, "failed"))
		it := searchItem(t, &w.DB, "a271244")
		if !it.Equal(ended(Fixtures()[search], "failed", Ending{By: "manhunt", At: at("19:57:20"), Why: "no_response"})) {
			t.Errorf("search is now %s", it.Raw())
		}
		_, attempts, _, err := w.SearchWithAttempts(t.Context(), "a271244")
		if err != nil || len(attempts) != 2 {
			t.Fatalf("%v, %+v", err, attempts)
		}
		for _, a := range attempts {
			if want := map[int64]string{0: "2019-12-30T19:32:20Z", 1: "2019-12-30T19:52:20Z"}[a.Step]; a.Attempted != want || a.ID != AttemptID("a271244", 0, a.Step) {
				t.Errorf("attempt %+v", a)
			}
		}
	})
}

func TestAllOfItTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, "19:32:15")
		w.Twice = true
		var batch []sluice.Record
		next := w.handle
		w.handle = func(ctx context.Context, rec *sluice.Record) error {
			if rec.EventName != sluice.Delivery {
				batch = append(batch, *rec)
			}
			return next(ctx, rec)
		}
		w.put(t, Fixtures()[:attempt]...)
		w.run(t, "19:50:00")
		w.Replay(batch...)
		w.run(t, "21:00:00")
		same(t, "calls", w.calls, "19:32:15 a271244#0", "19:52:15 a271244#1")
		same(t, "notices", w.notices(), fmt.Sprintf(noticeBody, "failed"))
		bodies := make(map[string]string)
		for _, s := range w.Sent {
			if s.Queue == "watch" {
				continue
			}
			key := s.Attributes["dedupeKey"].Value
			if before, ok := bodies[key]; ok && before != s.Body {
				t.Errorf("sent for %s\n  %s\n  %s", key, before, s.Body)
			}
			bodies[key] = s.Body
		}
		if len(bodies) != 4 || len(w.sends()) < 8 {
			t.Errorf("%d bodies in %d messages", len(bodies), len(w.sends()))
		}
		if n := len(w.Items("manhunt")); n != attempt+2 {
			t.Errorf("%d items: %s", n, rows(w))
		}
	})
}

func TestContactDeletedFirst(t *testing.T) {
	for name, when := range map[string]string{"before the search is seen": "19:32:15", "before the second step": "19:40:00"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, "19:32:15")
				w.put(t, Fixtures()[:attempt]...)
				if when != "19:32:15" {
					w.run(t, when)
				}
				before := len(w.Sent)
				var bodies []string
				for _, s := range w.Sent {
					bodies = append(bodies, s.Body)
				}
				if err := w.Write(t.Context(), dynamo.Delete("manhunt", key("89fa8f8", "contact"))); err != nil {
					t.Fatal(err)
				}
				w.run(t, "21:00:00")
				for _, s := range w.Sent[before:] { // but for hops
					if s.Queue == "attempts" && !slices.Contains(bodies, s.Body) {
						t.Errorf("sent %s", s.Body)
					}
				}
				if before == 0 && len(w.sends()) != 0 || before == 0 && len(w.calls) != 0 {
					t.Errorf("sent %q, calls %q", w.sends(), w.calls)
				}
				same(t, "notices", w.notices(), fmt.Sprintf(noticeBody, "failed"))
				it := searchItem(t, &w.DB, "a271244")
				if !it.Equal(ended(Fixtures()[search], "failed", Ending{By: "manhunt", At: at(when), Why: contactNotFound})) {
					t.Errorf("search is now %s", it.Raw())
				}
				if strings.Contains(rows(w), "538235b") {
					t.Errorf("left: %s", rows(w))
				}
			})
		})
	}
}

func TestResolvedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, "19:32:15")
		w.put(t, Fixtures()[:attempt]...)
		w.run(t, "19:40:00")
		for i, want := range []bool{true, false} { // the first response wins
			if first, err := w.Answer(t.Context(), "a271244", 0, fmt.Sprint("yes ", i)); first != want || err != nil {
				t.Error(first, err)
			}
		}
		w.run(t, "21:00:00")
		same(t, "calls", w.calls, "19:32:15 a271244#0")
		same(t, "notices", w.notices(), fmt.Sprintf(noticeBody, "successful"))
		if s := w.search(t); s.Status != Successful || s.Resolution != "yes 0" || attribute(searchItem(t, &w.DB, "a271244"), "GSI2PK") != "successful#89fa8f8" {
			t.Errorf("%+v", s)
		}
	})
}

// A method that goes while its message waits is written down as skipped, and
// the search goes on behind it.
func TestMethodGoesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, "19:32:15")
		w.put(t, Fixtures()[:attempt]...)
		w.put(t, edit(Fixtures()[call], "800e613", "900e613", `"order":{"N":"2"}`, `"order":{"N":"3"}`, "1200", "60"))
		w.run(t, "19:40:00")
		if err := w.Write(t.Context(), dynamo.Delete("manhunt", key("89fa8f8", "800e613"))); err != nil {
			t.Fatal(err)
		}
		w.run(t, "21:00:00")
		same(t, "calls", w.calls, "19:32:15 a271244#0", "19:53:15 a271244#2")
		_, attempts, _, err := w.SearchWithAttempts(t.Context(), "a271244")
		if err != nil || len(attempts) != 3 {
			t.Fatalf("%v, %+v", err, attempts)
		}
		for _, a := range attempts {
			if a.Step == 1 && (a.Outcome != "skipped" || a.Method.ID != "800e613" || a.Method.Order != 2 || a.Attempted != "2019-12-30T19:52:15Z") {
				t.Errorf("%+v", a)
			}
		}
	})
}

// TestSeeds draws what happens to a search, in which order things are handled,
// and what fails, and looks at what must hold whatever is drawn.
func TestSeeds(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) { drawn(t, seed) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func drawn(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := newTown(t, "19:32:15")
	w.Rand = rng
	faulty := seed%2 == 1
	throttled := errors.New("throttled")
	called := make(map[string]int)
	var endedAt time.Time
	w.call = func(c Call) error {
		called[c.DedupeKey]++
		if !endedAt.IsZero() && w.Now().After(endedAt) {
			t.Errorf("%s was called at %v, the search ended at %v", c.DedupeKey, w.Now(), endedAt)
		}
		if faulty && rng.IntN(8) == 0 {
			called[c.DedupeKey]--
			return throttled
		}
		return nil
	}
	methods := make(map[string]bool)
	for i := range rng.IntN(5) {
		id := fmt.Sprintf("m%d", i)
		w.put(t, edit(Fixtures()[call], "800e613", id, `"order":{"N":"2"}`, fmt.Sprintf(`"order":{"N":"%d"}`, rng.IntN(3)), "1200", fmt.Sprint(rng.IntN(2000))))
		methods[id] = true
	}
	w.put(t, Fixtures()[contact], Fixtures()[search], Fixtures()[canceled])
	inner := w.handle
	w.handle = func(ctx context.Context, rec *sluice.Record) error {
		err := inner(ctx, rec)
		if s := searchItem(t, &w.DB, "a271244"); endedAt.IsZero() && attribute(s, "status") != Active {
			endedAt = w.Now()
		}
		return err
	}
	if faulty {
		w.Fault = func(_ bool, ops []dynamo.Op) error {
			if rng.IntN(10) == 0 {
				return throttled
			}
			return nil
		}
	}
	events := []func(){
		func() { w.Answer(t.Context(), "a271244", rng.Int64N(3), "yes") },
		func() { w.Cancel(t.Context(), "a271244", byAda) },
		func() { w.Write(t.Context(), dynamo.Delete("manhunt", key("89fa8f8", "contact"))) },
		func() { w.Write(t.Context(), dynamo.Delete("manhunt", key("89fa8f8", "m1"))) },
		func() { w.Table.Put(t.Context(), edit(Fixtures()[call], "800e613", "m2", "true", "false")) },
	}
	now := at("19:32:15")
	for range rng.IntN(4) {
		now = now.Add(time.Duration(rng.IntN(3000)) * time.Second)
		w.run(t, now.Format(time.TimeOnly))
		events[rng.IntN(len(events))]()
		if s := searchItem(t, &w.DB, "a271244"); endedAt.IsZero() && attribute(s, "status") != Active {
			endedAt = w.Now()
		}
	}
	if err := w.Run(t.Context(), w.handle, at("19:00:00").Add(24*time.Hour)); err != nil || len(w.Parked) > 0 {
		t.Fatal(err, w.Parked)
	}

	s := w.search(t)
	if s.Status == Active || attribute(searchItem(t, &w.DB, "a271244"), "GSI2PK") != s.Status+"#89fa8f8" {
		t.Errorf("in the end the search is %s", searchItem(t, &w.DB, "a271244").Raw())
	}
	same(t, "notices", w.notices(), fmt.Sprintf(noticeBody, s.Status))
	_, attempts, _, err := w.SearchWithAttempts(t.Context(), "a271244")
	if err != nil {
		t.Fatal(err)
	}
	steps := make([]bool, len(attempts))
	for _, a := range attempts {
		if a.Step >= int64(len(attempts)) || steps[a.Step] || a.ID != AttemptID("a271244", 0, a.Step) {
			t.Errorf("attempts %+v", attempts)
			break
		}
		steps[a.Step] = true
		calls := called[fmt.Sprint("a271244#", a.Step)]
		// The last one is not made when the search ends while it waits to be
		// tried again.
		waited := faulty && calls == 0 && a.Step == int64(len(attempts))-1 && s.Resolution != noResponse
		if a.Attempted == "" && !waited || a.Outcome == "contacted" && calls == 0 {
			t.Errorf("attempt %+v, %d calls", a, calls)
		}
	}
	for key, n := range called {
		if n > 1 && !faulty {
			t.Errorf("%s was called %d times", key, n)
		}
	}
}
