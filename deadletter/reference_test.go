package deadletter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// big is a record whose image has so many bytes that do not compress.
func big(n int) *sluice.Record {
	rng := rand.New(rand.NewPCG(1, 2))
	text := make([]byte, n)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[rng.IntN(64)]
	}
	rec := recordtest.New(recordtest.Spec{
		Keys: `{"pk":{"S":"a"}}`, New: `{"pk":{"S":"a"},"x":{"S":"` + string(text) + `"}}`, Sequence: recordtest.Sequence(10), Shard: "shard",
	})
	return &rec
}

func fit(t *testing.T, e Entry, most int) Entry {
	t.Helper()
	data, err := e.Fit(most)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > most {
		t.Fatalf("%d bytes, at most %d were asked for", len(data), most)
	}
	got, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A letter loses as little as its place makes it lose.
func TestFit(t *testing.T) {
	small := newEntry(record("a", 1), failure("r"), time.Now())
	whole, err := small.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := small.Fit(len(whole)); err != nil || !bytes.Equal(data, whole) {
		t.Errorf("what fits is changed: %s, %v", data, err)
	}

	long := recordtest.New(recordtest.Spec{New: `{"pk":{"S":"a"},"x":{"S":"` + strings.Repeat("x", 200_000) + `"}}`})
	e := newEntry(&long, failure("r"), time.Now())
	if got := fit(t, e, 20_000); !bytes.Equal(got.Raw, long.Raw()) || got.Ref != nil || got.First.Error != e.First.Error {
		t.Errorf("what fits compressed: %d bytes of %d, %+v", len(got.Raw), len(long.Raw()), got.Ref)
	}

	f := failure("r")
	f.First = errors.New(strings.Repeat("e", 4000))
	e = newEntry(big(20_000), f, time.Now())
	e.Last.Details = []map[string]string{{"k": strings.Repeat("d", 30_000)}}
	if got := fit(t, e, 24_000); len(got.Raw) != len(e.Raw) || got.Last.Details != nil || len(got.First.Error) > 300 || got.First.Error[:10] != "eeeeeeeeee" {
		t.Errorf("details go before the record: %d bytes of %d, %+v", len(got.Raw), len(e.Raw), got.Last)
	}

	rec := big(100_000)
	e = newEntry(rec, failure("r"), time.Now())
	got := fit(t, e, leastFit)
	if got.Raw != nil || got.Ref == nil || got.Ref.Bytes != len(rec.Raw()) || string(got.Ref.Keys.Raw()) != `{"pk":{"S":"a"}}` || !got.Ref.Created.Equal(rec.Created) {
		t.Fatalf("by reference: %+v", got.Ref)
	}
	if got.ID != e.ID || got.StreamARN != rec.StreamARN || got.ShardID != "shard" || got.Sequence != rec.Sequence || got.EventID != rec.EventID || got.Route != "r" || got.First.Error != e.First.Error {
		t.Errorf("where it was: %+v", got)
	}
	if again := fit(t, got, 1<<20); again.Ref == nil || again.Ref.Bytes != got.Ref.Bytes || again.Ref.Keys.Raw() == nil {
		t.Errorf("stored again: %+v", again.Ref)
	}
	if r := got.Record(); r.Err() == nil || !r.Keys.Exists() || r.Sequence != rec.Sequence || r.Origin != sluice.Redriven {
		t.Errorf("its record: %+v", r)
	}
}

// Whatever is in a record that cannot be decoded, it can be parked.
func TestFitOfGarbage(t *testing.T) {
	huge := strings.Repeat("\x01", 100_000)
	rec := sluice.DecodeRecord([]byte(strings.ReplaceAll(`{"eventID":"Z","eventName":"INSERT","eventSourceARN":"Z","dynamodb":{"SequenceNumber":"Z","Keys":{"Z":{"S":"Z"}}}}`, "Z", big(1<<20).EventID+strings.ReplaceAll(huge, "\x01", `\u0001`))))
	f := failure(strings.Repeat("r", 100))
	f.First, f.Last = errors.New(huge), errors.New(huge)
	e := newEntry(rec, f, time.Now())
	e.ShardID = huge
	if got := fit(t, e, leastFit); got.ID != e.ID {
		t.Errorf("id %s, want %s", got.ID, e.ID)
	}
}

func TestFitRefuses(t *testing.T) {
	m := sluice.Message{ID: "1", Body: `{"kind":"k","x":"` + big(100_000).EventID + strings.TrimSuffix(string(big(100_000).New.Raw()[30:]), `"}}`) + `"}`}
	rec := m.Record("arn:aws:sqs:us-east-1:123456789012:jobs")
	if rec.Err() != nil {
		t.Fatal(rec.Err())
	}
	e := newEntry(rec, failure("r"), time.Now())
	if _, err := e.Fit(50_000); !errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), e.ID) {
		t.Errorf("a message has no other place: %v", err)
	}
	e = newEntry(big(100_000), failure("r"), time.Now())
	if _, err := e.Fit(leastFit - 1); !errors.Is(err, errTooLarge) {
		t.Errorf("a limit that nothing fits: %v", err)
	}
}

func TestSenderAtMost(t *testing.T) {
	var sent [][]byte
	s := Sender(func(_ context.Context, _ Entry, data []byte) error {
		sent = append(sent, data)
		return nil
	}).AtMost(20_000)
	for _, rec := range []*sluice.Record{record("a", 1), big(100_000)} {
		if err := s.Park(t.Context(), rec, failure("r")); err != nil {
			t.Fatal(err)
		}
	}
	one, err := Parse(sent[0])
	two, err2 := Parse(sent[1])
	if err != nil || err2 != nil || one.Ref != nil || two.Ref == nil || len(sent[1]) > 20_000 {
		t.Errorf("%v %v, %v %v", one.Ref, err, two.Ref, err2)
	}
}

// boxOf returns a box with a letter by reference.
func boxOf(t *testing.T, route string) (b *Box, id string) {
	t.Helper()
	m := state.NewMemory()
	e := newEntry(big(100_000), failure(route), time.Now())
	data, err := e.Fit(leastFit)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.PutLetter(t.Context(), "app", e.ID, data); err != nil {
		t.Fatal(err)
	}
	return NewBox(m, "app"), e.ID
}

// snapshotOf is the item as it is now.
func snapshotOf(t *testing.T) *sluice.Record {
	t.Helper()
	rec := sluice.DecodeRecord([]byte(`{"eventID":"e","eventName":"SNAPSHOT","eventSource":"aws:dynamodb","dynamodb":{"Keys":{"pk":{"S":"a"}},"NewImage":{"pk":{"S":"a"}}}}`))
	if rec.Err() != nil {
		t.Fatal(rec.Err())
	}
	return rec
}

func TestRedriveByReference(t *testing.T) {
	snapshot := snapshotOf(t)
	for _, tt := range []struct {
		name  string
		fetch Fetch
		want  Result
		says  string
		runs  string
	}{
		{"from the stream", func(context.Context, *Entry) (*sluice.Record, error) { return big(100_000), nil }, Done, "is read again", "[10 redriven]"},
		{"the item", func(context.Context, *Entry) (*sluice.Record, error) { return snapshot, nil }, Done, "the item as it is now", "[0 redriven]"},
		{"nothing", func(context.Context, *Entry) (*sluice.Record, error) { return nil, fmt.Errorf("item a: %w", ErrGone) }, Refused, "item a: neither", "[]"},
		{"the service is away", func(context.Context, *Entry) (*sluice.Record, error) { return nil, errors.New("no network") }, Failed, "no network", "[]"},
		{"nobody can", nil, Refused, "too large to be kept", "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, id := boxOf(t, "r")
			var c calls
			m := anyMatcher{{Name: "r", Handler: c.handle, Redrive: true}}
			var told Outcome
			err := b.Redrive(t.Context(), m, id, How{Fetch: tt.fetch, Told: func(o Outcome) { told = o }})
			if told.Result != tt.want || !strings.Contains(told.Note+told.Error, tt.says) || fmt.Sprint(c.got) != tt.runs {
				t.Errorf("%+v, ran %v", told, c.got)
			}
			if _, gone := b.Get(t.Context(), id); errors.Is(gone, ErrNotFound) != (tt.want == Done) || (err == nil) != (tt.want == Done) {
				t.Errorf("error %v, letter %v", err, gone)
			}
		})
	}
}

// One that fails again stays one by reference.
func TestReferenceFailsAgain(t *testing.T) {
	b, id := boxOf(t, "")
	c := calls{answer: func(*sluice.Record) error { return errors.New("still down") }}
	m := anyMatcher{{Name: "r", Handler: c.handle, Redrive: true}}
	fetch := func(context.Context, *Entry) (*sluice.Record, error) { return big(100_000), nil }
	if err := b.Redrive(t.Context(), m, id, How{Fetch: fetch}); err == nil {
		t.Fatal("no error")
	}
	entries, _, err := b.List(t.Context(), "", 10)
	if err != nil || len(entries) != 1 || entries[0].Ref == nil || entries[0].Route != "r" || entries[0].Redrives != 1 {
		t.Fatalf("%+v, %v", entries, err)
	}
	if held, err := b.Holds(t.Context(), record("a", 20), "r"); !held || err != nil {
		t.Errorf("it holds its item: %v, %v", held, err)
	}
}

// The item takes a record's place only where a route takes it: what no route ran
// is not done.
func TestReferenceThatNoRouteTakes(t *testing.T) {
	for _, route := range []string{"", "r"} {
		b, id := boxOf(t, route)
		m := router.New()
		m.Handle("*#INSERT", (&calls{}).handle, router.Name("r"), router.Redrive())
		fetch := func(context.Context, *Entry) (*sluice.Record, error) { return snapshotOf(t), nil }
		for _, dry := range []bool{true, false} {
			var told Outcome
			err := b.Redrive(t.Context(), m, id, How{Fetch: fetch, DryRun: dry, Told: func(o Outcome) { told = o }})
			if !errors.Is(err, ErrRefused) || told.Result != Refused || !strings.Contains(told.Note, "SNAPSHOT") {
				t.Errorf("route %q: %v, %+v", route, err, told)
			}
		}
		if _, err := b.Get(t.Context(), id); err != nil {
			t.Errorf("route %q: %v", route, err)
		}
	}
}
