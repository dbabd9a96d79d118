package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/streamtest"
)

// A letter for all routes whose record is gone: where none takes the item that
// stands for it, the letter is kept, and not counted as one without a route.
func TestReplayOfAReferenceThatNoRouteTakes(t *testing.T) {
	it := item.Of(item.String("pk", "1"), item.String("x", strings.Repeat("x", 100)))
	insert, snapshot := streamtest.Insert("t", it), streamtest.Snapshot("t", it)
	e := deadletter.Entry{
		ID: "1-2", Ref: &deadletter.Reference{Keys: insert.Keys, Bytes: 9}, EventName: sluice.Insert, Table: "t",
		StreamARN: insert.StreamARN, Sequence: insert.Sequence, ParkedAt: time.Now(),
	}
	data, err := e.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for pattern, want := range map[string]bool{"*#INSERT": false, "*#SNAPSHOT": true} {
		m := router.New()
		m.Handle(pattern, sluiceNothing, router.Redrive())
		r := replaying{routes: m, fetch: func(context.Context, *deadletter.Entry) (*sluice.Record, error) { return &snapshot, nil }}
		l, ok, err := r.letter(data)
		if ok != want || (err == nil) != want || want && l.Record != &snapshot {
			t.Errorf("%s: %+v, %v, %v", pattern, l, ok, err)
		}
	}
	r := replaying{fetch: func(context.Context, *deadletter.Entry) (*sluice.Record, error) { return nil, errors.New("no network") }}
	if _, ok, err := r.letter(data); ok || err == nil {
		t.Errorf("%v, %v", ok, err)
	}
}
