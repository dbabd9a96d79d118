package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/streamtest"
)

const number = "977119800000398701107540001"

const ada = `{"pk":"o-1","entityType":"order","name":"Ada \"the\" 1st","n":3,"at":{"city":"Köln"}}`

func order(t *testing.T, event string) sluice.Record {
	t.Helper()
	o := []streamtest.RecordOption{streamtest.WithKeys("pk"), streamtest.WithSequence(number), streamtest.WithTime(time.Unix(1700000000, 0))}
	switch event {
	case "INSERT":
		return streamtest.Insert("orders", plain(ada), o...)
	case "REMOVE":
		return streamtest.Remove("orders", plain(ada), o...)
	}
	return streamtest.Modify("orders", plain(`{"pk":"o-1","entityType":"order","n":2}`), plain(ada), o...)
}

func TestSendBodies(t *testing.T) {
	for _, tt := range []struct{ body, event, want string }{
		{"", "INSERT", `{"event":"INSERT","table":"orders","sequence":"` + number + `","keys":{"pk":"o-1"},"new":` + ada + `}`},
		{"record", "MODIFY", `{"event":"MODIFY","table":"orders","sequence":"` + number + `","keys":{"pk":"o-1"},"new":` + ada + `,"old":{"pk":"o-1","entityType":"order","n":2}}`},
		{"record", "REMOVE", `{"event":"REMOVE","table":"orders","sequence":"` + number + `","keys":{"pk":"o-1"},"old":` + ada + `}`},
		{"new", "MODIFY", ada},
		{"old", "MODIFY", `{"pk":"o-1","entityType":"order","n":2}`},
		{"keys", "REMOVE", `{"pk":"o-1"}`},
		{`{"id":"{pk}","hello":"Dear {name|lower},","n":{n},"at":{at},"no":{no},"x":{"y":[true,{n}]},"empty":{}}`, "INSERT",
			`{"id":"o-1","hello":"Dear ada \"the\" 1st,","n":3,"at":{"city":"Köln"},"no":null,"x":{"y":[true,3]},"empty":{}}`},
		{`{"up":{name|lower}}`, "INSERT", `{"up":"ada \"the\" 1st"}`},
		{`["{$event}", "{$table}/{$sequence}", {$created}, {$old.n}, {$new.n}, "{at.city}"]`, "MODIFY",
			`["MODIFY", "orders/` + number + `", "2023-11-14T22:13:20Z", 2, 3, "Köln"]`},
		{`{"braces":"\\{pk\\} is {pk}","none":"a}b"}`, "INSERT", `{"braces":"{pk} is o-1","none":"a}b"}`},
		{`"{name}"`, "INSERT", `"Ada \"the\" 1st"`},
		{` "{n} of {pk}" `, "INSERT", ` "3 of o-1" `},
		{`"{name}" and "{pk}"`, "INSERT", `"Ada "the" 1st" and "o-1"`}, // a text, not JSON
		{"{pk} is gone from {$table}", "REMOVE", "o-1 is gone from orders"},
	} {
		w := newWorld()
		app := w.build(t, one(Route{Send: &Send{To: "jobs", Body: tt.body}}))
		rec := order(t, tt.event)
		if err := app.Router.Dispatch(t.Context(), &rec); err != nil {
			t.Errorf("%s: %v", tt.body, err)
			continue
		}
		if len(w.sent) != 1 || w.sent[0].Body != tt.want || w.sent[0].Queue != "jobs" || w.sent[0].GroupID+w.sent[0].DeduplicationID != "" {
			t.Errorf("%s: %+v\nwant %s", tt.body, w.sent, tt.want)
		}
		effects, err := app.Routes[0].Explain(t.Context(), &rec)
		if want := (Effect{Does: "send to queue jobs", Sink: "jobs", Target: "jobs", Detail: tt.want}); err != nil || len(effects) != 1 || effects[0] != want || len(w.sent) != 1 {
			t.Errorf("%+v, %v", effects, err)
		}
	}
}

// An item may have characters that SQS refuses.
func TestSendEscapes(t *testing.T) {
	w := newWorld()
	app := w.build(t, one(Route{Send: &Send{To: "jobs", Body: "new"}}))
	rec := streamtest.Insert("orders", plain("{\"pk\":\"a\uFFFFb\\u0000\"}"))
	if err := app.Router.Dispatch(t.Context(), &rec); err != nil || len(w.sent) != 1 || w.sent[0].Body != `{"pk":"a\uffffb\u0000"}` {
		t.Errorf("%+v, %v", w.sent, err)
	}
}

func TestSendToFIFO(t *testing.T) {
	long := strings.Repeat("x", 129)
	for _, tt := range []struct{ pk, group, dedupe, wantGroup, wantDedupe string }{
		{"o-1", "", "", "o-1", "EVENT/tell"},
		{"o-1", "{entityType}", "{pk}#{$sequence}", "order", "o-1#" + number},
		{"o 1", "", "{pk}", "sha256:", "sha256:"},
		{long, "", "{pk}", "sha256:", "sha256:"},
	} {
		w := newWorld()
		app := w.build(t, one(Route{Name: "tell", Send: &Send{To: "fifo", Group: tt.group, Dedupe: tt.dedupe}}))
		rec := streamtest.Insert("orders", map[string]any{"pk": tt.pk, "entityType": "order"}, streamtest.WithSequence(number), streamtest.WithKeys("pk"))
		for range 2 { // a repeated record makes the same message
			if err := app.Router.Dispatch(t.Context(), &rec); err != nil {
				t.Fatal(err)
			}
		}
		m := w.sent[0]
		want := strings.Replace(tt.wantDedupe, "EVENT", rec.EventID, 1)
		if !strings.HasPrefix(m.GroupID, tt.wantGroup) || !strings.HasPrefix(m.DeduplicationID, want) || len(m.GroupID) > 128 || len(m.DeduplicationID) > 128 {
			t.Errorf("%+v", m)
		}
		if again := w.sent[1]; again.GroupID != m.GroupID || again.DeduplicationID != m.DeduplicationID || again.Body != m.Body {
			t.Errorf("%+v\n%+v", m, again)
		}
	}
}

// Messages of two routes, or of two items, are not duplicates.
func TestSendDedupesNothingElse(t *testing.T) {
	w := newWorld()
	c := one(Route{Name: "a", Send: &Send{To: "fifo"}})
	c.Routes = append(c.Routes, Route{Name: "b", On: Strings{"*#*"}, Send: &Send{To: "fifo"}})
	app := w.build(t, c)
	recs := []sluice.Record{order(t, "INSERT"), order(t, "MODIFY")}
	recs[1].EventID = "another"
	seen := map[string]bool{}
	for i := range recs {
		if err := app.Router.Dispatch(t.Context(), &recs[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range w.sent {
		seen[m.DeduplicationID] = true
	}
	if len(seen) != 4 {
		t.Errorf("%v", seen)
	}
}

func TestSendFails(t *testing.T) {
	w := newWorld()
	down := errors.New("down")
	app := w.build(t, one(Route{Name: "tell", Attempts: 2, Send: &Send{To: "jobs", Body: "for {missing}"}}))
	result := streamtest.Run(t.Context(), app.Router, order(t, "INSERT"))
	if o := result.Outcomes; len(o) != 1 || o[0].Result != flow.Parked || o[0].Calls != 1 || !strings.Contains(o[0].Err.Error(), `no attribute "missing"`) {
		t.Errorf("%v", result)
	}
	w.fail = down
	app = w.build(t, one(Route{Name: "tell", Send: &Send{To: "jobs", Delay: Duration(10 * time.Second)}}))
	rec := order(t, "INSERT")
	if err := app.Router.Dispatch(t.Context(), &rec); !errors.Is(err, down) || sluice.IsPermanent(err) {
		t.Error(err)
	}
	if err := app.Router.Dispatch(t.Context(), &rec); err != nil || len(w.sent) != 1 || w.sent[0].Delay != 10*time.Second {
		t.Errorf("%v, %+v", err, w.sent)
	}
}
