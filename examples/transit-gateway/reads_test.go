package transitgateway

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice/item"
)

// readFixtures are seven gateways of an owner and one of another; rows of the
// first route table: one is right, of one the gateway is elsewhere by now, of
// one it is gone, one is deleted, and one belongs to the other owner.
func readFixtures() (all []Fixture) {
	for i := range 7 {
		g := Gateway{OwnerID: owner, ID: fmt.Sprint("tgw-", i), Version: int64(i), CreatedAt: 1704164645000, State: "available", Name: fmt.Sprint("n", i), RouteTables: []string{"rtb-9"}}
		if i == 3 {
			g.RouteTables = []string{"rtb-0", "rtb-1"}
		}
		all = append(all, Fixture{Table: "tgw", Item: g.item()})
	}
	all = append(all, Fixture{Table: "tgw", Item: Gateway{OwnerID: "other", ID: "tgw-x", CreatedAt: 1704164645000, Name: "n", RouteTables: []string{"rtb-1"}}.item()})
	for _, row := range []struct{ owner, id string }{{owner, "tgw-3"}, {owner, "tgw-4"}, {owner, "tgw-gone"}, {"other", "tgw-x"}} {
		all = append(all, Fixture{Table: "tgw_by_rtb", Item: inverseRow{OwnerID: row.owner, ID: row.id, fence: 1}.of("rtb-1")})
	}
	deleted := inverseRow{OwnerID: owner, ID: "tgw-5", fence: 1}.of("rtb-1").With(tombstone(start)...)
	return append(all, Fixture{Table: "tgw_by_rtb", Item: deleted})
}

func TestReads(t *testing.T) {
	w := newWorld(t)
	w.put(readFixtures()...)
	checkReads(t, w.Gateways)
}

func checkReads(t *testing.T, g *Gateways) {
	t.Helper()
	ctx := t.Context()
	want := Gateway{owner, "tgw-3", 3, 1704164645000, "available", "n3", []string{"rtb-0", "rtb-1"}}
	if got, found, err := g.Gateway(ctx, owner, "tgw-3"); err != nil || !found || cmp.Diff(want, got) != "" {
		t.Errorf("%+v, %v, %v", got, found, err)
	}
	for _, key := range [][2]string{{owner, "tgw-x"}, {"other", "tgw-3"}, {"nobody", "tgw-3"}} {
		if got, found, err := g.Gateway(ctx, key[0], key[1]); err != nil || found {
			t.Errorf("%v: %+v, %v", key, got, err)
		}
	}
	of := func(owner string) ([]Gateway, error) { return g.OfOwner(ctx, owner) }
	by := func(rtb string) ([]Gateway, error) { return g.OfRouteTable(ctx, rtb) }
	for _, tt := range []struct {
		name string
		read func(string) ([]Gateway, error)
		of   string
		want string
	}{
		{"of an owner", of, owner, "tgw-0 tgw-1 tgw-2 tgw-3 tgw-4 tgw-5 tgw-6"},
		{"of another", of, "other", "tgw-x"},
		{"of nobody", of, "nobody", ""},
		{"of a route table", by, "rtb-1", "tgw-3 tgw-x"},
		{"of one without rows", by, "rtb-none", ""},
	} {
		all, err := tt.read(tt.of)
		if got := ids(all); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		page Page
		want string // a page a line
	}{
		{Page{}, "tgw-0 tgw-1 tgw-2 tgw-3 tgw-4 tgw-5 tgw-6"},
		{Page{Limit: 3}, "tgw-0 tgw-1 tgw-2\ntgw-3 tgw-4 tgw-5\ntgw-6"},
		{Page{Limit: 7}, "tgw-0 tgw-1 tgw-2 tgw-3 tgw-4 tgw-5 tgw-6"},
		{Page{From: "tgw-2", To: "tgw-5"}, "tgw-2 tgw-3 tgw-4 tgw-5"},
		{Page{From: "tgw-2", To: "tgw-5", Limit: 2}, "tgw-2 tgw-3\ntgw-4 tgw-5"},
		{Page{From: "tgw-20", To: "tgw-5", Limit: 2}, "tgw-3 tgw-4\ntgw-5"},
		{Page{From: "tgw-5"}, "tgw-5 tgw-6"},
		{Page{To: "tgw-1", Limit: 1}, "tgw-0\ntgw-1"},
		{Page{From: "tgw-7"}, ""},
		{Page{From: "tgw-5", To: "tgw-2"}, ""},
	} {
		var pages []string
		for p, more := tt.page, true; more && len(pages) < 9; more = p.After != "" {
			all, next, err := g.Range(ctx, owner, p)
			if err != nil {
				t.Fatal(err)
			}
			pages, p.After = append(pages, ids(all)), next
		}
		if got := strings.Join(pages, "\n"); got != tt.want {
			t.Errorf("%+v:\n%s\nwant\n%s", tt.page, got, tt.want)
		}
	}
}

func ids(all []Gateway) string {
	var ids []string
	for _, g := range all {
		ids = append(ids, g.ID)
	}
	return strings.Join(ids, " ")
}

// Every read returns an error for an unreadable item, or an item that is no gateway.
func TestReadsFail(t *testing.T) {
	w := newWorld(t)
	reads := map[string]func(context.Context) error{
		"gateway":     func(ctx context.Context) error { _, _, err := w.Gateway(ctx, owner, "tgw-1"); return err },
		"of an owner": func(ctx context.Context) error { _, err := w.OfOwner(ctx, owner); return err },
		"range":       func(ctx context.Context) error { _, _, err := w.Range(ctx, owner, Page{}); return err },
		"route table": func(ctx context.Context) error { _, err := w.OfRouteTable(ctx, "rtb-1"); return err },
	}
	w.put(Fixture{Table: "tgw", Item: item.Of(item.String("owner_id", owner), item.String("tgw_id", "tgw-1"), item.String("version", "one"))},
		Fixture{Table: "tgw_by_rtb", Item: inverseRow{OwnerID: owner, ID: "tgw-1", fence: 1}.of("rtb-1")})
	for name, read := range reads {
		if err := read(t.Context()); err == nil || !strings.Contains(err.Error(), "an item of table tgw") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.ReadFault = func() error { return errThrottled }
	for name, read := range reads {
		if err := read(t.Context()); err == nil || !strings.Contains(err.Error(), "throttled") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
