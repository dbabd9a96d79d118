package lambda

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item/sdkitem"
)

// handled returns the records of a fixture as handlers get them, in order.
func handled(t *testing.T, file string) []*sluice.Record {
	t.Helper()
	var mu sync.Mutex
	var recs []*sluice.Record
	h := NewHandler(one(func(_ context.Context, rec *sluice.Record) error {
		mu.Lock()
		defer mu.Unlock()
		recs = append(recs, rec.Clone())
		return nil
	}), Options{Concurrency: 1, Logger: quiet()})
	invoke(t, t.Context(), h, readFixture(t, "events", file))
	return recs
}

// Times are whole, fractional, with an exponent, text, in milliseconds, or
// missing.
func TestTimesOfEvents(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, tt := range []struct {
		file string
		want []time.Time
	}{
		{"usual", []time.Time{at("2025-03-01T08:40:00Z"), at("2025-03-01T08:40:01.25Z"), at("2025-03-01T08:40:02Z")}},
		{"float-time", []time.Time{at("2025-03-01T08:40:00Z"), {}}},
		{"no-time", []time.Time{{}, {}}},
		{"exponent-time", []time.Time{at("2025-03-01T08:40:00Z"), at("2025-03-01T08:40:01.123456789Z"), at("2025-03-01T08:40:02.123Z")}},
		{"string-time", []time.Time{at("2025-03-01T08:40:00Z")}},
		{"milliseconds-time", []time.Time{at("2025-03-01T08:40:00.123Z")}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			for i, rec := range handled(t, tt.file) {
				if !rec.Created.Equal(tt.want[i]) {
					t.Errorf("record %d: %v, want %v", i+1, rec.Created, tt.want[i])
				}
			}
		})
	}
}

// Binary is decoded once, numbers keep their digits, and values are written
// back as they came.
func TestValuesOfEvents(t *testing.T) {
	recs := handled(t, "usual")
	if len(recs) != 3 {
		t.Fatalf("%d records", len(recs))
	}
	image := recs[0].New
	photo, _ := image.Lookup("photo")
	if got := photo.Bytes(); !bytes.Equal(got, []byte{0, 0xff, 0x7f, 0xff}) {
		t.Errorf("photo % x", got)
	}
	var prints [][]byte
	set, _ := image.Lookup("prints")
	for v := range set.Set() {
		prints = append(prints, v.Bytes())
	}
	if want := [][]byte{{0, 1, 2}, {0xff, 0xee, 0xdd}}; !slices.EqualFunc(prints, want, bytes.Equal) {
		t.Errorf("prints % x", prints)
	}
	var numbers []string
	set, _ = image.Lookup("more.numbers")
	for v := range set.Set() {
		numbers = append(numbers, v.Str())
	}
	if want := []string{"1", "12345678901234567890123456789012345678", "-0.5"}; !slices.Equal(numbers, want) {
		t.Errorf("numbers %q", numbers)
	}
	m := sdkitem.Map(image)
	if b, ok := m["photo"].(*types.AttributeValueMemberB); !ok || !bytes.Equal(b.Value, []byte{0, 0xff, 0x7f, 0xff}) {
		t.Errorf("to the SDK: photo %#v", m["photo"])
	}
	back, err := sdkitem.FromMap(m)
	if err != nil || !back.Equal(image) {
		t.Errorf("and back: %s, error %v; want %s", back.Raw(), err, image.Raw())
	}
	if b, ok := handled(t, "same-sequence")[1].New.Lookup("raw"); !ok || len(b.Bytes()) != 3 {
		t.Errorf(`B:"test" has %d bytes, want 3`, len(b.Bytes()))
	}
}

// A user's struct needs no conversion code.
func TestImagesDecodeIntoAStruct(t *testing.T) {
	type search struct {
		PK    string `dynamodbav:"pk"`
		Step  int    `dynamodbav:"step"`
		Photo []byte `dynamodbav:"photo"`
	}
	var got []sluice.Change[search]
	h := NewHandler(one(sluice.Typed(func(_ context.Context, c sluice.Change[search]) error {
		got = append(got, c)
		return nil
	})), Options{Concurrency: 1})
	invoke(t, t.Context(), h, readFixture(t, "events", "usual"))
	if len(got) != 3 || got[0].Old != nil || got[2].New != nil {
		t.Fatalf("changes %+v", got)
	}
	if got[0].New.PK != "USER#7" || len(got[0].New.Photo) != 4 || got[1].Old.Step != 1 || got[1].New.Step != 2 || got[2].Old.Step != 2 {
		t.Errorf("changes %+v, %+v, %+v", got[0].New, got[1], got[2].Old)
	}
}

// Records without an identity do not fail, and do not look the same.
func TestRecordsWithoutIdentity(t *testing.T) {
	recs := handled(t, "no-identity")
	if len(recs) != 2 || recs[0].Keys.Equal(recs[1].Keys) || recs[0].Sequence == recs[1].Sequence {
		t.Fatalf("records %v", recs)
	}
	for _, rec := range recs {
		if rec.EventID != "" || rec.Table != "" {
			t.Errorf("made up: %q, %q", rec.EventID, rec.Table)
		}
	}
	if recs := handled(t, "same-sequence"); recs[0].Keys.Equal(recs[1].Keys) {
		t.Error("two records of one sequence number became one")
	}
}

// The view type is the record's own field, not derived from its images.
func TestViewIsNotInferred(t *testing.T) {
	var views []string
	for _, file := range []string{"usual", "mixed-views", "ttl"} {
		for _, rec := range handled(t, file) {
			views = append(views, rec.ViewType)
		}
	}
	want := "NEW_AND_OLD_IMAGES NEW_AND_OLD_IMAGES NEW_AND_OLD_IMAGES NEW_IMAGE NEW_AND_OLD_IMAGES NEW_AND_OLD_IMAGES OLD_IMAGE"
	if got := strings.Join(views, " "); got != want {
		t.Errorf("views %s, want %s", got, want)
	}
}

// The service's identity makes a REMOVE a deletion by time to live. It means
// nothing in an INSERT.
func TestDeletionsByTimeToLive(t *testing.T) {
	for _, tt := range []struct {
		file string
		want []bool
	}{
		{"ttl", []bool{false, true}},
		{"same-sequence", []bool{false, false}},
		{"exponent-time", []bool{false, false, false}},
	} {
		for i, rec := range handled(t, tt.file) {
			if rec.IsTTL() != tt.want[i] {
				t.Errorf("%s, record %d: by time to live %v, want %v", tt.file, i+1, rec.IsTTL(), tt.want[i])
			}
		}
	}
}

// Within an invocation nothing is tried twice. Between invocations the service
// backs off.
func TestFailuresAreNotRetriedWithinAnInvocation(t *testing.T) {
	for _, what := range []string{"fail", "later", "panic", "permanent"} {
		calls := 0
		h := NewHandler(one(func(ctx context.Context, rec *sluice.Record) error {
			calls++
			return obey(ctx, rec)
		}), Options{Logger: quiet()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		invoke(t, ctx, h, event(change{seq: 1, do: what}))
		cancel()
		if calls != 1 {
			t.Errorf("%s: %d calls", what, calls)
		}
	}
}
