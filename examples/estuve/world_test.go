package estuve

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world has Estuve's tables in memory, and its queue.
type world struct {
	*tabletest.World
	tables Tables
	by     way // to the routes
}

func newWorld(by ...way) *world {
	w := &world{tabletest.NewWorld(time.Now()), Named(""), append(by, ways[0])[0]}
	for table, keys := range w.tables.Keys() {
		w.Create(table, keys[0], strings.Join(keys[1:], ""))
	}
	return w
}

// router is Estuve's, with a queue and a threshold.
func (w *world) router(t *testing.T, threshold int) *router.Router {
	t.Helper()
	return w.by.router(t, Deps{
		Tables: w.tables, Store: w, Send: w.Queue("cascades"), Threshold: threshold,
		Now: w.Now, Logger: slog.New(slog.DiscardHandler),
	}, "")
}

func (w *world) put(t *testing.T, fixtures ...Fixture) {
	t.Helper()
	for _, f := range fixtures {
		if err := w.Put(t.Context(), f.Table, f.Item); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) delete(t *testing.T, table, key string) {
	t.Helper()
	if err := w.Write(t.Context(), dynamo.Delete(table, parse(key))); err != nil {
		t.Fatal(err)
	}
}

// run goes on until nothing is left to do for an hour.
func (w *world) run(t *testing.T, r *router.Router) {
	t.Helper()
	if err := w.Run(t.Context(), r.Dispatch, w.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if len(w.Parked) > 0 {
		t.Fatal(w.Parked)
	}
}

// state returns the tables' items in short form.
func (w *world) state() string {
	return summary(w.Items(w.tables.Users), w.Items(w.tables.Maps), w.Items(w.tables.Points))
}

func summary(users, maps, points []sluice.Item) string {
	var b strings.Builder
	text := func(it sluice.Item, name string) string {
		if v, ok := it.Lookup(name); ok {
			return v.Str()
		}
		return "0" // a counter that nothing was added to
	}
	for _, u := range users {
		fmt.Fprintf(&b, "%s maps %s points %s; ", text(u, "user_id"), text(u, "num_maps"), text(u, "num_points"))
	}
	for _, m := range maps {
		fmt.Fprintf(&b, "%s points %s; ", text(m, "map_id"), text(m, "num_points"))
	}
	for _, p := range points {
		fmt.Fprintf(&b, "%s ", text(p, "point_id"))
	}
	return strings.TrimSpace(b.String())
}

const (
	stateWhole = "u-1 maps 2 points 5; m-1 points 3; m-2 points 2; p-1 p-2 p-3 p-4 p-5"
	stateLess  = "u-1 maps 1 points 2; m-2 points 2; p-4 p-5"
	deleteM1   = `{"user_id":{"S":"u-1"},"map_id":{"S":"m-1"}}`
)

func parse(s string) sluice.Item {
	it, err := item.Parse([]byte(s))
	if err != nil {
		panic(err)
	}
	return it
}

// Written is Fixtures as their writers write them, in that order: without
// counters, which are not theirs.
func Written(t Tables) []Fixture {
	all := Fixtures(t)
	for i, f := range all {
		var names []string
		for name := range f.Item.All() {
			if name != "num_points" && name != "num_maps" {
				names = append(names, name)
			}
		}
		all[i].Item = f.Item.Only(names...)
	}
	return all
}
