package manhunt

import (
	"fmt"
	"testing"

	"github.com/sluicehq/sluice/item"
)

// An attribute of a wrong type does not hide the rest of its row, or other rows.
func TestUnread(t *testing.T) {
	fx := Fixtures()
	bad := searchAt("s2", "2019-12-31T00:00:00Z", "active").With(item.String("round", "one"), item.String("metadata", "I-1"), item.Bool("resolution", true))
	method := fx[call].With(item.String("order", "second"), item.Map("destination", item.Of()))
	made := edit(fx[attempted], `"order":{"N":"1"}`, `"order":{"S":"1"}`).With(item.String("step", "0"))
	table := NewTable(newDB(fx[contact], fx[email], method, fx[search], bad, searchAt("s3", "2020-01-01T00:00:00Z", "active"), made), "manhunt")

	found, _, err := table.Searches(t.Context(), SearchQuery{ContactID: "89fa8f8", Status: Active})
	if err != nil || len(found) != 3 {
		t.Fatalf("%+v, %v", found, err)
	}
	if s := found[1]; s.ID != "s2" || s.Status != Active || fmt.Sprint(s.Unread) != "map[metadata:it is of type S resolution:it is of type BOOL round:it is of type S]" {
		t.Errorf("%+v", s)
	}
	if found[0].Unread != nil || found[2].Unread != nil {
		t.Errorf("%+v", found)
	}
	if s, ok, err := table.Search(t.Context(), "s2"); err != nil || !ok || s.ContactID != "89fa8f8" || len(s.Unread) != 3 {
		t.Errorf("%+v, %v, %v", s, ok, err)
	}
	methods, _, err := table.Methods(t.Context(), "db3280c", "89fa8f8", Page{})
	if err != nil || len(methods) != 2 || methods[1].Type != "call" || fmt.Sprint(methods[1].Unread) != "map[destination:it is of type M order:it is of type S]" {
		t.Errorf("%+v, %v", methods, err)
	}
	_, attempts, ok, err := table.SearchWithAttempts(t.Context(), "a271244")
	if err != nil || !ok || len(attempts) != 1 || attempts[0].Method.ID != "538235b" || fmt.Sprint(attempts[0].Unread) != "map[method.order:it is of type S step:it is of type S]" {
		t.Errorf("%+v, %v, %v", attempts, ok, err)
	}
}

func TestSearchQueries(t *testing.T) {
	const time = `want a time in UTC such as 2019-12-31T20:00:00Z, or the beginning of one such as 2019-12-31`
	table := NewTable(newDB(), "manhunt")
	for _, tt := range []struct {
		q    SearchQuery
		want string
	}{
		{SearchQuery{Before: "2019"}, "<nil>"},
		{SearchQuery{After: "2019-12"}, "<nil>"},
		{SearchQuery{After: "2019-12-31"}, "<nil>"},
		{SearchQuery{After: "2019-12-31T20"}, "<nil>"},
		{SearchQuery{After: "2019-12-31T20:00"}, "<nil>"},
		{SearchQuery{Status: Failed, Before: "2019-12-31T20:00:00Z"}, "<nil>"},
		{SearchQuery{Status: "foo"}, `status "foo": want active, canceled, successful, failed`},
		{SearchQuery{Before: "yesterday"}, `before "yesterday": ` + time},
		{SearchQuery{After: "2019-13"}, `after "2019-13": ` + time},
		{SearchQuery{After: "2019-12-31T5"}, `after "2019-12-31T5": ` + time},
		{SearchQuery{After: "2019-12-31T20:00:00+02:00"}, `after "2019-12-31T20:00:00+02:00": ` + time},
		{SearchQuery{After: "2019-12-31T20:00:00.5Z"}, `after "2019-12-31T20:00:00.5Z": ` + time},
		{SearchQuery{Before: "2019", After: "2018"}, "before and after: want one of them"},
	} {
		tt.q.ContactID = "89fa8f8"
		if _, _, err := table.Searches(t.Context(), tt.q); fmt.Sprint(err) != tt.want {
			t.Errorf("%+v: %v, want %s", tt.q, err, tt.want)
		}
	}
}
