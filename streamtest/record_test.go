package streamtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

var (
	number     = sluice.Sequence("977119800000398701107540001")
	madeAt     = time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC)
	sameRecord = cmp.Options{
		cmp.Comparer(func(a, b sluice.Item) bool { return a.Exists() == b.Exists() && a.Equal(b) }),
		cmp.FilterPath(func(p cmp.Path) bool { return slices.Contains([]string{"raw", "err", "expired"}, p.String()) }, cmp.Ignore()),
	}
)

func TestRecords(t *testing.T) {
	const orders = "arn:aws:dynamodb:us-east-1:123456789012:table/orders/stream/2024-01-01T00:00:00.000"
	const small, large = `{"pk":{"S":"a"},"n":{"N":"1"}}`, `{"pk":{"S":"a"},"n":{"N":"2"},"s":{"SS":["x","y"]}}`
	is := func(text string) sluice.Item { return Item(text) }
	want := sluice.Record{
		Table: "orders", StreamARN: orders, Region: "us-east-1", Sequence: number, Created: madeAt,
		Keys: is(`{"pk":{"S":"a"}}`), ViewType: "NEW_AND_OLD_IMAGES",
	}
	with := func(change func(*sluice.Record)) sluice.Record {
		rec := want
		change(&rec)
		return rec
	}
	common := []RecordOption{WithSequence(number), WithTime(madeAt)}
	and := func(o ...RecordOption) []RecordOption { return append(o, common...) }
	for _, tt := range []struct {
		name      string
		got, want sluice.Record
	}{
		{"insert", Insert("orders", small, common...), with(func(r *sluice.Record) {
			r.EventName, r.New, r.SizeBytes = sluice.Insert, is(small), 9
		})},
		{"modify", Modify("orders", small, large, common...), with(func(r *sluice.Record) {
			r.EventName, r.Old, r.New, r.SizeBytes = sluice.Modify, is(small), is(large), 18
		})},
		{"remove", Remove("orders", small, common...), with(func(r *sluice.Record) {
			r.EventName, r.Old, r.SizeBytes = sluice.Remove, is(small), 9
		})},
		{"expire", Expire("orders", small, common...), with(func(r *sluice.Record) {
			r.EventName, r.Old, r.SizeBytes = sluice.Remove, is(small), 9
		})},
		{"snapshot", Snapshot("orders", small, WithTime(madeAt)), with(func(r *sluice.Record) {
			r.EventName, r.New, r.SizeBytes, r.Sequence, r.Origin = sluice.Snapshot, is(small), 9, "", sluice.Backfilled
		})},
		{"origin", Insert("orders", small, and(WithOrigin(sluice.Redriven))...), with(func(r *sluice.Record) {
			r.EventName, r.New, r.SizeBytes, r.Origin = sluice.Insert, is(small), 9, sluice.Redriven
		})},
		{"keys only", Modify("orders", small, large, and(WithView(item.KeysOnly))...), with(func(r *sluice.Record) {
			r.EventName, r.ViewType, r.SizeBytes = sluice.Modify, "KEYS_ONLY", 3
		})},
		{"new image", Modify("orders", small, large, and(WithView(item.NewImage))...), with(func(r *sluice.Record) {
			r.EventName, r.ViewType, r.New, r.SizeBytes = sluice.Modify, "NEW_IMAGE", is(large), 12
		})},
		{"old image", Insert("orders", small, and(WithView(item.OldImage))...), with(func(r *sluice.Record) {
			r.EventName, r.ViewType, r.SizeBytes = sluice.Insert, "OLD_IMAGE", 3
		})},
		{"no time", Insert("orders", small, WithSequence(number), WithTime(time.Time{})), with(func(r *sluice.Record) {
			r.EventName, r.New, r.SizeBytes, r.Created = sluice.Insert, is(small), 9, time.Time{}
		})},
		{"fraction of a second", Insert("orders", small, WithSequence(number), WithTime(madeAt.Add(50*time.Millisecond))), with(func(r *sluice.Record) {
			r.EventName, r.New, r.SizeBytes, r.Created = sluice.Insert, is(small), 9, madeAt.Add(50*time.Millisecond)
		})},
		{"another Region", Insert(strings.Replace(orders, "us-east-1", "eu-west-1", 1), small, common...), with(func(r *sluice.Record) {
			r.EventName, r.New, r.SizeBytes, r.Region = sluice.Insert, is(small), 9, "eu-west-1"
			r.StreamARN = strings.Replace(orders, "us-east-1", "eu-west-1", 1)
		})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if len(tt.got.EventID) != 32 || tt.got.Err() != nil {
				t.Errorf("event id %q, %v", tt.got.EventID, tt.got.Err())
			}
			tt.want.EventID = tt.got.EventID
			if got := tt.got.IsTTL(); got != (tt.name == "expire") {
				t.Errorf("IsTTL is %v", got)
			}
			if diff := cmp.Diff(tt.want, tt.got, sameRecord...); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKeysOfRecords(t *testing.T) {
	for _, tt := range []struct {
		item string
		opts []RecordOption
		want string
	}{
		{`{"pk":{"S":"a"},"id":{"S":"b"}}`, nil, `{"pk":{"S":"a"}}`},
		{`{"n":{"N":"1"},"sk":{"N":"7"},"pk":{"S":"a"}}`, nil, `{"pk":{"S":"a"},"sk":{"N":"7"}}`},
		{`{"PK":{"S":"a"},"SK":{"S":"b"},"sk":{"S":"no key"}}`, nil, `{"PK":{"S":"a"},"SK":{"S":"b"}}`},
		{`{"id":{"B":"AAAA"}}`, nil, `{"id":{"B":"AAAA"}}`},
		{`{"pk":{"S":"a"},"order.id":{"S":"b"},"at":{"S":"c"}}`, []RecordOption{WithKeys("order.id", "at")}, `{"order.id":{"S":"b"},"at":{"S":"c"}}`},
	} {
		rec := Insert("orders", tt.item, tt.opts...)
		if got := string(rec.Keys.Raw()); got != tt.want {
			t.Errorf("%s: keys %s, want %s", tt.item, got, tt.want)
		}
	}
}

// The defaults are those of a live stream.
func TestRecordDefaults(t *testing.T) {
	before := time.Now().Truncate(time.Second)
	last := Insert("orders", `{"pk":{"S":"a"}}`)
	if last.Created.Before(before) || last.Created.After(time.Now()) || last.Created.Nanosecond() != 0 {
		t.Errorf("created at %v, want now", last.Created)
	}
	// DynamoDB writes whole seconds without a point, and decoders of them may take no other number.
	if want := fmt.Sprintf(`"ApproximateCreationDateTime":%d,`, last.Created.Unix()); !strings.Contains(string(last.Raw()), want) {
		t.Errorf("%s has no %s", last.Raw(), want)
	}
	if last.Origin != sluice.Live || last.ShardID != "" {
		t.Errorf("origin %v, shard %q", last.Origin, last.ShardID)
	}
	for range 30 {
		rec := Insert("orders", `{"pk":{"S":"a"}}`)
		if rec.Sequence.Compare(last.Sequence) <= 0 || rec.EventID == last.EventID {
			t.Fatalf("%s after %s", rec.Sequence, last.Sequence)
		}
		last = rec
	}
	// Who compares them as strings is found out.
	for n := 1; n < 30; n++ {
		a, b := recordtest.Sequence(n), recordtest.Sequence(n+1)
		if !a.Valid() || a.Compare(b) >= 0 || n == 9 && a < b {
			t.Errorf("sequence number %d is %s, the next one %s", n, a, b)
		}
	}
}

// A function that is called with the event sees the same records.
func TestEvent(t *testing.T) {
	recs := []sluice.Record{
		Insert("orders", map[string]any{"pk": "a", "text": "<&>\" \u2028 é"}),
		Modify("orders", `{"pk":{"S":"a"}}`, `{"pk":{"S":"a"},"n":{"N":"1"}}`),
		Expire("users", `{"id":{"S":"u"}}`, WithView(item.KeysOnly)),
	}
	page, err := sluice.DecodeEvent(Event(recs...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recs, page.Records, sameRecord...); diff != "" {
		t.Error(diff)
	}
	if got := string(Event()); got != `{"Records":[]}` {
		t.Errorf("no records: %s", got)
	}
}

func TestRecordsShareNoMemory(t *testing.T) {
	text := []byte(`{"pk":{"S":"a"}}`)
	first := Insert("orders", text)
	clear(text)
	second := Remove("orders", first.New)
	clear(first.New.Raw())
	clear(first.Raw())
	if got := string(second.Old.Raw()) + string(second.Keys.Raw()); got != `{"pk":{"S":"a"}}{"pk":{"S":"a"}}` {
		t.Error(got)
	}
}

func TestRecordsThatCannotBe(t *testing.T) {
	const a = `{"pk":{"S":"a"}}`
	for _, tt := range []struct {
		want string
		make func() sluice.Record
	}{
		{`streamtest: Insert("orders"): new image: not DynamoDB JSON: attribute "pk"`, func() sluice.Record { return Insert("orders", `{"pk":{"X":"a"}}`) }},
		{`old image: an item in a int`, func() sluice.Record { return Modify("orders", 1, a) }},
		{`no item was given that is there now`, func() sluice.Record { return Insert("orders", nil) }},
		{`no item was given that was there before`, func() sluice.Record { return Remove("orders", nil) }},
		{`the item has no attribute pk, PK or id`, func() sluice.Record { return Insert("orders", `{"a":{"S":"a"}}`) }},
		{`no key attribute "sk"`, func() sluice.Record { return Insert("orders", a, WithKeys("pk", "sk")) }},
		{`key attribute "pk" differs`, func() sluice.Record { return Modify("orders", a, `{"pk":{"S":"b"}}`) }},
		{`want a table's name`, func() sluice.Record { return Insert("a/b", a) }},
		{`not the ARN of a stream`, func() sluice.Record { return Insert("arn:aws:dynamodb:us-east-1:1:table/orders", a) }},
		{`SequenceNumber`, func() sluice.Record { return Insert("orders", a, WithSequence("12x")) }},
		{`Expire("orders")`, func() sluice.Record { return Expire("orders", nil) }},
		{`streamtest: Event: record 1 was not decoded from JSON`, func() sluice.Record { Event(Insert("orders", a), sluice.Record{}); return sluice.Record{} }},
	} {
		t.Run(tt.want, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, tt.want) {
					t.Errorf("panic %q, want %q in it", got, tt.want)
				}
			}()
			tt.make()
		})
	}
}

func TestItem(t *testing.T) {
	for _, tt := range []struct {
		in   any
		want string
	}{
		{`{"pk": {"S":"a"}, "n":{"N":"1.50"}}`, `{"pk":{"S":"a"},"n":{"N":"1.5"}}`},
		{[]byte(`{}`), `{}`},
		{Item(`{"a":{"NULL":true}}`), `{"a":{"NULL":true}}`},
		{map[string]any{"s": "x", "n": 1e6, "l": []any{true, nil}}, `{"l":{"L":[{"BOOL":true},{"NULL":true}]},"n":{"N":"1000000"},"s":{"S":"x"}}`},
	} {
		if got := string(Item(tt.in).Raw()); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.in, got, tt.want)
		}
	}
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "streamtest: Item: an item in a int") {
			t.Errorf("panic %q", got)
		}
	}()
	Item(1)
}
