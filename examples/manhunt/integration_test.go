//go:build integration

package manhunt

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
)

// newTable makes a table of its own for the test.
func newTable(t *testing.T) *Table {
	t.Helper()
	cfg := localtest.DynamoDB(t)
	table, err := Open(cfg, localtest.Name("manhunt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Create(t.Context(), cfg, table.name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if _, err := dynamodb.NewFromConfig(cfg).DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table.name}); err != nil {
			t.Error(err)
		}
	})
	return table
}

func put(t *testing.T, table *Table, items ...sluice.Item) {
	t.Helper()
	for _, it := range items {
		if err := table.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
}

// ids are the places of items among the answers.
func ids[T any](items []T, id func(T) string) string {
	var out []string
	for _, it := range items {
		out = append(out, id(it))
	}
	return strings.Join(out, " ")
}

func TestQueries(t *testing.T) {
	table := newTable(t)
	ctx := t.Context()
	fx := Fixtures()
	put(t, table, fx...)
	put(t, table,
		edit(fx[contact], "89fa8f8", "9d657f8", "Zavier Curtis", "Alma Berg"),
		edit(fx[contact], "89fa8f8", "0000001", "Zavier Curtis", "Mia Olsen"),
		edit(fx[contact], "89fa8f8", "0000002", "db3280c", "6f7ad1b"),
		searchAt("s2", "2019-12-31T00:00:00Z", "failed"),
		searchAt("s3", "2019-12-29T08:00:00Z", "active"),
		searchAt("s4", "2020-01-02T08:00:00Z", "active"),
		edit(fx[attempted], "1004c16", "6f08fe0", `"step":{"N":"0"}`, `"step":{"N":"1"}`, "19:32:20Z", "19:52:20Z"),
		// Rows that stand where another type is looked for.
		edit(fx[contact], `"PK":{"S":"89fa8f8"}`, `"PK":{"S":"x1"}`, `"SK":{"S":"contact"}`, `"SK":{"S":"search"}`, "db3280c", "89fa8f8"),
		edit(fx[search], `"PK":{"S":"a271244"}`, `"PK":{"S":"x2"}`, `"SK":{"S":"search"}`, `"SK":{"S":"contact"}`, `"GSI1PK":{"S":"89fa8f8"}`, `"GSI1PK":{"S":"db3280c"}`, "active#89fa8f8", "active#x2"),
	)

	t.Run("search", func(t *testing.T) { // 1
		s, ok, err := table.Search(ctx, "a271244")
		want := Search{ID: "a271244", ContactID: "89fa8f8", DomainID: "db3280c", Status: "active", Started: "2019-12-30T19:32:14Z", Metadata: map[string]any{"incident": "I-1"}}
		if err != nil || !ok || fmt.Sprint(s) != fmt.Sprint(want) {
			t.Errorf("%+v, %v, %v", s, ok, err)
		}
		for _, id := range []string{"nobody", "89fa8f8", "x1", "x2"} {
			if s, ok, err := table.Search(ctx, id); ok || err != nil {
				t.Errorf("%s: %+v, %v", id, s, err)
			}
		}
	})
	t.Run("search with attempts", func(t *testing.T) { // 2
		s, attempts, ok, err := table.SearchWithAttempts(ctx, "a271244")
		if err != nil || !ok || s.ID != "a271244" || ids(attempts, func(a Attempt) string { return a.ID }) != "1004c16 6f08fe0" {
			t.Fatalf("%+v, %+v, %v, %v", s, attempts, ok, err)
		}
		if a := attempts[0]; a.Method.ID != "538235b" || a.Method.Order != 1 || a.Attempted != "2019-12-30T19:32:20Z" || a.Step != 0 {
			t.Errorf("%+v", a)
		}
		if _, _, ok, err := table.SearchWithAttempts(ctx, "89fa8f8"); ok || err != nil {
			t.Errorf("a contact: %v, %v", ok, err)
		}
	})
	t.Run("contact", func(t *testing.T) { // 3
		c, ok, err := table.Contact(ctx, "db3280c", "89fa8f8")
		if want := (Contact{ID: "89fa8f8", DomainID: "db3280c", Name: "Zavier Curtis"}); err != nil || !ok || c != want {
			t.Errorf("%+v, %v, %v", c, ok, err)
		}
		for _, id := range []string{"nobody", "a271244", "x1", "x2", "0000002"} { // the last is of another domain
			if c, ok, err := table.Contact(ctx, "db3280c", id); ok || err != nil {
				t.Errorf("%s: %+v, %v", id, c, err)
			}
		}
	})
	t.Run("methods of a contact", func(t *testing.T) { // 4
		methods, _, err := table.Methods(ctx, "db3280c", "89fa8f8", Page{})
		if err != nil || len(methods) != 2 {
			t.Fatalf("%+v, %v", methods, err)
		}
		want := Method{ContactID: "89fa8f8", ID: "800e613", DomainID: "db3280c", Type: "call", Destination: "+15550100", Order: 2, WaitSeconds: 1200, Enabled: true}
		if fmt.Sprint(methods[1]) != fmt.Sprint(want) || methods[0].ID != "538235b" {
			t.Errorf("%+v", methods)
		}
		if methods, _, err := table.Methods(ctx, "db3280c", "a271244", Page{}); methods != nil || err != nil {
			t.Errorf("a search: %+v, %v", methods, err)
		}
	})
	t.Run("contacts of a domain by name", func(t *testing.T) { // 5
		cs, _, err := table.Contacts(ctx, "db3280c", Page{})
		if got := ids(cs, func(c Contact) string { return c.Name }); err != nil || got != "Alma Berg Mia Olsen Zavier Curtis" {
			t.Errorf("%s, %v", got, err)
		}
	})
	for _, tt := range []struct { // 6 to 9
		name string
		q    SearchQuery
		want string
	}{
		{"searches of a contact", SearchQuery{}, "s3 a271244 s2 s4"},
		{"searches before", SearchQuery{Before: "2019-12-31T00:00:00Z"}, "s3 a271244"},
		{"searches after", SearchQuery{After: "2019-12-31T00:00:00Z"}, "s4"},
		{"active searches", SearchQuery{Status: "active"}, "s3 a271244 s4"},
		{"failed searches", SearchQuery{Status: "failed"}, "s2"},
		{"canceled searches of another", SearchQuery{ContactID: "9d657f8", Status: "canceled"}, "2ad6a19"},
		{"active before", SearchQuery{Status: "active", Before: "2019-12-31"}, "s3 a271244"},
		{"active after", SearchQuery{Status: "active", After: "2019-12-31"}, "s4"},
		{"searches of nobody", SearchQuery{ContactID: "nobody"}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.q.ContactID = cmp.Or(tt.q.ContactID, "89fa8f8")
			for limit := range 5 { // whole, and by pages
				tt.q.Limit, tt.q.Cursor = limit, ""
				got := paged(t, limit, func(cursor string) ([]Search, string, error) {
					tt.q.Cursor = cursor
					return table.Searches(ctx, tt.q)
				})
				if got := ids(got, func(s Search) string { return s.ID }); got != tt.want {
					t.Errorf("by %d: %s, want %s", limit, got, tt.want)
				}
			}
		})
	}
	t.Run("by pages", func(t *testing.T) { // 2, 4 and 5
		for limit := 1; limit < 4; limit++ {
			attempts := paged(t, limit, func(cursor string) ([]Attempt, string, error) {
				return table.Attempts(ctx, "a271244", Page{limit, cursor})
			})
			methods := paged(t, limit, func(cursor string) ([]Method, string, error) {
				return table.Methods(ctx, "db3280c", "89fa8f8", Page{limit, cursor})
			})
			contacts := paged(t, limit, func(cursor string) ([]Contact, string, error) {
				return table.Contacts(ctx, "db3280c", Page{limit, cursor})
			})
			got := ids(attempts, func(a Attempt) string { return a.ID }) + ", " + ids(methods, func(m Method) string { return m.ID }) + ", " + ids(contacts, func(c Contact) string { return c.Name })
			if want := "1004c16 6f08fe0, 538235b 800e613, Alma Berg Mia Olsen Zavier Curtis"; got != want {
				t.Errorf("by %d: %s", limit, got)
			}
		}
	})
}

// paged reads all pages, and checks that none is longer than limit.
func paged[T any](t *testing.T, limit int, read func(cursor string) ([]T, string, error)) (all []T) {
	t.Helper()
	cursor := ""
	for {
		rows, next, err := read(cursor)
		if err != nil || limit > 0 && len(rows) > limit || next != "" && len(rows) < limit {
			t.Fatalf("%d rows by %d, %v", len(rows), limit, err)
		}
		all = append(all, rows...)
		if cursor = next; next == "" {
			return all
		}
	}
}

// A partition of more than one page (1 MB) is read whole.
func TestQueryReadsAllPages(t *testing.T) {
	table := newTable(t)
	fx := Fixtures()
	put(t, table, fx[contact])
	for i := range 4 {
		put(t, table, edit(fx[email], "538235b", fmt.Sprintf("m%d", i), "z@example.com", strings.Repeat("z", 350_000)))
	}
	items, err := table.partition(t.Context(), "89fa8f8")
	if err != nil || len(items) != 5 {
		t.Errorf("%d items, %v", len(items), err)
	}
}

// A search ends once. The second end changes nothing.
func TestEnd(t *testing.T) {
	table := newTable(t)
	fx := Fixtures()
	put(t, table, fx[search], fx[canceled])
	get := func(id string) sluice.Item {
		it, err := table.get(t.Context(), id, "search", "search")
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	for _, want := range []bool{true, false} {
		if ok, err := table.end(t.Context(), "a271244", "89fa8f8", Failed, Ending{Why: contactNotFound}); ok != want || err != nil {
			t.Error(ok, err)
		}
		if it := get("a271244"); !it.Equal(ended(fx[search], Failed, Ending{Why: contactNotFound})) {
			t.Errorf("search is now %s", it.Raw())
		}
	}
	if ok, err := table.end(t.Context(), "2ad6a19", "9d657f8", Failed, Ending{Why: contactNotFound}); ok || err != nil || !get("2ad6a19").Equal(fx[canceled]) {
		t.Errorf("a canceled search is now %s, %v", get("2ad6a19").Raw(), err)
	}
	if ok, err := table.end(t.Context(), "gone", "9d657f8", Failed, Ending{Why: contactNotFound}); ok || err != nil || get("gone").Exists() {
		t.Errorf("a search that never was is now %s, %v", get("gone").Raw(), err)
	}
}
