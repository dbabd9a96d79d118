package cascade

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
)

func TestDryRun(t *testing.T) {
	w := one()
	c := w.one(
		Child{Partition: Attr{Name: "PK", From: "PK"}, Sort: Attr{Name: "SK", Before: "attempt#"}},
		Child{Name: "points", Partition: Attr{Name: "PK", Before: "MAP#", From: "map"}, Sort: Attr{Name: "SK", Before: "POINT#", From: "PK", After: "#"}},
	)
	c.PageSize = 1
	x := must(t, c)
	rows := `one {"PK":{"S":"s-1"},"SK":{"S":"attempt#1"}}
one {"PK":{"S":"s-1"},"SK":{"S":"attempt#2"}}
one {"PK":{"S":"MAP#7"},"SK":{"S":"POINT#s-1#1"}}
`
	parent := parse(`{"PK":{"S":"s-1"},"SK":{"S":"search"},"map":{"N":"7"}}`)
	for _, end := range []string{
		"3 rows are children of one " + search + ", which still exists: until it is deleted, none goes\n",
		"3 rows are children of one " + search + ", which is gone\n",
	} {
		var out strings.Builder
		n, err := x.DryRun(t.Context(), &out, parent)
		if err != nil || n != 3 {
			t.Errorf("%d, %v", n, err)
		}
		if diff := cmp.Diff(rows+end, out.String()); diff != "" {
			t.Error(diff)
		}
		w.tables["one"].set(search, sluice.Item{})
	}
	if w.deletes != 0 || len(w.queue) != 0 {
		t.Error("it was no dry run")
	}
	// A key without a needed attribute is an error, not an empty list.
	if n, err := x.DryRun(t.Context(), &strings.Builder{}, parse(search)); err == nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := x.DryRun(t.Context(), &strings.Builder{}, parse(`{"PK":{"S":"s-1"}}`)); err == nil {
		t.Error("no error without a key")
	}
	for range x.Plan(t.Context(), parent) {
		break
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestDryRunThatFails(t *testing.T) {
	w := points(3)
	if _, err := must(t, w.config()).DryRun(t.Context(), full{}, parse(mapKey)); err == nil || err.Error() != "disk full" {
		t.Error(err)
	}
	c := w.config()
	c.Query = func(context.Context, dynamo.Query) (dynamo.Page, error) { return dynamo.Page{}, errors.New("down") }
	if _, err := must(t, c).DryRun(t.Context(), &strings.Builder{}, parse(mapKey)); err == nil || err.Error() != "cascade: planning table points: down" {
		t.Error(err)
	}
}

// A dry run of children by index lists the rows that a cascade would delete.
func TestDryRunByIndex(t *testing.T) {
	w := newWorld()
	w.table("maps", "user_id", "map_id")
	p := w.table("points", "id")
	p.index("byMap", 0, "map_id")
	p.put(`{"id":{"S":"a"},"map_id":{"S":"m-1"}}`, `{"id":{"S":"b"},"map_id":{"S":"m-1"}}`)
	w.query(t.Context(), dynamo.Query{Table: "points", Index: "byMap", Partition: attribute(parse(mapKey), "map_id")})
	p.rows[`{"id":{"S":"b"}}`] = parse(`{"id":{"S":"b"},"map_id":{"S":"m-2"}}`)
	c := w.config()
	c.Children[0] = Child{Table: "points", Key: []string{"id"}, Index: "byMap", Partition: Attr{Name: "map_id", From: "map_id"}}
	var out strings.Builder
	if n, err := must(t, c).DryRun(t.Context(), &out, parse(mapKey)); n != 1 || err != nil || !strings.HasPrefix(out.String(), `points {"id":{"S":"a"}}`+"\n1 row is a child of maps ") {
		t.Errorf("%d, %v: %s", n, err, out.String())
	}
}
