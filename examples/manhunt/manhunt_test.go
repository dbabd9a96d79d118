package manhunt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/tabletest"
	"github.com/sluicehq/sluice/streamtest"
)

// The bodies that the fixtures make.
const (
	firstBody  = `{"kind":"manhunt.attempt","v":1,"searchId":"a271244","domainId":"db3280c","contactId":"89fa8f8","methodId":"538235b","order":1,"step":0,"notBefore":"2019-12-30T19:32:14Z","dedupeKey":"a271244#0"}`
	secondBody = `{"kind":"manhunt.attempt","v":1,"searchId":"a271244","domainId":"db3280c","contactId":"89fa8f8","methodId":"800e613","order":2,"step":1,"notBefore":"2019-12-30T19:52:20Z","dedupeKey":"a271244#1"}`
	expiryBody = `{"kind":"manhunt.expire","v":1,"searchId":"a271244","domainId":"db3280c","contactId":"89fa8f8","notBefore":"2019-12-30T19:57:25Z","dedupeKey":"a271244#expire"}`
)

// newDB is the table in memory.
func newDB(items ...sluice.Item) *tabletest.DB {
	db := &tabletest.DB{}
	db.Create("manhunt", "PK", "SK")
	for _, it := range items {
		if err := db.Put(context.Background(), "manhunt", it); err != nil {
			panic(err)
		}
	}
	db.Records()
	return db
}

// searchItem is a row of the table as it is now.
func searchItem(t *testing.T, db *tabletest.DB, id string) sluice.Item {
	t.Helper()
	it, err := db.Get(t.Context(), "manhunt", key(id, "search"))
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// edit replaces text in an item.
func edit(it sluice.Item, oldnew ...string) sluice.Item {
	raw := strings.NewReplacer(oldnew...).Replace(string(it.Raw()))
	if raw == string(it.Raw()) {
		panic(fmt.Sprintf("nothing of %q is in %s", oldnew, raw))
	}
	return streamtest.Item(raw)
}

// inserted is the stream's record of a new item.
func inserted(it sluice.Item) sluice.Record { return streamtest.Insert("manhunt", it) }

func change(old, new sluice.Item) sluice.Record { return streamtest.Modify("manhunt", old, new) }

// searchAt is a search of contact 89fa8f8.
func searchAt(id, started, status string) sluice.Item {
	return edit(Fixtures()[search], "a271244", id, "2019-12-30T19:32:14Z", started, `"status":{"S":"active"}`, `"status":{"S":"`+status+`"}`, "active#", status+"#")
}

// Places among the fixtures.
const (
	contact = iota
	email
	call
	search
	canceled
	attempt
	attempted
)

// secondAttempt is the second step's, as the consumer of the queue leaves it;
// without attemptedAt, as it is before.
func secondAttempt() sluice.Item {
	return edit(Fixtures()[attempted], "1004c16", "6f08fe0", `"step":{"N":"0"}`, `"step":{"N":"1"}`,
		`"methodId":{"S":"538235b"},"type":{"S":"email"},"order":{"N":"1"}`, `"methodId":{"S":"800e613"},"type":{"S":"call"},"order":{"N":"2"}`,
		"19:32:20Z", "19:52:25Z")
}

const attemptedAt = `,"attemptedDatetime":{"S":"2019-12-30T19:52:25Z"}`

// handle routes rec over the db at the given time. It returns the sent messages and the
// outcome.
func handle(t *testing.T, db *tabletest.DB, rec sluice.Record, now string) ([]sluice.Message, error) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, now)
	if err != nil {
		t.Fatal(err)
	}
	rec.Created = at
	var queue streamtest.Sink[sluice.Message]
	r, err := NewRouter(Deps{Store: db, Send: queue.Send, Watch: ignore, Notify: queue.Send, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Dispatch(t.Context(), &rec)
	return queue.Values(), err
}

func TestMessages(t *testing.T) {
	fx := Fixtures()
	second := secondAttempt()
	for _, tt := range []struct {
		name  string
		rec   sluice.Record
		now   string
		body  string // "" is no message
		key   string
		delay time.Duration
	}{
		{"search seen at once", inserted(fx[search]), "2019-12-30T19:32:15Z", firstBody, "a271244#0", 0},
		{"attempt made", change(fx[attempt], fx[attempted]), "2019-12-30T19:32:21Z", secondBody, "a271244#1", 900 * time.Second},
		{"seen as the consumer hops", change(fx[attempt], fx[attempted]), "2019-12-30T19:47:21Z", secondBody, "a271244#1", 299 * time.Second},
		{"seen too late", change(fx[attempt], fx[attempted]), "2019-12-30T21:00:00Z", secondBody, "a271244#1", 0},
		{"last attempt made", change(edit(second, attemptedAt, ""), second), "2019-12-30T19:52:25.5Z", expiryBody, "a271244#expire", 300 * time.Second},
		{"canceled search", inserted(fx[canceled]), "2019-12-30T19:32:15Z", "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 2 { // a replay sends the same bytes
				sent, err := handle(t, newDB(fx[:attempt]...), tt.rec, tt.now)
				if tt.body == "" {
					var skip *sluice.SkipError
					if len(sent) != 0 || !errors.As(err, &skip) {
						t.Errorf("sent %d messages, %v", len(sent), err)
					}
					return
				}
				if err != nil || len(sent) != 1 {
					t.Fatalf("sent %d messages, %v", len(sent), err)
				}
				m := sent[0]
				if m.Body != tt.body || m.Delay != tt.delay {
					t.Errorf("sent %s, delay %v\nwant %s, delay %v", m.Body, m.Delay, tt.body, tt.delay)
				}
				if m.Attributes["dedupeKey"].Value != tt.key || !strings.Contains(tt.body, `"notBefore":"`+m.Attributes["notBefore"].Value+`"`) || len(m.Attributes) != 2 {
					t.Errorf("attributes %v", m.Attributes)
				}
			}
		})
	}
}

// An edit of the methods shifts their positions, but does not change the next method.
func TestMethodsEditedMeanwhile(t *testing.T) {
	fx := Fixtures()
	db := newDB(fx[contact], edit(fx[call], `"order":{"N":"2"}`, `"order":{"N":"7"}`), fx[search]) // the one tried is gone
	sent, err := handle(t, db, change(fx[attempt], fx[attempted]), "2019-12-30T19:32:21Z")
	if err != nil || len(sent) != 1 {
		t.Fatalf("sent %d messages, %v", len(sent), err)
	}
	if got, want := sent[0].Body, strings.Replace(secondBody, `"order":2`, `"order":7`, 1); got != want {
		t.Errorf("sent %s\nwant %s", got, want)
	}
}

func TestEndOfASearch(t *testing.T) {
	fx := Fixtures()
	made := change(fx[attempt], fx[attempted])
	for _, tt := range []struct {
		name    string
		items   []sluice.Item
		rec     sluice.Record
		want    string // resolution; "" is still as it was
		outcome string
	}{
		{"contact deleted first", fx[email : search+1], inserted(fx[search]), contactNotFound, "<nil>"},
		{"contact deleted before the second step", fx[email : search+1], made, contactNotFound, "<nil>"},
		{"contact of another domain", []sluice.Item{edit(fx[contact], "db3280c", "6f7ad1b"), fx[email], fx[search]}, inserted(fx[search]), contactNotFound, "<nil>"},
		{"not a contact", []sluice.Item{edit(fx[contact], `"entityType":{"S":"contact"}`, `"entityType":{"S":"group"}`), fx[email], fx[search]}, inserted(fx[search]), contactNotFound, "<nil>"},
		{"search without a domain", []sluice.Item{edit(fx[contact], "db3280c", ""), fx[email], edit(fx[search], `"domainId":{"S":"db3280c"},`, "")}, inserted(fx[search]), contactNotFound, "<nil>"},
		{"no methods", []sluice.Item{fx[contact], fx[search]}, inserted(fx[search]), noContactMethods, "<nil>"},
		{"all methods disabled", []sluice.Item{fx[contact], edit(fx[email], "true", "false"), fx[search]}, inserted(fx[search]), noContactMethods, "<nil>"},
		{"resolved meanwhile", []sluice.Item{fx[contact], fx[email], edit(fx[search], `"S":"active"`, `"S":"successful"`)}, made, "", "skipped: escalation not active"},
		{"search gone", fx[:search], made, "", "skipped: escalation not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := newDB(tt.items...)
			before := searchItem(t, db, "a271244")
			sent, err := handle(t, db, tt.rec, "2019-12-30T19:32:21Z")
			if len(sent) != 0 || fmt.Sprint(err) != tt.outcome {
				t.Fatalf("sent %d messages, %v", len(sent), err)
			}
			it := searchItem(t, db, "a271244")
			if tt.want == "" {
				if !it.Equal(before) {
					t.Errorf("search is now %s", it.Raw())
				}
				return
			}
			if attribute(it, "status") != "failed" || attribute(it, "resolution") != tt.want || attribute(it, "GSI2PK") != "failed#89fa8f8" {
				t.Errorf("search is now %s", it.Raw())
			}
			// Delivered again, the record finds it over.
			_, err = handle(t, db, tt.rec, "2019-12-30T19:32:21Z")
			var skip *sluice.SkipError
			if !errors.As(err, &skip) {
				t.Errorf("again: %v", err)
			}
		})
	}
}

func TestUnroutedChanges(t *testing.T) {
	fx := Fixtures()
	r, err := NewRouter(Deps{Store: newDB(fx...), Send: ignore, Watch: ignore, Notify: ignore})
	if err != nil {
		t.Fatal(err)
	}
	for name, rec := range map[string]sluice.Record{
		"contact":                 inserted(fx[contact]),
		"method":                  inserted(fx[email]),
		"attempt put":             inserted(fx[attempt]),
		"attempt put as made":     inserted(fx[attempted]),
		"attempt made once more":  change(fx[attempted], edit(fx[attempted], "19:32:20Z", "19:33:00Z")),
		"search changed":          change(fx[search], edit(fx[search], "I-1", "I-2")),
		"search over, changed":    change(fx[canceled], edit(fx[canceled], "12:14:01", "12:14:02")),
		"search changed, active":  change(fx[search], edit(fx[search], "I-1", "I-3")),
		"method removed":          streamtest.Remove("manhunt", fx[email]),
		"attempt removed, as TTL": streamtest.Expire("manhunt", fx[attempted]),
	} {
		if routes, err := r.Match(nil, &rec); len(routes) != 0 || err != nil {
			t.Errorf("%s: takes %d routes, %v", name, len(routes), err)
		}
	}
	made := streamtest.Modify("manhunt", fx[attempt], fx[attempted], streamtest.WithOrigin(sluice.Redriven))
	if routes, err := r.Match(nil, &made); len(routes) != 2 || err != nil {
		t.Errorf("redriven: takes %d routes, %v", len(routes), err)
	}
}

func ignore(context.Context, sluice.Message) error { return nil }

// A contact of another domain counts as missing, and so does an item that is no
// contact.
func TestContactOfADomain(t *testing.T) {
	fx := Fixtures()
	table := NewTable(newDB(append(fx[:search:search], edit(fx[contact], "89fa8f8", "c2", `"GSI1PK":{"S":"db3280c"},`, ""), edit(fx[contact], "89fa8f8", "g1", `"entityType":{"S":"contact"}`, `"entityType":{"S":"group"}`))...), "manhunt")
	for _, tt := range []struct {
		domain, id string
		want       bool
	}{
		{"db3280c", "89fa8f8", true}, {"6f7ad1b", "89fa8f8", false}, {"", "89fa8f8", false},
		{"", "c2", false}, {"db3280c", "g1", false}, {"db3280c", "nobody", false},
	} {
		c, found, err := table.Contact(t.Context(), tt.domain, tt.id)
		if err != nil || found != tt.want || found && c.Name != "Zavier Curtis" {
			t.Errorf("%q, %s: %+v, %v, %v", tt.domain, tt.id, c, found, err)
		}
		methods, _, err := table.Methods(t.Context(), tt.domain, tt.id, Page{})
		if err != nil || tt.want != (len(methods) == 2) || !tt.want && methods != nil {
			t.Errorf("methods of %q, %s: %+v, %v", tt.domain, tt.id, methods, err)
		}
	}
}

func TestStoreErrorsAreRetried(t *testing.T) {
	fx := Fixtures()
	db := newDB(fx...)
	down := errors.New("throttled")
	db.ReadFault = func() error { return down }
	sent, err := handle(t, db, inserted(fx[search]), "2019-12-30T19:32:15Z")
	if len(sent) != 0 || !errors.Is(err, down) || sluice.IsPermanent(err) {
		t.Errorf("sent %d messages, %v", len(sent), err)
	}
}

func TestNewRouterNamesWhatIsMissing(t *testing.T) {
	if _, err := NewRouter(Deps{Store: newDB()}); err == nil || !strings.Contains(err.Error(), "Deps.Watch: want all three") {
		t.Error(err)
	}
}

func TestFixtures(t *testing.T) {
	fx := Fixtures()
	if len(fx) != attempted+1 || bytes.Count(fixtures, []byte("\n")) != len(fx) {
		t.Fatalf("%d fixtures", len(fx))
	}
	var types []string
	for _, it := range fx {
		types = append(types, attribute(it, "entityType"))
	}
	if want := strings.Fields("contact contactMethod contactMethod search search searchAttempt searchAttempt"); !slices.Equal(types, want) {
		t.Errorf("types %q, want %q", types, want)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("a271244#0")))[:7]; attribute(fx[attempt], "SK") != want {
		t.Errorf("attempt id %s, want %s", attribute(fx[attempt], "SK"), want)
	}
}
