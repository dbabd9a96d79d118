package estuve

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
	"github.com/sluicehq/sluice/handlers/cascade"
	"github.com/sluicehq/sluice/router"
)

const cascadeM1 = `{"kind":"cascade.delete","table":"points","key":{"map_id":"m-1"},"parent":{"table":"maps","key":{"user_id":"u-1","map_id":"m-1"}},"dedupeKey":"maps/u-1/m-1"}`

// The fixtures, which are the state after their INSERTs were counted; then m-1
// goes.
func TestExpected(t *testing.T) { each(t, testExpected) }

func testExpected(t *testing.T, by way) {
	for _, tt := range []struct {
		threshold int
		sent      []string
	}{
		{0, []string{cascadeM1, strings.TrimSuffix(cascadeM1, `"}`) + `#sweep","sweep":true}`}},
		{cascade.DefaultThreshold, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(by)
			r := w.router(t, tt.threshold)
			w.put(t, Written(w.tables)...)
			w.run(t, r)
			if got := w.state(); got != stateWhole {
				t.Fatalf("after the inserts: %s", got)
			}
			for _, f := range Fixtures(w.tables) {
				if it, err := w.Get(t.Context(), f.Table, f.Item); err != nil || !it.Equal(f.Item) {
					t.Errorf("%s\nwant %s, %v", it.Raw(), f.Item.Raw(), err)
				}
			}
			w.delete(t, "maps", deleteM1)
			w.run(t, r)
			if got := w.state(); got != stateLess {
				t.Errorf("after the deletion: %s", got)
			}
			var sent []string
			for _, s := range w.Sent {
				sent = append(sent, s.Body)
			}
			if !slices.Equal(sent, tt.sent) {
				t.Errorf("sent %q\nwant %q", sent, tt.sent)
			}
			if len(sent) == 2 && w.Sent[1].Delay != time.Minute {
				t.Errorf("sweep in %v", w.Sent[1].Delay)
			}
		})
	}
}

// A user takes the maps, and they the points.
func TestUserIsDeleted(t *testing.T) { each(t, testUserIsDeleted) }

func testUserIsDeleted(t *testing.T, by way) {
	for _, threshold := range []int{0, 500} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(by)
			r := w.router(t, threshold)
			w.put(t, Written(w.tables)...)
			w.run(t, r)
			w.delete(t, "users", `{"user_id":{"S":"u-1"}}`)
			w.run(t, r)
			if got := w.state(); got != "" {
				t.Errorf("left: %s", got)
			}
		})
	}
}

// A point that is written into a map that is gone counts on its user, is
// deleted, and is taken off again.
func TestOrphan(t *testing.T) { each(t, testOrphan) }

func testOrphan(t *testing.T, by way) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(by)
		r := w.router(t, 500)
		w.put(t, Written(w.tables)...)
		w.run(t, r)
		orphan := parse(`{"map_id":{"S":"m-9"},"point_id":{"S":"p-9"},"user_id":{"S":"u-1"}}`)
		w.put(t, Fixture{Table: "points", Item: orphan})
		recs := w.Records()
		if err := r.Dispatch(t.Context(), &recs[0]); err != nil {
			t.Fatal(err)
		}
		if got := w.state(); got != strings.Replace(stateWhole, "points 5", "points 6", 1) {
			t.Errorf("counted: %s", got)
		}
		w.Replay(recs[0], recs[0])
		w.run(t, r)
		if got := w.state(); got != stateWhole {
			t.Errorf("taken off: %s", got)
		}
	})
}

// A map is deleted before its point is counted: the addition is reported as dropped. Or
// the map comes back before the point is deleted: the point stays uncounted, and a
// recount finds it.
func TestOrphanRaces(t *testing.T) { each(t, testOrphanRaces) }

func testOrphanRaces(t *testing.T, by way) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(by)
		w.put(t, Written(w.tables)...)
		recs := w.Records()
		for i := range 3 { // the user and the maps
			if err := w.router(t, 500).Dispatch(t.Context(), &recs[i]); err != nil {
				t.Fatal(err)
			}
		}
		s := &racing{world: w, t: t}
		r := by.router(t, Deps{Tables: w.tables, Store: s, Send: w.Queue("cascades"), Threshold: 500, Now: w.Now}, "")
		s.beforeOnce = func() { w.delete(t, "maps", deleteM1) }
		if err := r.Dispatch(t.Context(), &recs[3]); err != nil {
			t.Error(err)
		}
		if got := w.state(); got != "u-1 maps 2 points 1; m-2 points 0; p-2 p-3 p-4 p-5" {
			t.Errorf("it goes: %s", got)
		}
		s.beforeTransact = func() { w.put(t, Written(w.tables)[1]) }
		if err := r.Dispatch(t.Context(), &recs[4]); !sluice.IsSkip(err) {
			t.Error(err)
		}
		if got := w.state(); got != "u-1 maps 2 points 2; m-1 points 0; m-2 points 0; p-2 p-3 p-4 p-5" {
			t.Errorf("it comes back: %s", got)
		}
	})
}

// racing does something between the steps of a handler.
type racing struct {
	*world
	t                          *testing.T
	beforeOnce, beforeTransact func()
}

func (s *racing) Once(ctx context.Context, u dynamo.Unit) (dynamo.Applied, error) {
	do(&s.beforeOnce)
	return s.world.Once(ctx, u)
}

func (s *racing) Transact(ctx context.Context, ops ...dynamo.Op) error {
	do(&s.beforeTransact)
	return s.world.Transact(ctx, ops...)
}

func do(f *func()) {
	if *f != nil {
		(*f)()
		*f = nil
	}
}

// Each record comes three times, in any order that keeps the order of its item, and the
// table fails before and after writes. The result is as without failures.
func TestSeeds(t *testing.T) { each(t, testSeeds) }

func testSeeds(t *testing.T, by way) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 4))
			w := newWorld(by)
			r := w.router(t, []int{0, 1, 500}[rnd.IntN(3)])
			w.put(t, Written(w.tables)...)
			if seed%2 == 0 {
				w.run(t, r) // else nothing has been counted when m-1 goes
			}
			w.delete(t, "maps", deleteM1)
			writes := 0
			w.Fault = func(bool, []dynamo.Op) error {
				if writes++; rnd.IntN(10) == 0 {
					return errors.New("down")
				}
				return nil
			}
			deliver(t, w, r, rnd)
			w.Fault = nil
			if got := w.state(); got != stateLess {
				t.Errorf("seed %d: %s", seed, got)
			}
			if len(w.Parked) > 0 {
				t.Error(w.Parked)
			}
		})
	}
}

// deliver hands each record over three times: one by one, or all records of its
// item from the first one, as after a lost position.
func deliver(t *testing.T, w *world, r *router.Router, rnd *rand.Rand) {
	lanes := map[string][]sluice.Record{}
	for quiet := 0; quiet < 3; quiet++ {
		for {
			lane := map[string][]sluice.Record{}
			for _, rec := range w.Records() {
				id := rec.Table + string(rec.Keys.Raw())
				lane[id] = append(lane[id], rec)
			}
			for id, recs := range lane {
				if rnd.IntN(2) == 0 {
					recs = slices.Concat(recs, recs, recs)
				} else {
					var each []sluice.Record
					for _, rec := range recs {
						each = append(each, rec, rec, rec)
					}
					recs = each
				}
				lanes[id] = append(lanes[id], recs...)
			}
			if len(lanes) == 0 {
				break
			}
			quiet = 0
			var ids []string
			for id := range lanes {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			id := ids[rnd.IntN(len(ids))]
			rec := lanes[id][0]
			if lanes[id] = lanes[id][1:]; len(lanes[id]) == 0 {
				delete(lanes, id)
			}
			for tries := 0; ; tries++ {
				err := r.Dispatch(t.Context(), &rec)
				if err == nil || sluice.IsSkip(err) {
					break
				}
				if sluice.IsPermanent(err) || tries > 100 {
					t.Fatal(fmt.Errorf("%s %s: %w", rec.EventName, rec.Keys.Raw(), err))
				}
			}
		}
		w.run(t, r) // messages, in between and at last
	}
}

func TestPointWithoutAnOwner(t *testing.T) { each(t, testPointWithoutAnOwner) }

func testPointWithoutAnOwner(t *testing.T, by way) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(by)
		w.put(t, Fixture{Table: "points", Item: parse(`{"map_id":{"S":"m-1"},"point_id":{"S":"p-9"}}`)})
		recs := w.Records()
		if err := w.router(t, 0).Dispatch(t.Context(), &recs[0]); !sluice.IsPermanent(err) || !strings.Contains(err.Error(), "belongs to no parent") {
			t.Error(err)
		}
	})
}

// Our own writes, of counters, come to no route.
func TestRoutes(t *testing.T) {
	w := newWorld()
	var got []string
	for _, rt := range w.router(t, 0).Routes() {
		got = append(got, rt.Name)
	}
	if s := strings.Join(got, ", "); s != "count maps, count points, discount points, delete points, delete maps, cascade" {
		t.Error(s)
	}
	r, err := NewRouter(Deps{Tables: w.tables, Store: w})
	if err != nil || len(r.Routes()) != 5 {
		t.Errorf("without a queue: %v", err)
	}
}
