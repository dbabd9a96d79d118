package manhunt

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

const noticeBody = `{"kind":"manhunt.resolved","searchId":"a271244","from":"active","to":"%s","dedupeKey":"a271244#%[1]s"}`

// ended is a search that was active.
func ended(it sluice.Item, status string, e Ending) sluice.Item {
	it = edit(it, `"status":{"S":"active"}`, `"status":{"S":"`+status+`"}`, "active#", status+"#")
	if e.Why != "" {
		it = it.With(item.String("resolution", e.Why))
	}
	if e.By != "" {
		it = it.With(item.String("resolvedBy", e.By))
	}
	if !e.At.IsZero() {
		it = it.With(item.String("resolvedDatetime", e.At.Format(time.RFC3339)))
	}
	return it
}

// byAda is how somebody cancels.
var byAda = Ending{By: "ada", At: at("19:40:00"), Why: "false alarm"}

func answered(text string) sluice.Item {
	return edit(Fixtures()[attempted], `"step"`, `"response":{"S":"`+text+`"},"step"`)
}

func TestResolve(t *testing.T) {
	fx := Fixtures()
	for _, tt := range []struct {
		name        string
		search, now sluice.Item
		new         sluice.Item
		want        string
	}{
		{"answered", fx[search], ended(fx[search], "successful", Ending{By: "89fa8f8", At: at("19:40:00"), Why: "yes"}), answered("yes"), "<nil>"},
		{"answered with nothing", fx[search], ended(fx[search], "successful", Ending{By: "89fa8f8", At: at("19:40:00"), Why: "answered"}), answered(""), "<nil>"},
		{"answered by another", fx[search], ended(fx[search], "successful", Ending{By: "bob", At: at("19:39:00"), Why: "yes"}),
			answered("yes").With(item.String("respondedBy", "bob"), item.String("respondedDatetime", "2019-12-30T19:39:00Z")), "<nil>"},
		{"answered at no time", fx[search], ended(fx[search], "successful", Ending{By: "89fa8f8", At: at("19:40:00"), Why: "yes"}),
			answered("yes").With(item.String("respondedDatetime", "just now")), "<nil>"},
		{"over already", ended(fx[search], "successful", Ending{Why: "no"}), ended(fx[search], "successful", Ending{Why: "no"}), answered("yes"), "skipped: search is over"},
		{"canceled", ended(fx[search], "canceled", Ending{}), ended(fx[search], "canceled", Ending{}), answered("yes"), "skipped: search is over"},
		{"search gone", fx[canceled], sluice.Item{}, answered("yes"), "skipped: search is over"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := newDB(tt.search)
			sent, err := handle(t, db, change(fx[attempted], tt.new), "2019-12-30T19:40:00Z")
			if fmt.Sprint(err) != tt.want || len(sent) != 0 {
				t.Errorf("%v, sent %d messages", err, len(sent))
			}
			if it := searchItem(t, db, "a271244"); !it.Equal(tt.now) {
				t.Errorf("search is now %s", it.Raw())
			}
		})
	}
	for name, rec := range map[string]sluice.Record{
		"answer changed": change(answered("yes"), answered("no")),
		"answer put":     inserted(answered("yes")),
	} {
		db := newDB(fx[search])
		if _, err := handle(t, db, rec, "2019-12-30T19:40:00Z"); err != nil || !searchItem(t, db, "a271244").Equal(fx[search]) {
			t.Errorf("%s: %v, %s", name, err, searchItem(t, db, "a271244").Raw())
		}
	}
}

// An attempt that is made and answered at once needs no next step.
func TestAnsweredAtOnce(t *testing.T) {
	fx := Fixtures()
	db := newDB(fx[:attempt]...)
	sent, err := handle(t, db, change(fx[attempt], answered("yes")), "2019-12-30T19:40:00Z")
	if err != nil || len(sent) != 0 || attribute(searchItem(t, db, "a271244"), "status") != Successful {
		t.Errorf("%v, sent %v", err, sent)
	}
}

// An end whose reason nobody knows does not keep that of an end before it.
func TestEndedAgain(t *testing.T) {
	// Somebody has set the status alone.
	db := newDB(Fixtures()[search].With(item.String("resolution", "bad_search"), item.String("resolvedBy", "manhunt"), item.String("resolvedDatetime", "2019-12-30T19:40:00Z")))
	if canceled, err := NewTable(db, "manhunt").Cancel(t.Context(), "a271244", Ending{By: "ada"}); !canceled || err != nil {
		t.Fatal(canceled, err)
	}
	if it := searchItem(t, db, "a271244"); !it.Equal(ended(Fixtures()[search], Canceled, Ending{By: "ada"})) {
		t.Errorf("search is now %s", it.Raw())
	}
}

func TestNotify(t *testing.T) {
	fx := Fixtures()
	for _, status := range []string{Successful, Failed, Canceled} {
		over := ended(fx[search], status, Ending{Why: "x"})
		for range 2 {
			sent, err := handle(t, newDB(over), change(fx[search], over), "2019-12-30T19:40:00Z")
			if err != nil || len(sent) != 1 || sent[0].Body != fmt.Sprintf(noticeBody, status) || sent[0].Delay != 0 || sent[0].Attributes["dedupeKey"].Value != "a271244#"+status {
				t.Errorf("%s: %v, sent %+v", status, err, sent)
			}
		}
	}
	over := ended(fx[search], Successful, Ending{Why: "x"})
	sent, err := handle(t, newDB(over), change(over, ended(fx[search], Failed, Ending{Why: "x"})), "2019-12-30T19:40:00Z")
	if err != nil || len(sent) != 0 {
		t.Errorf("over before: %v, sent %v", err, sent)
	}
}

func TestCancelAndAnswer(t *testing.T) {
	fx := Fixtures()
	id := AttemptID("a271244", 0, 0)
	db := newDB(fx[search], fx[canceled], edit(fx[attempted], "1004c16", id))
	table := NewTable(db, "manhunt")
	for i, want := range []bool{true, false} {
		if ok, err := table.Answer(t.Context(), "a271244", 0, fmt.Sprint("answer ", i)); ok != want || err != nil {
			t.Errorf("answer %d: %v, %v", i, ok, err)
		}
		if ok, err := table.Cancel(t.Context(), "a271244", byAda); ok != want || err != nil {
			t.Errorf("cancel %d: %v, %v", i, ok, err)
		}
	}
	if it := searchItem(t, db, "a271244"); !it.Equal(ended(fx[search], Canceled, byAda)) {
		t.Errorf("search is now %s", it.Raw())
	}
	_, attempts, _, err := table.SearchWithAttempts(t.Context(), "a271244")
	if err != nil || len(attempts) != 1 || attempts[0].Response != "answer 0" {
		t.Errorf("%+v, %v", attempts, err)
	}
	for _, id := range []string{"2ad6a19", "gone"} {
		if ok, err := table.Cancel(t.Context(), id, Ending{}); ok || err != nil {
			t.Errorf("cancel %s: %v, %v", id, ok, err)
		}
		if ok, err := table.Answer(t.Context(), id, 0, "yes"); ok || err != nil {
			t.Errorf("answer to %s: %v, %v", id, ok, err)
		}
	}
	if it := searchItem(t, db, "gone"); it.Exists() {
		t.Error("an update has made a search")
	}
	// Two processes have seen the search active. The second one changes nothing.
	if ok, err := table.end(t.Context(), "a271244", "89fa8f8", Failed, Ending{Why: "late"}); ok || err != nil {
		t.Errorf("ended again: %v, %v", ok, err)
	}
	if it := searchItem(t, db, "a271244"); !it.Equal(ended(fx[search], Canceled, byAda)) {
		t.Errorf("search is now %s", it.Raw())
	}
	down := errors.New("throttled")
	db.Fault = func(bool, []dynamo.Op) error { return down }
	if _, err := table.end(t.Context(), "a271244", "89fa8f8", Failed, Ending{}); !errors.Is(err, down) {
		t.Error(err)
	}
}

func TestAttemptIDs(t *testing.T) {
	for step, want := range []string{"1004c16", "6f08fe0"} {
		if id := AttemptID("a271244", 0, int64(step)); len(id) != 16 || !strings.HasPrefix(id, want) {
			t.Errorf("step %d: %s, want 16 digits that begin with %s", step, id, want)
		}
	}
}

func rows(db interface {
	Items(string) []sluice.Item
}) string {
	var all []string
	for _, it := range db.Items("manhunt") {
		all = append(all, attribute(it, "PK")+"/"+attribute(it, "SK")+" "+attribute(it, "status"))
	}
	return strings.Join(all, "; ")
}

func TestSearchRemoved(t *testing.T) {
	fx := Fixtures()
	removed := streamtest.Remove("manhunt", fx[search])
	other := edit(fx[attempted], "a271244", "b000001")
	db := newDB(fx[attempted], edit(fx[attempted], "1004c16", "6f08fe0"), other, fx[contact])
	for range 2 {
		if _, err := handle(t, db, removed, "2019-12-30T19:40:00Z"); err != nil || rows(db) != "89fa8f8/contact ; b000001/1004c16 " {
			t.Errorf("%v; left: %s", err, rows(db))
		}
	}
	db = newDB(fx[search], fx[attempted])
	if _, err := handle(t, db, removed, "2019-12-30T19:40:00Z"); fmt.Sprint(err) != "skipped: parent exists again" || len(db.Items("manhunt")) != 2 {
		t.Errorf("%v; left: %s", err, rows(db))
	}
}

func TestContactRemoved(t *testing.T) {
	fx := Fixtures()
	removed := streamtest.Remove("manhunt", fx[contact])
	items := []sluice.Item{fx[email], fx[call], fx[search], searchAt("s2", "2019-12-31T00:00:00Z", "failed"), searchAt("s3", "2019-12-29T08:00:00Z", "active"), fx[canceled], fx[attempted]}
	db := newDB(append(items, edit(fx[email], "contactMethod", "note", "538235b", "note"))...)
	for range 2 {
		_, err := handle(t, db, removed, "2019-12-30T19:40:00Z")
		if want := "2ad6a19/search canceled; 89fa8f8/note ; a271244/1004c16 ; a271244/search failed; s2/search failed; s3/search failed"; err != nil || rows(db) != want {
			t.Errorf("%v; left: %s", err, rows(db))
		}
	}
	if it := searchItem(t, db, "a271244"); !it.Equal(ended(fx[search], Failed, Ending{By: "manhunt", At: at("19:40:00"), Why: contactNotFound})) {
		t.Errorf("search is now %s", it.Raw())
	}

	db = newDB(append(items, fx[contact])...)
	if _, err := handle(t, db, removed, "2019-12-30T19:40:00Z"); fmt.Sprint(err) != "skipped: parent exists again" || len(db.Items("manhunt")) != len(items)+1 {
		t.Errorf("%v; left: %s", err, rows(db))
	}

	// It comes back between the look and the deletion.
	db = newDB(items...)
	r, err := NewRouter(Deps{Store: &comesBack{Store: db, t: t}, Send: ignore, Watch: ignore})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Dispatch(t.Context(), &removed); fmt.Sprint(err) != "skipped: parent exists again" || len(db.Items("manhunt")) != len(items)+1 {
		t.Errorf("%v; left: %s", err, rows(db))
	}
}
