package transitgateway

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

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

var hubDocument = document.Ref{Index: "tgw", ID: owner + "|tgw-0a1"}

const (
	hubBody = `{"owner_id":"111122223333","tgw_id":"tgw-0a1","version":2,"created_at":1704164645000,"state":"available","name":"hub","route_table_ids":["rtb-2"]}`
	hubRows = "rtb-1 tgw-0a1 1786946146795520002 deleted, rtb-2 tgw-0a1 1786946146795520001"
)

// A redelivered older change does not overwrite a newer one.
func TestFixtures(t *testing.T) {
	for _, twice := range []bool{false, true} {
		t.Run(fmt.Sprint("twice ", twice), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.Twice = twice
				w.put(Fixtures()...)
				w.run(CheckAfter - time.Second)
				same := func(when string) {
					t.Helper()
					d := w.index.Get(hubDocument)
					if d.Version != 1786946146795520002 || string(d.Source) != hubBody {
						t.Errorf("%s: version %d of %s", when, d.Version, d.Source)
					}
					live, all := w.inverse()
					if live != "rtb-2 tgw-0a1" || all != hubRows {
						t.Errorf("%s: %s", when, all)
					}
				}
				same("after the fixtures")
				ttl, _ := kit.Number(w.Items("tgw_by_rtb")[0], "ttl")
				if ttl != start.Add(7*24*time.Hour).Unix() {
					t.Errorf("the tombstone expires at %d", ttl)
				}
				v1 := slices.IndexFunc(w.records, func(rec sluice.Record) bool {
					n, _ := kit.Number(rec.New, "version")
					return n == 1
				})
				w.Replay(w.records[v1])
				w.run(0)
				same("V1 redelivered after V2")
				w.Replay(w.records...)
				w.run(0)
				same("all of them once more")

				if w.claimed("lost") != "tgw-0ff" {
					t.Error("the lost name was released too early")
				}
				w.run(2 * time.Second)
				if w.claimed("lost") != "" || w.claimed("hub") != "tgw-0a1" {
					t.Errorf("claims %v", w.Items("tgw_name"))
				}
			})
		})
	}
}

// A delete followed by a late redelivered update does not bring the document
// back.
func TestDeletedAndMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		w.put(Fixtures()[:4]...)
		w.run(0)
		g := w.gateway("tgw-0a1")
		if err := w.Delete(ctx, &g); err != nil {
			t.Fatal(err)
		}
		w.run(0)
		gone := func(when string) {
			t.Helper()
			if d := w.index.Get(hubDocument); d.Found {
				t.Errorf("%s: %s", when, d.Source)
			}
			if live, _ := w.inverse(); live != "" {
				t.Errorf("%s: %s", when, live)
			}
		}
		gone("deleted")
		before := slices.Clone(w.records)
		w.Replay(before...)
		w.run(0)
		gone("all redelivered")

		w.run(time.Hour - w.Now().Sub(start))
		again := hub()
		if err := w.SaveNew(ctx, &again); err != nil || again.CreatedAt != 1704168245000 {
			t.Fatal(again, err)
		}
		w.run(0)
		w.Replay(before...)
		w.run(0)
		if d := w.index.Get(hubDocument); d.Version != 1786949921669120000 {
			t.Errorf("version %d of %s", d.Version, d.Source)
		}
		if _, all := w.inverse(); all != "rtb-1 tgw-0a1 1786949921669120000, rtb-2 tgw-0a1 1786946146795520003 deleted" {
			t.Errorf("%s", all)
		}
	})
}

// A row follows the latest state of the gateway. That holds if a redriven letter
// creates the row after a later record dropped it.
func TestParkedAndRedriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		fx := Fixtures()
		dropped := fx[2].Item.With(item.Number("version", "3"))
		attached, gone := streamtest.Modify("tgw", fx[0].Item, fx[1].Item, streamtest.WithKeys("owner_id", "tgw_id")),
			streamtest.Modify("tgw", fx[2].Item, dropped, streamtest.WithKeys("owner_id", "tgw_id"))
		gone.New = item.Of(item.String("owner_id", owner), item.String("tgw_id", "tgw-0a1"), item.Number("version", "3"), item.Number("created_at", "1704164645000"))
		attached.Origin = sluice.Redriven
		w.Replay(gone, attached)
		w.run(0)
		if _, all := w.inverse(); all != "rtb-2 tgw-0a1 1786946146795520003 deleted" {
			t.Error(all)
		}
		if d := w.index.Get(hubDocument); d.Version != 1786946146795520003 {
			t.Errorf("version %d", d.Version)
		}
	})
}

// A snapshot only adds missing rows and documents.
func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		snapshot := func(it sluice.Item) sluice.Record {
			return streamtest.Snapshot("tgw", it, streamtest.WithKeys("owner_id", "tgw_id"))
		}
		w.Replay(snapshot(Fixtures()[2].Item))
		w.run(0)
		if _, all := w.inverse(); all != "rtb-2 tgw-0a1 1786946146795520002" {
			t.Error(all)
		}
		w.Replay(snapshot(Fixtures()[1].Item)) // read before V2 was written
		w.run(0)
		if d := w.index.Get(hubDocument); d.Version != 1786946146795520002 || string(d.Source) != hubBody {
			t.Errorf("version %d of %s", d.Version, d.Source)
		}
	})
}

// Writers without the library are counted: their route handles their records
// and no others.
func TestBypassed(t *testing.T) {
	key := streamtest.WithKeys("owner_id", "tgw_id")
	fx := Fixtures()
	v := func(n string) sluice.Item { return fx[0].Item.With(item.Number("version", n)) }
	for _, tt := range []struct {
		name string
		rec  sluice.Record
		want bool
	}{
		{"created", streamtest.Insert("tgw", v("0"), key), false},
		{"saved", streamtest.Modify("tgw", v("0"), v("1"), key), false},
		{"deleted", streamtest.Remove("tgw", v("7"), key), false},
		{"created with another version", streamtest.Insert("tgw", v("1"), key), true},
		{"the same version", streamtest.Modify("tgw", v("1"), v("1").With(item.String("state", "x")), key), true},
		{"one left out", streamtest.Modify("tgw", v("1"), v("3"), key), true},
		{"back", streamtest.Modify("tgw", v("3"), v("2"), key), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			routes, err := w.router.Match(nil, &tt.rec)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.ContainsFunc(routes, func(r *sluice.Route) bool { return r.Name == "bypassed" })
			w.Replay(tt.rec)
			w.run(0)
			if logged := strings.Contains(w.log.String(), "bypassed the library"); got != tt.want || logged != got {
				t.Errorf("%s: routed %v, log %s", tt.name, got, w.log.String())
			}
			for _, value := range []string{"hub", "111122223333", "tgw-0a1"} {
				if strings.Contains(w.log.String(), value) {
					t.Errorf("%s: the log has %s: %s", tt.name, value, w.log.String())
				}
			}
		})
	}
}

// An item that can have no version is parked, and not written.
func TestBadItems(t *testing.T) {
	fx := Fixtures()[0].Item
	for name, bad := range map[string]sluice.Item{
		"a version that is too large": fx.With(item.Number("version", "1048576")),
		"no time of creation":         fx.Only("owner_id", "tgw_id", "version", "route_table_ids"),
		"a text for a list":           fx.With(item.String("route_table_ids", "rtb-1")),
		"no texts in the list":        streamtest.Item(strings.Replace(string(fx.Raw()), `{"S":"rtb-1"}`, `{"N":"1"}`, 1)),
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			for _, rec := range []sluice.Record{
				streamtest.Insert("tgw", bad, streamtest.WithKeys("owner_id", "tgw_id")),
				streamtest.Remove("tgw", bad, streamtest.WithKeys("owner_id", "tgw_id")),
			} {
				if err := w.onRouteTables(t.Context(), &rec); !sluice.IsPermanent(err) {
					t.Errorf("%s, %s: %v", name, rec.EventName, err)
				}
			}
			if len(w.Items("tgw_by_rtb")) > 0 {
				t.Errorf("%s: %v", name, w.Items("tgw_by_rtb"))
			}
		})
	}
}

// The janitor checks the claim in its message, not a later one.
func TestJanitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		w.put(Fixtures()[4])
		w.run(CheckAfter / 2)
		if got, want := w.Sent[0].Body, `{"kind":"tgw.name","v":1,"table":"tgw_name","key":{"name_key":{"S":"111122223333#lost"}},"notBefore":"`; !strings.HasPrefix(got, want) || w.Sent[0].Delay != CheckAfter {
			t.Errorf("sent %s, delayed by %v", got, w.Sent[0].Delay)
		}
		// Released, and claimed by another writer, which is still on its way.
		if err := w.Write(ctx, dynamo.Delete("tgw_name", Fixtures()[4].Item.Only("name_key"))); err != nil {
			t.Fatal(err)
		}
		w.put(Fixture{Table: "tgw_name", Item: item.Of(item.String("name_key", owner+"#lost"), item.String("tgw_id", "tgw-new"))})
		w.run(CheckAfter/2 + time.Second)
		if w.claimed("lost") != "tgw-new" {
			t.Errorf("claims %v", w.Items("tgw_name"))
		}
		w.run(CheckAfter)
		if w.claimed("lost") != "" {
			t.Errorf("claims %v", w.Items("tgw_name"))
		}
	})
}

// A gateway that is created while the janitor looks keeps its name.
func TestJanitorAndCreator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.put(Fixtures()[3])
		w.run(0)
		g := hub()
		store := &between{Store: w.World, then: func() {
			if err := w.SaveNew(t.Context(), &g); err != nil {
				t.Error(err)
			}
		}}
		j := janitor{Gateways: New(store, "", w.Now)}
		rec := w.Sent[0].Record("arn:aws:sqs:eu-west-1:123456789012:janitor")
		if err := j.look(t.Context(), rec); !sluice.IsSkip(err) {
			t.Error(err)
		}
		if w.claimed("hub") != "tgw-0a1" {
			t.Error("the name was released")
		}
	})
}

// TestSeeds draws writes, the order of records, repeated and late records, and
// failures. It checks the invariants at the end.
func TestSeeds(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			drawn(t, seed)
		})
	}
}

func drawn(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	w := newWorld(t)
	w.Rand = rng
	ctx := t.Context()
	ids, names := []string{"tgw-1", "tgw-2", "tgw-3"}, []string{"a", "b", "c", "d"}
	tables := func() (rtbs []string) {
		for i := range 4 {
			if rng.IntN(2) == 0 {
				rtbs = append(rtbs, fmt.Sprint("rtb-", i))
			}
		}
		return rtbs
	}
	copies := make(map[string]Gateway) // as somebody has read them
	for range 40 {
		id := ids[rng.IntN(len(ids))]
		g, has := copies[id]
		var err error
		switch rng.IntN(6) {
		case 0:
			g = Gateway{OwnerID: owner, ID: id, Name: names[rng.IntN(len(names))], RouteTables: tables()}
			err = w.SaveNew(ctx, &g)
		case 1:
			g = Gateway{OwnerID: owner, Name: names[rng.IntN(len(names))], RouteTables: tables()}
			w.failing(rng.IntN(6), rng.IntN(2) == 0)
			err = w.SaveNewInSteps(ctx, &g)
			w.Fault = nil
		case 2:
			if has {
				g.RouteTables = tables()
				err = w.SaveUpdate(ctx, &g)
			}
		case 3:
			if has {
				err = w.Rename(ctx, &g, names[rng.IntN(len(names))])
			}
		case 4:
			if has {
				err = w.Delete(ctx, &g)
			}
		case 5:
			var found bool
			g, found, err = w.Gateway(ctx, owner, id)
			if !found {
				g = Gateway{}
			}
		}
		if err != nil && !errors.Is(err, ErrVersionConflict) && !errors.Is(err, ErrNameTaken) && !errors.Is(err, errThrottled) {
			t.Fatal(err)
		}
		if err == nil && g.ID != "" && rng.IntN(4) > 0 { // or the copy is stale from now on
			copies[g.ID] = g
		}
		if rng.IntN(3) == 0 {
			sometimes := func() error {
				if rng.IntN(10) == 0 {
					return errThrottled
				}
				return nil
			}
			w.Fault = func(bool, []dynamo.Op) error { return sometimes() }
			mend := w.index.Writes.Fail(func(context.Context, int, document.Op) error { return sometimes() })
			w.run(time.Duration(rng.IntN(600)) * time.Second)
			w.Fault = nil
			mend()
		}
		if len(w.records) > 0 && rng.IntN(3) == 0 {
			for range rng.IntN(5) {
				w.Replay(w.records[rng.IntN(len(w.records))])
			}
		}
	}
	w.run(24 * time.Hour)

	docs, live := expected(w.Items("tgw"))
	found := make(map[string]string)
	for _, d := range w.index.Docs("tgw") {
		found[d.ID] = shown(d)
	}
	if diff := cmp.Diff(docs, found); diff != "" {
		t.Errorf("the index: %s", diff)
	}
	if got, _ := w.inverse(); got != strings.Join(live, ", ") {
		t.Errorf("by route table %s, want %s", got, live)
	}
	owners := make(map[string]string)
	for _, it := range w.Items("tgw") {
		name := kit.Text(it, "name")
		if owners[name] != "" {
			t.Errorf("%s and %s are both called %s", owners[name], kit.Text(it, "tgw_id"), name)
		}
		owners[name] = kit.Text(it, "tgw_id")
	}
	for _, claim := range w.Items("tgw_name") {
		_, name, _ := strings.Cut(kit.Text(claim, "name_key"), "#")
		if owners[name] != kit.Text(claim, "tgw_id") {
			t.Errorf("the claim of %s by %s is left", name, kit.Text(claim, "tgw_id"))
		}
		delete(owners, name)
	}
	if len(owners) > 0 {
		t.Errorf("no claims of %v", owners)
	}
	if strings.Contains(w.log.String(), "bypassed") {
		t.Error("writers of the library were taken for others")
	}
}
