package manhunt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// A search without anybody to call gets the reason once, from its first reader.
func TestMalformedSearch(t *testing.T) {
	good := Fixtures()[search]
	for name, tt := range map[string]struct {
		it  sluice.Item
		why string // "" is a search that stays as it is
	}{
		"good":                  {good, ""},
		"over":                  {good.With(item.String("status", Failed)).Without("contactId"), ""},
		"no contact":            {good.Without("contactId"), "contactId is missing, or no text"},
		"contact is a number":   {good.With(item.Number("contactId", "1")), "contactId is missing, or no text"},
		"no start":              {good.Without("GSI1SK"), "GSI1SK, when it started, is no time in RFC 3339, such as 2019-12-30T19:32:14Z"},
		"start is no time":      {good.With(item.String("GSI1SK", "today")), "GSI1SK, when it started, is no time in RFC 3339, such as 2019-12-30T19:32:14Z"},
		"round is a text":       {good.With(item.String("round", "1")), "round is no whole number from 0"},
		"no status":             {good.Without("status"), "status is none of active, canceled, successful and failed"},
		"status is a number":    {good.With(item.Number("status", "1")), "status is none of active, canceled, successful and failed"},
		"status is another one": {good.With(item.String("status", "open")), "status is none of active, canceled, successful and failed"},
	} {
		for from, rec := range map[string]sluice.Record{"record": inserted(tt.it), "message": received(firstBody)} {
			t.Run(name+", by its "+from, func(t *testing.T) {
				db := newDB(Fixtures()[contact], Fixtures()[email], tt.it)
				for try := range 2 { // the record comes twice
					sent, err := handle(t, db, rec, "2019-12-30T19:40:00Z")
					if sluice.IsPermanent(err) != (tt.why != "" && try == 0) {
						t.Fatalf("try %d: %v", try, err)
					}
					if tt.why == "" {
						return
					}
					it := searchItem(t, db, "a271244")
					at := "2019-12-30T19:40:00Z"
					if from == "message" { // which was due before
						at = "2019-12-30T19:32:14Z"
					}
					if attribute(it, "status") != Failed || attribute(it, "resolution") != "bad_search: "+tt.why || attribute(it, "resolvedBy") != "manhunt" || attribute(it, "resolvedDatetime") != at ||
						attribute(it, "GSI2PK") != "failed#"+attribute(tt.it, "contactId") || len(sent) > 0 {
						t.Errorf("%s, sent %v", it.Raw(), sent)
					}
				}
			})
		}
	}
}

// The end of a search has the time of its record, also for late and repeated records.
func TestTimesAreOfTheRecord(t *testing.T) {
	at19, at20 := at("19:40:00"), at("20:40:00")
	due := func(body string) sluice.Record {
		m := sluice.Message{ID: "m1", Body: body, Sent: at19}
		return *m.Record("arn:aws:sqs:eu-west-1:123456789012:attempts")
	}
	change := inserted(Fixtures()[search])
	change.Created = at19
	for name, tt := range map[string]struct {
		rec  sluice.Record
		want string
	}{
		"change":                  {change, "2019-12-30T19:40:00Z"},
		"message":                 {due(`{"kind":"x","notBefore":"2019-12-30T20:40:00Z"}`), "2019-12-30T20:40:00Z"},
		"message at no time":      {due(`{"kind":"x"}`), "2019-12-30T19:40:00Z"},
		"message at a wrong time": {due(`{"kind":"x","notBefore":"soon"}`), "2019-12-30T19:40:00Z"},
	} {
		var got []string
		note := func(ctx context.Context, _ *sluice.Record) error {
			got = append(got, causedAt(ctx).Format("2006-01-02T15:04:05Z07:00"))
			return nil
		}
		h := caused(func(ctx context.Context, rec *sluice.Record) error {
			return errors.Join(note(ctx, rec), &sluice.Remaining{Rest: note, Err: errors.New("half done")})
		})
		var rest *sluice.Remaining
		if err := h(t.Context(), &tt.rec); !errors.As(err, &rest) {
			t.Fatal(err)
		}
		if err := rest.Rest(t.Context(), &tt.rec); err != nil || fmt.Sprint(got) != fmt.Sprint([]string{tt.want, tt.want}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if !causedAt(t.Context()).IsZero() || at20.Before(at19) {
		t.Error("a time without a record")
	}
}

func TestOpen(t *testing.T) {
	db := newDB()
	table := NewTable(db, "manhunt")
	n := NewSearch{ID: "a271244", DomainID: "db3280c", ContactID: "89fa8f8", Started: "2019-12-30T19:32:14Z", Metadata: item.Of(item.String("incident", "I-1"))}
	for _, want := range []bool{true, false} {
		if opened, err := table.Open(t.Context(), n); opened != want || err != nil {
			t.Error(opened, err)
		}
		n.ContactID = "another"
	}
	if it := searchItem(t, db, "a271244"); !it.Equal(Fixtures()[search]) {
		t.Errorf("%s", it.Raw())
	}
	for want, n := range map[string]NewSearch{
		"want an id and a domain": {DomainID: "d", ContactID: "c", Started: n.Started},
		"contactId is missing":    {ID: "s", DomainID: "d", Started: n.Started},
		"no time in RFC 3339":     {ID: "s", DomainID: "d", ContactID: "c", Started: "now"},
	} {
		if opened, err := table.Open(t.Context(), n); opened || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %s", opened, err, want)
		}
	}
}

// A forged cursor cannot read another partition.
func TestCursors(t *testing.T) {
	fx := Fixtures()
	table := NewTable(newDB(fx[contact], fx[search], searchAt("s2", "2019-12-31T00:00:00Z", "active")), "manhunt")
	_, next, err := table.Searches(t.Context(), SearchQuery{ContactID: "89fa8f8", Page: Page{Limit: 1}})
	if err != nil || next == "" {
		t.Fatal(next, err)
	}
	for name, read := range map[string]func() (any, string, error){
		"another contact": func() (any, string, error) {
			return table.Searches(t.Context(), SearchQuery{ContactID: "9d657f8", Page: Page{Cursor: next}})
		},
		"another index": func() (any, string, error) {
			return table.Searches(t.Context(), SearchQuery{ContactID: "89fa8f8", Status: "active", Page: Page{Cursor: next}})
		},
		"another query": func() (any, string, error) { return table.Attempts(t.Context(), "89fa8f8", Page{Cursor: next}) },
		"no cursor":     func() (any, string, error) { return table.Contacts(t.Context(), "89fa8f8", Page{Cursor: "page 2"}) },
		"no item":       func() (any, string, error) { return table.Contacts(t.Context(), "89fa8f8", Page{Cursor: "e30"}) },
	} {
		if _, _, err := read(); !errors.Is(err, ErrCursor) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := table.Contacts(t.Context(), "d", Page{Limit: -1}); err == nil {
		t.Error("a limit of -1 is taken")
	}
	if _, _, err := table.Searches(t.Context(), SearchQuery{ContactID: "c", Before: "2020", After: "2019"}); err == nil {
		t.Error("both bounds are taken")
	}
}
