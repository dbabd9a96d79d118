package projection

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

func TestLost(t *testing.T) {
	state := func(rev int, v string) map[string]any { return map[string]any{"pk": "a", "rev": rev, "v": v} }
	insert := func(rev int, v string) sluice.Record { return streamtest.Insert("t", state(rev, v)) }
	modify := func(from, to int, was, is string) sluice.Record {
		return streamtest.Modify("t", state(from, was), state(to, is))
	}
	remove := func(rev int, v string) sluice.Record { return streamtest.Remove("t", state(rev, v)) }
	replayed := func(rec sluice.Record) sluice.Record { rec.Origin = sluice.Replayed; return rec }
	for _, tt := range []struct {
		name string
		recs []sluice.Record
		now  int // the item's rev in the table; 0: there is none, -1: it cannot be read
		want []Loss
	}{
		{"all raise it", []sluice.Record{insert(1, "a"), modify(1, 2, "a", "b"), remove(2, "b"), insert(4, "c")}, 4, nil},
		{"two at one time", []sluice.Record{insert(1, "a"), modify(1, 1, "a", "b")}, 1, []Loss{NotRaised}},
		{"a clock that is behind", []sluice.Record{insert(5, "a"), modify(5, 4, "a", "b")}, 4, []Loss{NotRaised}},
		{"the document is the same", []sluice.Record{insert(1, "a"), modify(1, 1, "a", "a")}, 1, nil},
		{"it is written, since the change before it was not", []sluice.Record{insert(1, "a"), modify(2, 2, "a", "b")}, 2, nil},
		{"they come again", []sluice.Record{insert(1, "a"), modify(1, 2, "a", "b"), insert(1, "a"), modify(1, 2, "a", "b")}, 2, nil},
		{"they come again after the deletion", []sluice.Record{insert(1, "a"), remove(1, "a"), insert(1, "a"), remove(1, "a")}, 0, nil},
		{"they are replayed", []sluice.Record{insert(5, "a"), replayed(modify(1, 1, "a", "b")), replayed(insert(1, "b"))}, 1, nil},
		{"the counter began anew", []sluice.Record{insert(1, "a"), modify(1, 2, "a", "b"), remove(2, "b"), insert(1, "c"), modify(1, 2, "c", "d")}, 2, []Loss{BeganAnew}},
		{"nobody can tell", []sluice.Record{insert(3, "a"), remove(3, "a"), insert(1, "c")}, -1, []Loss{BeganAnew}},
		{"it came again right away, and nobody can tell", []sluice.Record{insert(1, "a"), insert(1, "a")}, -1, nil},
		{"nor that it came again", []sluice.Record{insert(1, "a"), modify(1, 2, "a", "b"), insert(1, "a")}, -1, []Loss{BeganAnew}},
	} {
		var got []Loss
		index := streamtest.NewIndex()
		p := must(t, index.Write, Options{
			Index: "i", ID: "{pk}", Version: ByAttribute("rev"), Exclude: []string{"rev"}, Tombstone: []Field{Constant("deleted", true)},
			Lost: func(rec *sluice.Record, why Loss) { got = append(got, why) },
			Current: func(context.Context, *sluice.Record) (sluice.Item, error) {
				switch tt.now {
				case -1:
					return sluice.Item{}, errors.New("AccessDeniedException")
				case 0:
					return sluice.Item{}, nil
				}
				return item.Of(item.String("pk", "a"), item.Number("rev", strconv.Itoa(tt.now))), nil
			},
		})
		for _, rec := range tt.recs {
			if err := p.Handle(t.Context(), &rec); err != nil && !sluice.IsSkip(err) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: lost %q, want %q", tt.name, got, tt.want)
		}
	}
}
