package letters

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/recordtest"
)

func record(key string, n int) *sluice.Record {
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"` + key + `"}}`, Sequence: recordtest.Sequence(n), Shard: "shard"})
	return &rec
}

func failure(route string) sluice.Failure {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	return sluice.Failure{Route: route, Attempts: 8, First: errors.New("first <error>"), FirstAt: at, Last: errors.New("last error"), LastAt: at.Add(time.Minute)}
}

// parked returns the entry of rec.
func parked(t *testing.T, rec *sluice.Record) (e deadletter.Entry) {
	t.Helper()
	s := deadletter.Sender(func(_ context.Context, sent deadletter.Entry, _ []byte) error { e = sent; return nil })
	if err := s.Park(t.Context(), rec, failure("r")); err != nil {
		t.Fatal(err)
	}
	return e
}

func parkedGap(t *testing.T) (e deadletter.Entry) {
	t.Helper()
	s := deadletter.Sender(func(_ context.Context, sent deadletter.Entry, _ []byte) error { e = sent; return nil })
	if err := s.ParkGap(t.Context(), &sluice.Gap{Table: "test", StreamARN: recordtest.ARN, ShardID: "s", After: recordtest.Sequence(1), Found: time.Now()}); err != nil {
		t.Fatal(err)
	}
	return e
}

// byReference returns an entry that was too large for its place.
func byReference(t *testing.T) deadletter.Entry {
	t.Helper()
	rng, text := rand.New(rand.NewPCG(1, 2)), make([]byte, 100_000)
	for i := range text { // compresses badly
		text[i] = 'A' + byte(rng.IntN(26))
	}
	rec := recordtest.New(recordtest.Spec{
		Keys: `{"pk":{"S":"a"}}`, New: `{"pk":{"S":"a"},"x":{"S":"` + string(text) + `"}}`, Sequence: recordtest.Sequence(10), Shard: "shard",
	})
	e := parked(t, &rec)
	data, err := e.Fit(16 << 10)
	if err == nil {
		e, err = deadletter.Parse(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A service's words about a refused value are shown only with payloads.
func TestOutlineKeepsReasonsBack(t *testing.T) {
	e := deadletter.Entry{ID: "x", Raw: []byte("{}"), Last: deadletter.Fault{Error: "refused", Details: []map[string]string{{"status": "400", "reason": "Preview of field's value: 'secret'"}}}}
	if got := OutlineOf(&e, false).Last.Details; len(got) != 1 || got[0]["reason"] != "" || got[0]["status"] != "400" {
		t.Errorf("without payloads: %v", got)
	}
	if got := OutlineOf(&e, true).Last.Details; len(got) != 1 || got[0]["reason"] == "" {
		t.Errorf("with payloads: %v", got)
	}
	if e.Last.Details[0]["reason"] == "" {
		t.Error("the entry itself has lost it")
	}
}

// An outline says all that an entry does.
func TestOutlineIsWhole(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := deadletter.Entry{
		ID: "id", Route: "route", Table: "table", EventID: "event", EventName: sluice.Modify, StreamARN: "arn", ShardID: "shard", Sequence: recordtest.Sequence(5),
		Origin: sluice.Backfilled, Attempts: 3, Redrives: 2, ParkedAt: at, First: deadletter.Fault{At: at, Error: "first"}, Last: deadletter.Fault{At: at.Add(1), Error: "last"},
		Raw: record("a", 10).Raw(),
	}
	o := OutlineOf(&e, true)
	if o.ID != "id" || o.Kind != "record" || o.Route != "route" || o.Table != "table" || o.EventID != "event" || o.EventName != "MODIFY" || o.StreamARN != "arn" ||
		o.ShardID != "shard" || o.Sequence != string(recordtest.Sequence(5)) || o.Origin != sluice.Backfilled.String() || o.Attempts != 3 || o.Redrives != 2 || !o.ParkedAt.Equal(at) ||
		!o.Created.Equal(record("a", 10).Created) || o.Created.IsZero() || o.First.Error != "first" || o.Last.Error != "last" || !o.Last.At.Equal(at.Add(1)) || o.Bytes != len(e.Raw) || string(o.Record) != string(e.Raw) || o.Base64 != nil {
		t.Errorf("%+v", o)
	}
	e.Raw = []byte("{\"a\":\"\xff\"}")
	if o := OutlineOf(&e, true); string(o.Base64) != string(e.Raw) || o.Record != nil || o.Keys != nil {
		t.Errorf("of no text: %+v", o)
	}
	if o := OutlineOf(&e, false); o.Base64 != nil || o.Record != nil {
		t.Errorf("without the record: %+v", o)
	}
}

func TestOutline(t *testing.T) {
	rec := record("a", 10)
	e := parked(t, rec)
	if o := OutlineOf(&e, false); o.Record != nil || o.Base64 != nil || string(o.Keys) != `{"pk":"a"}` || o.Kind != "record" || o.Bytes != len(rec.Raw()) || o.First.Error == "" {
		t.Errorf("%+v", o)
	}
	if o := OutlineOf(&e, true); string(o.Record) != string(rec.Raw()) {
		t.Errorf("%+v", o)
	}
	byRef := byReference(t)
	if o := OutlineOf(&byRef, true); o.Kind != "reference" || o.Bytes < 100_000 || o.Record != nil || string(o.Keys) != `{"pk":"a"}` {
		t.Errorf("%+v", o)
	}
	g := parkedGap(t)
	if o := OutlineOf(&g, true); o.Kind != "gap" || o.Gap == "" || o.Record != nil || o.Base64 != nil {
		t.Errorf("%+v", o)
	}
}
