package config

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

// An error about a missing setting of a recount names its field. Lacks reports it
// before a recount, and the recount itself does.
func TestWhatRecountsLack(t *testing.T) {
	const file = `
source: {tables: [%s]}
routes:
  - name: a log
    on: order#*
    log: {}
  - name: count orders
    on: order#*
    count:
      id: orders
      markers: markers
      numbers:
        - table: shops
          attribute: orders
          key: {shop: shopId}
          %s
`
	for _, tt := range []struct {
		name           string
		tables, number string
		asked          bool   // needs a call to tables
		want           string // "": no error
	}{
		{"an index", "orders", "index: byShop\n          partition: shopId", false, ""},
		{"the children's own key", "lines", "", false, ""},
		{"no index", "orders", "", true,
			`a.yaml:13:11: routes[1].count.numbers[0].index: route count orders: a recount does not find the children of an item of table shops: the partition key of their table orders, "id", is none of shopId, which the parent's key is taken from; want a global secondary index of orders that has one of these as its partition key, and its name in partition`},
		{"an index of something else", "orders", "index: byDay\n          partition: day", false,
			`a.yaml:17:22: routes[1].count.numbers[0].partition: route count orders: a recount does not find the children of an item of table shops by the index byDay: its partition key day is none of shopId, which the parent's key is taken from`},
		{"no table of the children", "orders, lines", "index: byShop\n          partition: shopId", false,
			`a.yaml:9:5: routes[1].count.table: route count orders: a recount does not know the children's table: want its name, since source has several, and entityType does not tell which has the types of the route`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.tables.Create("orders", "id", "")
			w.tables.Create("lines", "shopId", "line")
			w.tables.Create("shops", "shop", "")
			put(t, w.tables, "shops", `{"shop":"a","orders":0}`)
			c, err := Parse("a.yaml", ".", fmt.Appendf(nil, file, tt.tables, tt.number), func(string) (string, bool) { return "", false })
			if err != nil {
				t.Fatal(err)
			}
			routes := w.build(t, c).Routes
			if routes[0].Lacks != nil {
				t.Error("a log has recounts")
			}
			said := func(err error) string {
				if err == nil {
					return ""
				}
				return err.Error()
			}
			want := tt.want
			if got := said(routes[1].Lacks(t.Context(), true)); got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			_, err = routes[1].Recounts[0].Run(t.Context(), func(yield func(sluice.Item, error) bool) { yield(plain(`{"shop":"a"}`), nil) })
			if got := said(err); want == "" && got != "" || !strings.HasSuffix(got, want) {
				t.Errorf("a recount: %s\nwant\n%s", got, want)
			}
			if tt.asked {
				want = ""
			}
			down := errors.New("down")
			w.tables.ReadFault = func() error { return down }
			if got := said(routes[1].Lacks(context.Background(), false)); got != want {
				t.Errorf("of the file alone: %s\nwant\n%s", got, want)
			}
		})
	}
}

// An unreachable table is no error of a recount's settings.
func TestTablesOfRecountsThatAreGone(t *testing.T) {
	w := newWorld()
	app := w.build(t, one(Route{On: Strings{"order#*"}, Count: &Count{ID: "orders", Markers: "markers", Numbers: []Counter{
		{Table: "shops", Attribute: "orders", Key: KeyFrom{"shop": "shopId"}},
	}}}))
	if err := app.Routes[0].Lacks(t.Context(), true); err != nil {
		t.Error(err)
	}
}

// keysOnly are tables whose indexes have only the keys of items.
type keysOnly struct{ Tables }

func (k keysOnly) Query(ctx context.Context, q dynamo.Query) (dynamo.Page, error) {
	switch {
	case q.Index == "":
		return k.Tables.Query(ctx, q)
	case q.Whole:
		return dynamo.Page{}, errors.New("its projection type is not ALL")
	}
	return dynamo.Page{Items: []sluice.Item{plain(`{"id":"1","shopId":"a"}`)}}, nil
}

// An index may lack the attributes that a count reads. A recount by it would lower a
// right counter.
func TestRecountByAnIndexWithoutAllAttributes(t *testing.T) {
	w := newWorld()
	w.tables.Create("orders", "id", "")
	w.tables.Create("shops", "shop", "")
	put(t, w.tables, "shops", `{"shop":"a","orders":1}`)
	put(t, w.tables, "orders", `{"id":"1","shopId":"a","entityType":"order"}`)
	s := w.setup()
	s.Fakes.Tables = keysOnly{w.tables}
	app, err := build(t, one(Route{On: Strings{"order#*"}, Count: &Count{ID: "orders", Markers: "markers", Numbers: []Counter{
		{Table: "shops", Attribute: "orders", Key: KeyFrom{"shop": "shopId"}, Index: "byShop", Partition: "shopId"},
	}}}), s)
	if err != nil {
		t.Fatal(err)
	}
	r := app.Routes[0].Recounts[0]
	r.Settle = time.Millisecond
	done, err := r.Run(t.Context(), func(yield func(sluice.Item, error) bool) { yield(plain(`{"shop":"a"}`), nil) })
	if err == nil || !strings.Contains(err.Error(), "its projection type is not ALL") || done.Corrected > 0 {
		t.Errorf("%+v, %v: want an error, and nothing set", done, err)
	}
}
