package deadletter_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/internal/releasetest"
	"github.com/sluicehq/sluice/item"
)

var (
	at      = time.Date(2026, 1, 31, 15, 4, 5, 678_900_000, time.UTC)
	details = []map[string]string{{"index": "orders", "status": "400"}}
)

// entries have a value in each field of Entry, together.
var entries = []deadletter.Entry{
	{
		ID: "1", Raw: []byte(`{"eventID":"one"}`), EventID: "one", EventName: sluice.Modify, Table: "test", StreamARN: recordtest.ARN, ShardID: "shardId-1",
		Sequence: recordtest.Sequence(1), Origin: sluice.Redriven, Route: "search", Attempts: 8, Redrives: 2,
		First: deadletter.Fault{At: at, Error: "down", Details: details}, Last: deadletter.Fault{At: at.Add(time.Hour), Error: "refused", Details: details},
		ParkedAt: at.Add(2 * time.Hour),
	},
	{ID: "2", Raw: []byte("no \xff JSON"), Origin: sluice.Replayed, Attempts: 1, ParkedAt: at},
	{
		ID: "3", Table: "test", StreamARN: recordtest.ARN, ShardID: "shardId-1", Sequence: recordtest.Sequence(5), Attempts: 1, ParkedAt: at,
		Gap: &sluice.Gap{Table: "test", StreamARN: recordtest.ARN, ShardID: "shardId-1", After: recordtest.Sequence(5), Before: recordtest.Sequence(8), Gone: true, Next: recordtest.ARN + "9", Found: at},
	},
	{ID: "4", Origin: sluice.Backfilled, ParkedAt: at, Ref: &deadletter.Reference{Keys: item.Of(item.String("pk", "o-3")), Bytes: 300_000, Created: at}},
}

// Each field of an entry is in the letters of all releases, and is read from them.
func TestReleasesHaveAllFields(t *testing.T) {
	filled := make(map[string]bool)
	for _, e := range entries {
		for _, part := range []any{e, deref(e.Gap), deref(e.Ref), e.First} {
			v := reflect.ValueOf(part)
			for i := range v.NumField() {
				filled[fmt.Sprint(v.Type(), " ", v.Type().Field(i).Name)] = filled[fmt.Sprint(v.Type(), " ", v.Type().Field(i).Name)] || !v.Field(i).IsZero()
			}
		}
	}
	for field, ok := range filled {
		if !ok && field != "deadletter.Entry Unverified" { // of a box
			t.Errorf("no entry has a value in %s", field)
		}
	}
	releasetest.Each(t, "entries.ndjson", *update, func(t *testing.T, path string) {
		var text []byte
		for _, e := range entries {
			var err error
			if text, err = e.Append(text); err != nil {
				t.Fatal(err)
			}
			text = append(text, '\n')
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}, func(t *testing.T, path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []deadletter.Entry
		for line := range bytes.Lines(text) {
			e, err := deadletter.Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		if !reflect.DeepEqual(got, entries) {
			t.Errorf("read\n%+v\nwant\n%+v", got, entries)
		}
	})
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

var update = flag.Bool("update", false, "write the dead-letter file of this release, unless it exists")

// The dead-letter files of all releases are read.
func TestReleases(t *testing.T) {
	open := func(t *testing.T, path string) *deadletter.File {
		f, err := deadletter.OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	releasetest.Each(t, "letters.ndjson", *update, func(t *testing.T, path string) {
		f := open(t, path)
		releasetest.Park(t, deadletter.NewBox(f, releasetest.App).Park)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}, func(t *testing.T, path string) { releasetest.CheckLetters(t, open(t, path), 0) })
}
