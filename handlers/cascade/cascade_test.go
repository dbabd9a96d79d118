package cascade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/tally"
)

const (
	mapKey = `{"user_id":{"S":"u-1"},"map_id":{"S":"m-1"}}`
	body   = `{"kind":"cascade.delete","table":"points","key":{"map_id":"m-1"},"parent":{"table":"maps","key":{"user_id":"u-1","map_id":"m-1"}},"dedupeKey":"maps/u-1/m-1"}`
	swept  = `{"kind":"cascade.delete","table":"points","key":{"map_id":"m-1"},"parent":{"table":"maps","key":{"user_id":"u-1","map_id":"m-1"}},"dedupeKey":"maps/u-1/m-1#sweep","sweep":true}`
)

// removed is the record of a deleted item.
func removed(table, keys, old string) *sluice.Record {
	view := "NEW_AND_OLD_IMAGES"
	if old == "" {
		view = "KEYS_ONLY"
	}
	rec := recordtest.New(recordtest.Spec{
		Event: sluice.Remove, Keys: keys, Old: old, ViewType: view,
		ARN: "arn:aws:dynamodb:us-east-1:123456789012:table/" + table + "/stream/2024-01-01T00:00:00.000",
	})
	return &rec
}

// The order of a record's keys is the service's own.
func mapRemoved() *sluice.Record {
	return removed("maps", `{"map_id":{"S":"m-1"},"user_id":{"S":"u-1"}}`, `{"map_id":{"S":"m-1"},"user_id":{"S":"u-1"},"name":{"S":"Alps"}}`)
}

func point(m string, p int) string {
	return fmt.Sprintf(`{"map_id":{"S":%q},"point_id":{"S":"p-%06d"},"name":{"S":"x"}}`, m, p)
}

// points fills a world with n children of m-1, and two of m-2 that stay.
func points(n int) *world {
	w := newWorld()
	w.table("maps", "user_id", "map_id").put(`{"user_id":{"S":"u-1"},"map_id":{"S":"m-2"}}`)
	t := w.table("points", "map_id", "point_id")
	for i := range n {
		t.put(point("m-1", i))
	}
	t.put(point("m-2", 1), point("m-2", 2), point("m-10", 1))
	return w
}

// left returns how many of m-1's points are left, and fails when others are gone.
func (w *world) left(t *testing.T) int {
	t.Helper()
	rows := w.tables["points"].rows
	for _, p := range []string{point("m-2", 1), point("m-2", 2), point("m-10", 1)} {
		if _, there := rows[string(parse(p).Only("map_id", "point_id").Raw())]; !there {
			t.Errorf("%s is gone", p)
		}
	}
	return len(rows) - 3
}

func bodies(w *world) (out []string) {
	for _, q := range w.queue {
		out = append(out, fmt.Sprintf("%v %s", q.m.Delay, q.m.Body))
	}
	return out
}

func TestInlineUnderTheThreshold(t *testing.T) {
	for _, n := range []int{0, 1, 24, 25, 26, 499, 500} {
		w := points(n)
		c := w.config()
		c.Threshold, c.PageSize = DefaultThreshold, 100
		if err := must(t, c).Remove(t.Context(), mapRemoved()); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		if w.left(t) != 0 || len(w.queue) != 0 {
			t.Errorf("%d: %d left, sent %q", n, w.left(t), bodies(w))
		}
	}
}

func TestBeyondTheThresholdTheRestIsHandedOver(t *testing.T) {
	for _, n := range []int{501, 526, 2000} {
		w := points(n)
		c := w.config()
		c.Threshold, c.PageSize = 500, 120
		if err := must(t, c).Remove(t.Context(), mapRemoved()); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		if w.left(t) != n-500 {
			t.Errorf("%d: %d left", n, w.left(t))
		}
		if diff := cmp.Diff([]string{"0s " + body}, bodies(w)); diff != "" {
			t.Error(diff)
		}
	}
}

// The rows that the Threshold left may be all of a page, and those before them
// no children: that is not the end.
func TestThresholdThatEndsWithAPageIsNoEnd(t *testing.T) {
	w := points(0)
	w.tables["points"].index("byOwner", 0, "owner")
	for i := range 30 {
		owner := "u-1"
		if i < 28 {
			owner = "u-2"
		}
		w.tables["points"].put(fmt.Sprintf(`{"map_id":{"S":"x"},"point_id":{"S":"%03d"},"owner":{"S":%q}}`, i, owner))
	}
	// The index still shows a child that has moved since.
	w.query(t.Context(), dynamo.Query{Table: "points", Index: "byOwner", Partition: attribute(parse(`{"owner":{"S":"u-1"}}`), "owner")})
	x := w.tables["points"].indexes["byOwner"]
	for key, it := range x.rows {
		x.change(key, parse(strings.Replace(string(it.Raw()), "u-2", "u-1", 1)))
	}
	c := w.config()
	c.Children[0].Index, c.Children[0].Partition = "byOwner", Attr{Name: "owner", From: "user_id"}
	c.Threshold = 28
	if err := must(t, c).Remove(t.Context(), mapRemoved()); err != nil {
		t.Fatal(err)
	}
	if got := bodies(w); len(got) != 1 || strings.Contains(got[0], "sweep") {
		t.Errorf("sent %q, want that two rows are left", got)
	}
}

func TestThreshold0AlwaysSends(t *testing.T) {
	w := points(3)
	if err := must(t, w.config()).Remove(t.Context(), mapRemoved()); err != nil {
		t.Fatal(err)
	}
	if w.left(t) != 3 || w.queries != 0 {
		t.Errorf("%d left after %d queries", w.left(t), w.queries)
	}
	if diff := cmp.Diff([]string{"0s " + body}, bodies(w)); diff != "" {
		t.Error(diff)
	}
	if got := w.queue[0].m.Attributes["dedupeKey"].Value; got != "maps/u-1/m-1" {
		t.Error(got)
	}
}

func TestWorkEndsWithASweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(1234)
		c := w.config()
		c.PageSize = 100
		var counts tally.Tally
		c.Metrics = &counts
		x := must(t, c)
		if err := x.Remove(t.Context(), mapRemoved()); err != nil {
			t.Fatal(err)
		}
		if _, err := w.deliver(t.Context(), x.Work); err != nil {
			t.Fatal(err)
		}
		if w.left(t) != 0 {
			t.Errorf("%d left", w.left(t))
		}
		if diff := cmp.Diff([]string{"1m0s " + swept}, bodies(w)); diff != "" {
			t.Error(diff)
		}
		// Children that are written during the cascade.
		w.tables["points"].put(point("m-1", 7), point("m-1", 9))
		begun := time.Now()
		w.drain(t, x.Work)
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("the sweep came after %v", took)
		}
		if sweeps := counts.Values("sluice_cascade_swept_rows_total", "points"); w.left(t) != 0 || fmt.Sprint(sweeps) != "[2]" {
			t.Errorf("%d left after sweeps of %v", w.left(t), sweeps)
		}
	})
}

func TestParentThatExistsAgainStopsAll(t *testing.T) {
	w := points(10)
	w.tables["maps"].put(`{"user_id":{"S":"u-1"},"map_id":{"S":"m-1"}}`)
	c := w.config()
	c.Threshold = DefaultThreshold
	var counts tally.Tally
	c.Metrics = &counts
	x := must(t, c)
	for name, err := range map[string]error{
		"remove": x.Remove(t.Context(), mapRemoved()),
		"work":   x.Work(t.Context(), record(sluice.Message{Body: body})),
		"sweep":  x.Work(t.Context(), record(sluice.Message{Body: swept})),
	} {
		if !sluice.IsSkip(err) || err.Error() != "skipped: parent exists again" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if stops := counts.Sum("sluice_cascade_stops_total"); w.left(t) != 10 || w.deletes != 0 || len(w.queue) != 0 || stops != 3 {
		t.Errorf("%d left, %d deleted, sent %q, %d stops", w.left(t), w.deletes, bodies(w), stops)
	}
}

// A message of a parent that exists again sends no sweep, also when nothing is left.
func TestParentThatExistsAgainHasNoSweep(t *testing.T) {
	w := points(0)
	w.tables["maps"].put(mapKey)
	if err := must(t, w.config()).Work(t.Context(), record(sluice.Message{Body: body})); !sluice.IsSkip(err) || len(w.queue) > 0 {
		t.Errorf("%v, %q", err, bodies(w))
	}
}

// The parent comes back while its children go: what was read before may still
// go, of a page whose deletes had begun; all else stays.
func TestParentComesBackInTheMiddle(t *testing.T) {
	for _, way := range []string{"remove", "work"} {
		synctest.Test(t, func(t *testing.T) {
			w := points(5000)
			w.took = 5 * time.Millisecond
			c := w.config()
			c.Threshold, c.PageSize, w.inFlight = Unlimited, 100, 4
			at := 0
			w.onDelete = func(string, []sluice.Item) []error {
				if w.deletes >= 2000 && at == 0 {
					at = w.deletes
					w.tables["maps"].put(mapKey)
				}
				return nil
			}
			x := must(t, c)
			var err error
			if way == "remove" {
				err = x.Remove(t.Context(), mapRemoved())
			} else {
				err = x.Work(t.Context(), record(sluice.Message{Body: body}))
			}
			if !sluice.IsSkip(err) {
				t.Errorf("%s: %v", way, err)
			}
			// Pages in progress: the parent was read before each of them.
			if late := w.deletes - at; at == 0 || late > pagesAtOnce*c.PageSize {
				t.Errorf("%s: %d rows went after the parent was back at %d", way, late, at)
			}
			if len(w.queue) != 0 {
				t.Errorf("%s: sent %q", way, bodies(w))
			}
		})
	}
}

// Under a small write budget the deletes of one page take long; the parent is
// looked for between them.
func TestParentComesBackDuringSlowDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(1000)
		c := w.config()
		w.inFlight = 2
		w.waits = 10 * time.Second
		time.AfterFunc(25*time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.tables["maps"].put(mapKey)
		})
		if err := must(t, c).Work(t.Context(), record(sluice.Message{Body: body})); !sluice.IsSkip(err) {
			t.Error(err)
		}
		if w.deletes != 4*requestRows { // two requests at a time, the last two sent at 20 s
			t.Errorf("%d rows went", w.deletes)
		}
	})
}

// The sweep has a budget, too, and goes on as a sweep.
func TestSweepOutOfTimeGoesOnAsSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(500)
		w.took = time.Second
		c := w.config()
		c.Budget, w.inFlight = 10*time.Second, 1
		x := must(t, c)
		m := record(sluice.Message{Body: swept, Attributes: map[string]sluice.MessageAttribute{"a": {Value: "b"}}})
		if err := x.Work(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"0s " + swept}, bodies(w)); diff != "" || w.queue[0].m.Attributes["a"].Value != "b" {
			t.Error(diff, w.queue[0].m.Attributes)
		}
		w.drain(t, x.Work)
		if w.left(t) != 0 {
			t.Errorf("%d left", w.left(t))
		}
	})
}

func TestInlineTime(t *testing.T) {
	for _, deadline := range []time.Duration{0, 6 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := points(1000)
			w.took = 500 * time.Millisecond
			c := w.config()
			c.Threshold, w.inFlight = 1000, 1
			ctx, want := t.Context(), 5*time.Second
			if deadline > 0 {
				limited, cancel := context.WithTimeout(ctx, deadline)
				defer cancel()
				ctx, want = limited, deadline/2
			}
			begun := time.Now()
			if err := must(t, c).Remove(ctx, mapRemoved()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took < want || took > want+2*time.Second {
				t.Errorf("deadline %v: took %v", deadline, took)
			}
			if got := bodies(w); len(got) != 1 || got[0] != "0s "+body || w.left(t) == 0 || w.left(t) == 1000 {
				t.Errorf("%d left, sent %q", w.left(t), got)
			}
		})
	}
}

// A record whose deletes wait beyond its time hands all of them to a message. A held
// back delete has not failed.
func TestInlineTimeThatIsOverBeforeTheFirstDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(1000)
		w.waits = 10 * time.Second
		c := w.config()
		c.Threshold = 1000
		if err := must(t, c).Remove(t.Context(), mapRemoved()); err != nil {
			t.Fatal(err)
		}
		if got := bodies(w); len(got) != 1 || got[0] != "0s "+body || w.left(t) != 1000 {
			t.Errorf("%d left, sent %q", w.left(t), got)
		}
	})
}

// Time that goes into rows that stay counts as well: a record whose partition
// takes longer to read than its function has would never be through.
func TestTimeOfRowsThatStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(1000)
		w.took = time.Second
		c := w.config()
		c.Threshold, c.PageSize = 1000, 10
		c.Children[0].Exclude = func(row sluice.Item) bool {
			v, _ := row.Lookup("point_id")
			return v.Str() > "p-000005"
		}
		x := must(t, c)
		for n, rows := range []string{"some", "none"} { // that are to go, at the start
			begun := time.Now()
			if err := x.Remove(t.Context(), mapRemoved()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > 10*time.Second || len(w.queue) != n+1 || w.queue[n].m.Body != body {
				t.Errorf("%s: took %v, sent %q", rows, took, bodies(w))
			}
		}
		w.queue = nil
		w.tables["points"].put(`{"map_id":{"S":"m-1"},"point_id":{"S":"p-000001"}}`)
		c.Budget = 20 * time.Second // less than reading all takes
		begun := time.Now()
		if err := must(t, c).Work(t.Context(), record(sluice.Message{Body: body})); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 20*time.Second || len(w.queue) != 1 || w.queue[0].m.Body != body {
			t.Errorf("message: took %v, sent %q", took, bodies(w))
		}
		w.drain(t, must(t, c).Work) // one that finds nothing goes on to the end, and not round for ever
	})
}

// Nothing bounds a cascade without a queue but its context.
func TestUnlimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(3000)
		w.took = 500 * time.Millisecond
		c := w.config()
		c.Threshold, w.inFlight, c.Send = Unlimited, 1, nil
		if err := must(t, c).Remove(t.Context(), mapRemoved()); err != nil || w.left(t) != 0 {
			t.Errorf("%v, %d left", err, w.left(t))
		}
	})
}

// A context that ends is an error, for any results of the calls. Nothing is sent.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, stays := range map[string]bool{"children": false, "rows that stay": true} {
			w := points(3000)
			c := w.config()
			c.PageSize = 10
			c.Children[0].Exclude = func(sluice.Item) bool { return stays }
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := errors.New("the process is to end")
			reads := 0
			c.Query = func(_ context.Context, q dynamo.Query) (dynamo.Page, error) {
				if reads++; reads == 5 {
					cancel(gone)
				}
				if reads > 5 {
					time.Sleep(time.Second) // so that the page before is not waited for
				}
				return w.query(context.WithoutCancel(ctx), q)
			}
			err := must(t, c).Work(ctx, record(sluice.Message{Body: body}))
			if !errors.Is(err, gone) || sluice.IsSkip(err) || sluice.IsPermanent(err) {
				t.Errorf("%s: %v", name, err)
			}
			if len(w.queue) != 0 {
				t.Errorf("%s: sent %q", name, bodies(w))
			}
		}
	})
}

// A store's requests have a context of their own. What waits when the record's ends
// is not sent.
func TestContextEndsWhileDeletesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := points(1000)
		w.waits = 10 * time.Second
		c := w.config()
		c.Delete = func(ctx context.Context, d dynamo.GuardedDelete) { w.delete(context.WithoutCancel(ctx), d) }
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the process is to end")
		time.AfterFunc(15*time.Second, func() { cancel(gone) })
		err := must(t, c).Work(ctx, record(sluice.Message{Body: body}))
		if !errors.Is(err, gone) || w.deletes != 16*requestRows || len(w.queue) > 0 {
			t.Errorf("%v, %d rows went", err, w.deletes)
		}
	})
}
