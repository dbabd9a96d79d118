package transitgateway

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
	"github.com/sluicehq/sluice/examples/internal/kit"
	"github.com/sluicehq/sluice/item"
)

func TestFence(t *testing.T) {
	at := func(created, version string) sluice.Item {
		return item.Of(item.Number("created_at", created), item.Number("version", version))
	}
	for _, tt := range []struct {
		it   sluice.Item
		want int64
		err  string
	}{
		{Fixtures()[0].Item, 1786946146795520000, ""},
		{Fixtures()[2].Item, 1786946146795520002, ""},
		{at("1704168245000", "0"), 1786949921669120000, ""},
		{at("1", "1048575"), 1<<20 | 1048575, ""},
		{at("8796093022207", "1048575"), 1<<63 - 1, ""},
		{at("8796093022208", "0"), 0, "created_at"},
		{at("0", "0"), 0, "created_at"},
		{at("-1", "0"), 0, "created_at"},
		{at("1", "1048576"), 0, "version"},
		{at("1", "-1"), 0, "version"},
		{at("1", "1.5"), 0, "version"},
		{item.Of(item.Number("version", "1")), 0, "created_at"},
		{item.Of(item.Number("created_at", "1")), 0, "version"},
		{item.Of(item.Number("created_at", "1"), item.String("version", "1")), 0, "version"},
	} {
		got, err := Fence(tt.it)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%s: %d, %v", tt.it.AppendJSON(nil), got, err)
		}
	}
}

// The writers write the items of the fixtures.
func TestWritersMakeTheFixtures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, fx := t.Context(), Fixtures()
		is := func(want Fixture) {
			t.Helper()
			it, err := w.Get(ctx, "tgw", hub().key())
			if err != nil || !it.Equal(want.Item) {
				t.Errorf("%s, %v; want %s", it.AppendJSON(nil), err, want.Item.AppendJSON(nil))
			}
			var g Gateway
			if err := want.Item.Decode(&g); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(g, w.gateway("tgw-0a1")); diff != "" {
				t.Error(diff)
			}
		}
		g := hub()
		if err := w.SaveNew(ctx, &g); err != nil {
			t.Fatal(err)
		}
		is(fx[0])
		if claim := w.Items("tgw_name"); len(claim) != 1 || !claim[0].Equal(fx[3].Item) {
			t.Errorf("claims %v", claim)
		}
		g.State, g.RouteTables = "available", []string{"rtb-1", "rtb-2"}
		if err := w.SaveUpdate(ctx, &g); err != nil {
			t.Fatal(err)
		}
		is(fx[1])
		g, err := w.Change(ctx, owner, "tgw-0a1", func(g *Gateway) error {
			g.RouteTables = []string{"rtb-2"}
			return nil
		})
		if err != nil || g.Version != 2 {
			t.Fatal(g, err)
		}
		is(fx[2])
	})
}

// Two writers save from version 1. One of them conflicts, reads again and applies its
// change to the other's version.
func TestTwoWritersFromOneVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		w.put(Fixtures()[1])
		a, b := w.gateway("tgw-0a1"), w.gateway("tgw-0a1")
		a.RouteTables, b.State = []string{"rtb-2"}, "deleting"
		before := b
		if err := w.SaveUpdate(ctx, &a); err != nil || a.Version != 2 {
			t.Fatal(a, err)
		}
		if err := w.SaveUpdate(ctx, &b); !errors.Is(err, ErrVersionConflict) || sluice.IsPermanent(err) {
			t.Errorf("the second writer: %v", err)
		}
		if diff := cmp.Diff(before, b); diff != "" {
			t.Errorf("the copy of who failed has changed: %s", diff)
		}
		tries := 0
		got, err := w.Change(ctx, owner, "tgw-0a1", func(g *Gateway) error {
			if tries++; tries == 1 { // somebody else is first once more
				if err := w.SaveUpdate(ctx, &a); err != nil {
					t.Error(err)
				}
			}
			g.State = "deleting"
			return nil
		})
		want := Gateway{owner, "tgw-0a1", 4, start.UnixMilli(), "deleting", "hub", []string{"rtb-2"}}
		if err != nil || tries != 2 || cmp.Diff(want, got) != "" {
			t.Errorf("%+v after %d tries, %v", got, tries, err)
		}
		if _, err := w.Change(ctx, owner, "nobody", func(*Gateway) error { return nil }); !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		enough := errors.New("enough")
		if _, err := w.Change(ctx, owner, "tgw-0a1", func(*Gateway) error { return enough }); !errors.Is(err, enough) {
			t.Error(err)
		}
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		one := hub()
		if err := w.SaveNew(ctx, &one); err != nil {
			t.Fatal(err)
		}
		two := hub()
		two.ID, two.Name = "tgw-0a2", "spoke"
		if err := w.SaveNew(ctx, &two); err != nil {
			t.Fatal(err)
		}
		stale, gone := one, one
		if err := w.SaveUpdate(ctx, &one); err != nil {
			t.Fatal(err)
		}
		gone.ID = "tgw-gone"
		edited := func(f func(g *Gateway)) *Gateway {
			g := one
			f(&g)
			return &g
		}
		for _, tt := range []struct {
			name string
			do   func(g *Gateway) error
			g    *Gateway
			want error  // or
			text string // of a permanent one
		}{
			{"create what is there", func(g *Gateway) error { return w.SaveNew(ctx, g) }, &stale, ErrVersionConflict, ""},
			{"create under a name that is taken", func(g *Gateway) error { return w.SaveNew(ctx, g) }, edited(func(g *Gateway) { g.ID = "tgw-0a3" }), ErrNameTaken, ""},
			{"create in steps, too", func(g *Gateway) error { return w.SaveNewInSteps(ctx, g) }, edited(func(g *Gateway) { g.ID = "" }), ErrNameTaken, ""},
			{"save a stale copy", func(g *Gateway) error { return w.SaveUpdate(ctx, g) }, &stale, ErrVersionConflict, ""},
			{"save what is gone", func(g *Gateway) error { return w.SaveUpdate(ctx, g) }, &gone, ErrVersionConflict, ""},
			{"save one of another life", func(g *Gateway) error { return w.SaveUpdate(ctx, g) }, edited(func(g *Gateway) { g.CreatedAt-- }), ErrVersionConflict, ""},
			{"rename a stale copy", func(g *Gateway) error { return w.Rename(ctx, g, "other") }, &stale, ErrVersionConflict, ""},
			{"rename to what is taken", func(g *Gateway) error { return w.Rename(ctx, g, "spoke") }, &one, ErrNameTaken, ""},
			{"delete a stale copy", func(g *Gateway) error { return w.Delete(ctx, g) }, &stale, ErrVersionConflict, ""},
			{"delete what is gone", func(g *Gateway) error { return w.Delete(ctx, g) }, &gone, ErrVersionConflict, ""},
			{"another name by hand", func(g *Gateway) error { return w.SaveUpdate(ctx, g) }, edited(func(g *Gateway) { g.Name = "x" }), nil, "want Rename"},
			{"delete with another name by hand", func(g *Gateway) error { return w.Delete(ctx, g) }, edited(func(g *Gateway) { g.Name = "x" }), nil, "want Rename"},
			{"no owner", func(g *Gateway) error { return w.SaveNew(ctx, g) }, edited(func(g *Gateway) { g.OwnerID = "" }), nil, "OwnerID is empty"},
			{"an owner that could be a name", func(g *Gateway) error { return w.SaveNew(ctx, g) }, edited(func(g *Gateway) { g.OwnerID = "a#b" }), nil, `OwnerID "a#b" holds "#"`},
			{"no id", func(g *Gateway) error { return w.SaveNew(ctx, g) }, edited(func(g *Gateway) { g.ID = "" }), nil, "ID is empty"},
			{"no name", func(g *Gateway) error { return w.Rename(ctx, g, "") }, &one, nil, "Name is empty"},
			{"one twice", func(g *Gateway) error { return w.SaveUpdate(ctx, g) }, edited(func(g *Gateway) { g.RouteTables = []string{"a", "b", "a"} }), nil, `RouteTables[2] is "a"`},
			{"too many", func(g *Gateway) error { return w.SaveUpdate(ctx, g) }, edited(func(g *Gateway) { g.RouteTables = make([]string, 21) }), nil, "RouteTables are 21, want 20 at most"},
			{"too often", func(g *Gateway) error { return w.SaveUpdate(ctx, g) }, edited(func(g *Gateway) { g.Version = 1<<20 - 2 }), nil, "there is none after 1048574"},
		} {
			before := *tt.g
			items := fmt.Sprint(w.Items("tgw"), w.Items("tgw_name"))
			err := tt.do(tt.g)
			if tt.want != nil && (!errors.Is(err, tt.want) || sluice.IsPermanent(err)) || tt.want == nil && (!sluice.IsPermanent(err) || !strings.Contains(err.Error(), tt.text)) {
				t.Errorf("%s: %v", tt.name, err)
			}
			if diff := cmp.Diff(before, *tt.g); diff != "" {
				t.Errorf("%s: the copy has changed: %s", tt.name, diff)
			}
			if now := fmt.Sprint(w.Items("tgw"), w.Items("tgw_name")); now != items {
				t.Errorf("%s: the tables have changed: %s", tt.name, now)
			}
		}
	})
}

// A name moves with the gateway, and is free again when it is deleted or named
// otherwise. One that came to be another gateway's, by a writer without this
// library, stays with that.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		g := hub()
		if err := w.SaveNew(ctx, &g); err != nil {
			t.Fatal(err)
		}
		if err := w.Rename(ctx, &g, "hub"); err != nil || g.Version != 0 {
			t.Errorf("the same name: %v, version %d", err, g.Version)
		}
		if err := w.Rename(ctx, &g, "core"); err != nil || g.Name != "core" || g.Version != 1 || cmp.Diff(g, w.gateway("tgw-0a1")) != "" {
			t.Errorf("%+v, %v", g, err)
		}
		if w.claimed("core") != "tgw-0a1" || w.claimed("hub") != "" {
			t.Errorf("claims %v", w.Items("tgw_name"))
		}
		w.put(Fixture{Table: "tgw_name", Item: item.Of(item.String("name_key", owner+"#core"), item.String("tgw_id", "tgw-other"))})
		if err := w.Rename(ctx, &g, "edge"); err != nil {
			t.Error(err)
		}
		if w.claimed("core") != "tgw-other" || w.claimed("edge") != "tgw-0a1" {
			t.Errorf("claims %v", w.Items("tgw_name"))
		}
		if err := w.Delete(ctx, &g); err != nil || w.claimed("edge") != "" || len(w.Items("tgw")) != 0 {
			t.Errorf("%v, claims %v", err, w.Items("tgw_name"))
		}
	})
}

// A gateway that is made again is younger than the one before, also by a clock
// that is slow.
func TestMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		slow := New(w.World, "", func() time.Time { return w.Now().Add(-time.Hour) })
		g := hub()
		for i, writer := range []*Gateways{w.Gateways, slow, slow, slow} {
			if err := writer.SaveNew(ctx, &g); err != nil {
				t.Fatal(err)
			}
			if want := start.UnixMilli() + int64(i); g.CreatedAt != want || g.Version != 0 {
				t.Errorf("life %d: created at %d, want %d; version %d", i, g.CreatedAt, want, g.Version)
			}
			if err := w.Delete(ctx, &g); err != nil {
				t.Fatal(err)
			}
		}
		ids := w.Items("tgw_id")
		ttl, _ := kit.Number(ids[0], "ttl")
		if len(ids) != 1 || ttl != start.Add(7*24*time.Hour).Unix() {
			t.Errorf("%v", ids)
		}
	})
}

// Wherever a creation in steps dies, nothing is to be undone: the name is free
// again once the janitor has been there.
func TestSteps(t *testing.T) {
	for n := range 4 { // writes that succeed; 3 are all
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(n, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					g := hub()
					g.ID = ""
					w.failing(n+1, after)
					err := w.SaveNewInSteps(t.Context(), &g)
					if n == 3 {
						if err != nil || g.ID != "tgw-00000000000000001" || g.CreatedAt != start.UnixMilli() || cmp.Diff(g, w.gateway(g.ID)) != "" {
							t.Fatalf("%+v, %v", g, err)
						}
					} else if !errors.Is(err, errThrottled) || g.ID != "" {
						t.Fatalf("%+v, %v", g, err)
					}
					w.Fault = nil
					made := len(w.Items("tgw")) > 0
					if made != (n == 3 || n == 2 && after) {
						t.Errorf("items %v", w.Items("tgw"))
					}
					if held := w.claimed("hub") != ""; held != (n >= 2 || n == 1 && after) {
						t.Errorf("claims %v", w.Items("tgw_name"))
					}
					w.run(CheckAfter - time.Second)
					if held := w.claimed("hub") != ""; held != (n >= 2 || n == 1 && after) {
						t.Errorf("too early: claims %v", w.Items("tgw_name"))
					}
					w.run(2 * time.Second)
					if held := w.claimed("hub") != ""; held != made {
						t.Errorf("in the end: claims %v, gateways %v", w.Items("tgw_name"), w.Items("tgw"))
					}
					again := hub()
					again.ID = ""
					err = w.SaveNewInSteps(t.Context(), &again)
					if made && !errors.Is(err, ErrNameTaken) || !made && (err != nil || again.ID == g.ID) {
						t.Errorf("another one of that name: %+v, %v", again, err)
					}
				})
			})
		}
	}
}

// Two who count at a time get two IDs.
func TestCounterIsContended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 2 { // the first time there is no counter yet
			var other string
			slow := New(&between{Store: w.World, then: func() {
				var err error
				if other, err = w.nextID(t.Context()); err != nil {
					t.Error(err)
				}
			}}, "", nil)
			id, err := slow.nextID(t.Context())
			if err != nil || other == "" || id <= other {
				t.Errorf("%s after %s, %v", id, other, err)
			}
		}
	})
}

// A counter that is no number is left as it is: from 1 on, IDs would be given out again.
func TestCounterIsNoNumber(t *testing.T) {
	for _, counter := range []string{`{"S":"17"}`, `{"N":"1.5"}`, `{"N":"99999999999999999999"}`} {
		w := newWorld(t)
		last, err := item.Parse([]byte(`{"id":{"S":"#last"},"counter":` + counter + `}`))
		if err := errors.Join(err, w.Put(t.Context(), "tgw_id", last)); err != nil {
			t.Fatal(err)
		}
		if id, err := w.nextID(t.Context()); err == nil || !strings.Contains(err.Error(), "counter") {
			t.Errorf("%s: %q, %v", counter, id, err)
		}
		if all := w.Items("tgw_id"); len(all) != 1 || !all[0].Equal(last) {
			t.Errorf("%s: it is %v now", counter, all)
		}
	}
}

// between has something else happen after the first read.
type between struct {
	Store
	then func()
}

func (b *between) Get(ctx context.Context, table string, key sluice.Item) (sluice.Item, error) {
	it, err := b.Store.Get(ctx, table, key)
	if then := b.then; then != nil {
		b.then = nil
		then()
	}
	return it, err
}
