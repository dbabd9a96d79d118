package dynamo

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

func TestAll(t *testing.T) {
	down := errors.New("down")
	it := func(n int) sluice.Item { return item.Of(item.Number("n", fmt.Sprint(n))) }
	pages := []Page{{Items: []sluice.Item{it(1), it(2)}, Next: it(2)}, {Next: it(2)}, {Items: []sluice.Item{it(3)}}}
	calls := 0
	query := func(_ context.Context, q Query) (Page, error) {
		if want := []string{"", `{"n":{"N":"2"}}`, `{"n":{"N":"2"}}`}; calls < 3 && string(q.After.Raw()) != want[calls] {
			t.Errorf("page %d begins after %s", calls, q.After.Raw())
		}
		if calls++; calls > len(pages) {
			return Page{}, down
		}
		return pages[calls-1], nil
	}
	var got []string
	for it, err := range All(t.Context(), query, Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(it.Raw()))
	}
	if fmt.Sprint(got) != `[{"n":{"N":"1"}} {"n":{"N":"2"}} {"n":{"N":"3"}}]` || calls != 3 {
		t.Errorf("%v in %d calls", got, calls)
	}
	calls = 3
	for _, err := range All(t.Context(), query, Query{}) {
		if !errors.Is(err, down) {
			t.Error(err)
		}
		got = nil
	}
	if got != nil {
		t.Error("the failure was not told")
	}
}

func TestOpsAreValues(t *testing.T) {
	base := Update("t", item.Of(item.String("k", "1")), "SET #a = :a").Name("#a", "a")
	one, two := base.Value(":a", 1).If("x"), base.Value(":a", 2).Name("#b", "b")
	if base.Values != nil || base.Condition != "" || len(base.Names) != 1 {
		t.Errorf("%+v has changed", base)
	}
	if diff := cmp.Diff([]any{map[string]any{":a": 1}, map[string]any{":a": 2}, 1, 2}, []any{one.Values, two.Values, len(one.Names), len(two.Names)}); diff != "" {
		t.Error(diff)
	}
}

func TestMarker(t *testing.T) {
	m := NewMarker("markers", "counts#e1", time.Unix(1700000000, 5))
	if got := string(m.Item.Raw()); got != `{"pk":{"S":"counts#e1"},"ttl":{"N":"1700000000"}}` || m.Key != "pk" || m.Table != "markers" {
		t.Errorf("%+v %s", m, got)
	}
}

func TestIsCondition(t *testing.T) {
	err := fmt.Errorf("search s-1: %w", &ConditionError{Failed: []int{2}, Tables: []string{"searches"}})
	if !IsCondition(err) || IsCondition(errors.New("x")) || IsCondition(nil) {
		t.Error("not told apart")
	}
	if want := "search s-1: conditions of writes [2] to [searches] do not hold"; err.Error() != want {
		t.Error(err)
	}
}
