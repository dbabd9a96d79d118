package deadletter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/streamtest"
)

func failure(route string) sluice.Failure {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	return sluice.Failure{
		Route: route, Attempts: 8,
		First: errors.New("first <error>"), FirstAt: at,
		Last: errors.New("last error"), LastAt: at.Add(time.Minute),
	}
}

// undecodable is a record with a position and a broken image.
func undecodable(t *testing.T, raw string) sluice.Record {
	t.Helper()
	page, err := sluice.DecodeGetRecords([]byte(`{"Records":[`+raw+`]}`), sluice.Source{StreamARN: recordtest.ARN, ShardID: "shard"})
	if err != nil {
		t.Fatal(err)
	}
	if page.Records[0].Err() == nil {
		t.Fatal("the record can be decoded")
	}
	return page.Records[0]
}

func TestEntryRoundTrip(t *testing.T) {
	poisoned := undecodable(t, `{"eventID":"e9","eventName":"INSERT","dynamodb":{"Keys":{"pk":{"S":"a"}},"NewImage":{"n":{"N":"many"}},"SequenceNumber":"100000000003498069978"}}`)
	for name, rec := range map[string]sluice.Record{
		"from Lambda":   recordtest.New(recordtest.Spec{New: `{"pk":{"S":"a"},"t":{"S":"<&>  "}}`}),
		"from a shard":  recordtest.New(recordtest.Spec{Shard: "shardId-1", Sequence: "977119800000398701107540001"}),
		"TTL deletion":  recordtest.New(recordtest.Spec{Event: sluice.Remove, TTL: true}),
		"undecodable":   poisoned,
		"without an id": {Sequence: recordtest.Sequence(5)},
	} {
		t.Run(name, func(t *testing.T) {
			want := newEntry(&rec, failure("a route"), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			data, err := want.Append([]byte("before"))
			if err != nil {
				t.Fatal(err)
			}
			data = bytes.TrimPrefix(data, []byte("before"))
			if bytes.ContainsRune(data, '\n') || !json.Valid(data) {
				t.Fatalf("not one line of JSON: %q", data)
			}
			got, err := Parse(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
			back := got.Record()
			if back.Origin != sluice.Redriven || back.StreamARN != rec.StreamARN || back.Table != rec.Table || back.ShardID != rec.ShardID {
				t.Errorf("Record() = %+v", back)
			}
			if rec.Err() == nil && rec.Raw() != nil && (back.Err() != nil || back.Sequence != rec.Sequence || !back.Keys.Equal(rec.Keys) || !back.New.Equal(rec.New)) {
				t.Errorf("Record() = %+v, want %+v", back, rec)
			}
		})
	}
}

// A dead letter keeps the bytes of its record, whatever they are.
func TestRecordIsKeptWhole(t *testing.T) {
	for name, raw := range map[string]string{
		"JSON":          `{"eventID":"<&>","n":1e400,"a":[1,2],"a":null,"u":"` + "\u2028" + `"}`,
		"no JSON":       `{"eventID":`,
		"noncharacters": "{\"u\":\"\uFFFE\uFFFF\"}", // which SQS refuses
		"invalid UTF-8": "{\"x\":\"\xff\"}",
		"binary":        "\x00\x01\xfe",
		"a string":      `"text"`,
		"null":          `null`,
	} {
		t.Run(name, func(t *testing.T) {
			rec := sluice.DecodeRecord([]byte(raw))
			e := newEntry(rec, failure(""), time.Now())
			data, err := e.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse(data)
			if err != nil {
				t.Fatalf("%v in %s", err, data)
			}
			if hasNoncharacters(data) {
				t.Errorf("SQS refuses %q", data)
			}
			if string(got.Raw) != raw {
				t.Errorf("%q came back as %q", raw, got.Raw)
			}
		})
	}
}

// An item in place of a change keeps that one's sequence number, which its text
// lacks: without it a projection would take it for older than the document.
func TestItemInPlaceOfAChangeIsParked(t *testing.T) {
	for _, at := range []sluice.Sequence{recordtest.Sequence(7), ""} { // the latter a backfill has read
		rec := streamtest.Snapshot("t", map[string]any{"pk": "a"})
		rec.Sequence = at
		var got *sluice.Record
		sender := Sender(func(_ context.Context, _ Entry, data []byte) error {
			e, err := Parse(data)
			got = e.Record()
			return err
		})
		if err := sender.Park(t.Context(), &rec, failure("r")); err != nil {
			t.Fatal(err)
		}
		if got.Sequence != at || got.EventName != sluice.Snapshot || got.Err() != nil {
			t.Errorf("%s %q, %v: want SNAPSHOT %q", got.EventName, got.Sequence, got.Err(), at)
		}
	}
}

func TestIDs(t *testing.T) {
	rec := func(s recordtest.Spec) *sluice.Record { r := recordtest.New(s); return &r }
	base := recordtest.Spec{Sequence: recordtest.Sequence(100), ID: "e1"}
	shard := base
	shard.Shard = "shardId-1"
	first := idOf(rec(base), "r")
	if idOf(rec(base), "r") != first || idOf(rec(shard), "r") != first {
		t.Error("the same record and route have two ids")
	}
	other := base
	other.ARN = strings.Replace(recordtest.ARN, "2024", "2025", 1)
	another := base
	another.ID = "e2"
	noID := sluice.DecodeRecord([]byte("x"))
	noID2 := sluice.DecodeRecord([]byte("y"))
	ids := []string{idOf(rec(base), "r"), idOf(rec(base), "s"), idOf(rec(base), ""), idOf(rec(other), "r"), idOf(rec(another), "r"), idOf(noID, ""), idOf(noID2, "")}
	for i, a := range ids {
		if slices.Contains(ids[:i], a) {
			t.Errorf("id %d is that of another record or route: %v", i, ids)
		}
	}
	var order []string // Valid numbers have 1 to 40 digits.
	for _, seq := range []sluice.Sequence{"9", "10", "000000000000000000011", "990000000000000000000", "1000000000000000000000", "67000000000049711534276", "8935985800002395190001559217"} {
		order = append(order, idOf(rec(recordtest.Spec{Sequence: seq}), "r"))
	}
	if !slices.IsSorted(order) {
		t.Errorf("ids are not in the order of the changes: %v", order)
	}
}

func TestParseRefuses(t *testing.T) {
	rec := recordtest.New(recordtest.Spec{})
	e := newEntry(&rec, failure("r"), time.Now())
	good, err := e.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	newer, err := Parse(bytes.Replace(good, []byte(`"version":1`), []byte(`"version":4`), 1))
	if err == nil || newer.ID != e.ID || !strings.Contains(err.Error(), "of version 4") || !strings.Contains(err.Error(), "run the newer program") {
		t.Errorf("newer version: %v", err)
	}
	for _, bad := range []string{``, `[]`, `{}`, `{"version":1}`, `{"version":0,"id":"x"}`, string(bytes.Replace(good, []byte(`"live"`), []byte(`"dead"`), 1))} {
		if got, err := Parse([]byte(bad)); err == nil {
			t.Errorf("Parse(%.40s) = %+v", bad, got)
		}
	}
	// A member that a later program of the same version added.
	if _, err := Parse(bytes.Replace(good, []byte(`"version":1`), []byte(`"later":[],"version":1`), 1)); err != nil {
		t.Errorf("an unknown member: %v", err)
	}
}

func TestFaultIsCut(t *testing.T) {
	f := fault(time.Time{}, fmt.Errorf("%s\xff", strings.Repeat("ü", 1<<20)))
	if len(f.Error) > 5<<10 || !strings.HasPrefix(f.Error, "üü") || !json.Valid([]byte(`"`+f.Error+`"`)) {
		t.Errorf("%d bytes: %.20q…", len(f.Error), f.Error)
	}
	if f := fault(time.Time{}, nil); f.Error != "" {
		t.Errorf("no error: %q", f.Error)
	}
}

func TestSender(t *testing.T) {
	rec := recordtest.New(recordtest.Spec{})
	var sent []byte
	full := errors.New("full")
	var answer error
	s := Sender(func(_ context.Context, e Entry, data []byte) error {
		if e.Route != "r" {
			t.Errorf("route %q", e.Route)
		}
		sent = data
		return answer
	})
	if err := s.Park(t.Context(), &rec, failure("r")); err != nil {
		t.Fatal(err)
	}
	if e, err := Parse(sent); err != nil || !bytes.Equal(e.Raw, rec.Raw()) {
		t.Errorf("sent %s: %v", sent, err)
	}
	if answer = full; !errors.Is(s.Park(t.Context(), &rec, failure("r")), full) {
		t.Error("the queue's error is not returned")
	}
}

// idOf is the id of rec's entry.
func idOf(rec *sluice.Record, route string) string {
	e := newEntry(rec, sluice.Failure{Route: route}, time.Time{})
	return e.ID
}
