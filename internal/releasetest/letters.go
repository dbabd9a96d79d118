package releasetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// App is the application of all that is stored.
const App = "orders"

// detailed is an error with details, as that of a document that could not be written.
type detailed struct{}

func (detailed) Error() string { return "refused" }
func (detailed) Details() map[string]string {
	return map[string]string{"index": "orders", "status": "400"}
}

// parked are failures of a route; "" is of all routes.
var parked = []struct {
	route string
	keys  string // of the item, if known
	event []byte // as received
}{
	{"search", `{"pk":{"S":"o-1"}}`, fractional(recordtest.Spec{Keys: `{"pk":{"S":"o-1"}}`, New: `{"pk":{"S":"o-1"},"total":{"N":"250"}}`, Sequence: recordtest.Sequence(1), ID: "one"})},
	{"search", `{"pk":{"S":"o-2"}}`, fractional(recordtest.Spec{Keys: `{"pk":{"S":"o-2"}}`, New: `{"pk":{"S":"o-2"},"note":{"S":"` + strings.Repeat("long ", 4<<10) + `"}}`, Sequence: recordtest.Sequence(2), ID: "two"})},
	{"", "", []byte("no \xff JSON")},
}

// fractional is a record with a fraction of its second, as the stored ones have it.
func fractional(s recordtest.Spec) []byte {
	return bytes.Replace(recordtest.JSON(s), []byte(`DateTime":1704164645,`), []byte(`DateTime":1704164645.000000000,`), 1)
}

// gap is what a shard lost.
var gap = sluice.Gap{Table: "test", StreamARN: recordtest.ARN, ShardID: "shardId-1", After: recordtest.Sequence(5), Before: recordtest.Sequence(8)}

// recordOf is a record as a daemon reads it.
func recordOf(event []byte) *sluice.Record {
	rec := sluice.DecodeRecord(event)
	rec.Table, rec.StreamARN, rec.ShardID = "test", recordtest.ARN, "shardId-1"
	return rec
}

// Park parks letters.
func Park(t *testing.T, park func(context.Context, *sluice.Record, sluice.Failure) error) {
	t.Helper()
	for _, p := range parked {
		if err := park(t.Context(), recordOf(p.event), sluice.Failure{Route: p.route, Attempts: 8, First: errors.New("first cause"), Last: detailed{}}); err != nil {
			t.Fatal(err)
		}
	}
}

// CheckLetters expects the parked letters and so many gaps, and runs those of a route.
func CheckLetters(t *testing.T, letters state.Letters, gaps int) {
	t.Helper()
	box := deadletter.NewBox(letters, App)
	found := make(map[string]deadletter.Entry)
	have := 0
	if err := box.All(t.Context(), deadletter.Filter{}, func(e deadletter.Entry) error {
		if e.Gap != nil {
			if have++; *e.Gap != gap {
				t.Errorf("gap %+v, want %+v", *e.Gap, gap)
			}
			return nil
		}
		found[string(e.Raw)] = e
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if have != gaps || len(found) != len(parked) {
		t.Fatalf("%d gaps and %d letters, want %d and %d", have, len(found), gaps, len(parked))
	}
	for _, p := range parked {
		e, ok := found[string(p.event)]
		rec, want := e.Record(), recordOf(p.event)
		if !ok || e.Route != p.route || e.Attempts != 8 || e.First.Error != "first cause" || e.Last.Error != "refused" || len(e.Last.Details) != 1 || e.Last.Details[0]["status"] != "400" ||
			e.ParkedAt.IsZero() || e.Unverified != "" || rec.Sequence != want.Sequence || rec.EventID != want.EventID || rec.Table != "test" || rec.StreamARN != want.StreamARN || rec.ShardID != want.ShardID {
			t.Errorf("letter %+v", e)
		}
		// A daemon that parks it again replaces it, and parks later changes of the item, too.
		if box.ID(want, p.route) != e.ID {
			t.Errorf("the letter of %s has the id %s, want %s", want.EventID, e.ID, box.ID(want, p.route))
		}
		if p.keys == "" {
			continue
		}
		later := recordOf(recordtest.JSON(recordtest.Spec{Keys: p.keys, Sequence: recordtest.Sequence(29)}))
		if holds, err := box.Holds(t.Context(), later, p.route); err != nil || !holds {
			t.Errorf("the item of %s is held: %v, %v", want.EventID, holds, err)
		}
	}
	m := router.New()
	ran := 0
	m.Handle("*#*", func(context.Context, *sluice.Record) error { ran++; return nil }, router.Name("search"), router.Redrive())
	report, err := box.RedriveAll(t.Context(), m, deadletter.Filter{Route: "search"}, deadletter.How{})
	if err != nil || report.Done != 2 || ran != 2 {
		t.Errorf("redrive: %+v, %v, %d ran", report, err, ran)
	}
}
