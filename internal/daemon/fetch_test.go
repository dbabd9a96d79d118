package daemon

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/reread"
	"github.com/sluicehq/sluice/streamtest"
)

// withItem is the stream service, with one item that can be read.
type withItem struct {
	*streamtest.Service
	answer string // of GetItem
	status int
}

func (w withItem) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
		return w.Config().HTTPClient.Do(r)
	}
	a := httptest.NewRecorder()
	a.WriteHeader(w.status)
	a.WriteString(w.answer)
	return a.Result(), nil
}

// A dead letter by reference gets its record from the stream for 24 hours. Later it
// gets the current item. Without record and item it is gone.
func TestFetch(t *testing.T) {
	const item, none = `{"Item":{"id":{"S":"a"},"v":{"S":"now"}}}`, `{}`
	svc := streamtest.NewService(t)
	table := svc.CreateTable("orders", streamtest.TableOptions{PartitionKey: "id"})
	table.Put(map[string]any{"id": "a", "v": "then"})
	at := table.Put(map[string]any{"id": "a", "v": "later"})
	shard := table.Shards()[0].ID
	get := func(e deadletter.Entry, answer string, status int) (*sluice.Record, error) {
		cfg := svc.Config()
		cfg.HTTPClient = &http.Client{Transport: withItem{svc, answer, status}}
		e.StreamARN, e.Ref = table.StreamARN(), &deadletter.Reference{}
		e.Ref.Keys = streamtest.Insert("orders", map[string]any{"id": "a"}).Keys
		return Fetch(cfg)(t.Context(), &e)
	}
	value := func(rec *sluice.Record) string {
		v, _ := rec.New.Lookup("v")
		return string(rec.EventName) + " " + v.Str()
	}
	change := deadletter.Entry{EventName: sluice.Modify, ShardID: shard, Sequence: at}
	rec, err := get(change, none, 200)
	if err != nil || value(rec) != "MODIFY later" || rec.Sequence != at {
		t.Fatalf("a record: %+v, %v", rec, err)
	}
	change.EventID = rec.EventID
	for _, shardID := range []string{shard, ""} { // Lambda does not say the shard
		change.ShardID = shardID
		if rec, err := get(change, none, 200); err != nil || value(rec) != "MODIFY later" {
			t.Errorf("by its event, of shard %q: %+v, %v", shardID, rec, err)
		}
	}
	if rec, err := get(deadletter.Entry{EventName: sluice.Snapshot}, item, 200); err != nil || value(rec) != "SNAPSHOT now" {
		t.Errorf("of a backfill: %+v, %v", rec, err)
	}
	if rec, err := get(deadletter.Entry{EventName: sluice.Snapshot}, none, 200); !errors.Is(err, deadletter.ErrGone) {
		t.Errorf("of a backfill, and deleted: %+v, %v", rec, err)
	}

	remove := svc.Fail(streamtest.Fault{Op: "GetShardIterator", Error: "AccessDeniedException"})
	if rec, err := get(change, item, 200); err == nil || errors.Is(err, deadletter.ErrGone) || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("a stream that may not be read: %+v, %v: the item does not take its place", rec, err)
	}
	remove()

	table.Trim(shard, 2)
	// The record has the change's sequence number. Without it, a projection would take
	// the item for a backfilled one, older than the document.
	if rec, err := get(change, item, 200); err != nil || value(rec) != "SNAPSHOT now" || rec.Sequence != at {
		t.Errorf("trimmed: %+v, %v", rec, err)
	}
	if rec, err := get(change, none, 200); !errors.Is(err, deadletter.ErrGone) || !errors.Is(err, reread.ErrTrimmed) {
		t.Errorf("trimmed and deleted: %+v, %v", rec, err)
	}
	if rec, err := get(change, `{"__type":"AccessDeniedException"}`, 400); err == nil || errors.Is(err, deadletter.ErrGone) {
		t.Errorf("trimmed, and the item may not be read: %+v, %v", rec, err)
	}
}
