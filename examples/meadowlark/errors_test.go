package meadowlark

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/dynamo"
	"github.com/sluicehq/sluice/effect/message"
	"github.com/sluicehq/sluice/examples/meadowlark/writer"
	"github.com/sluicehq/sluice/item"
	"github.com/sluicehq/sluice/streamtest"
)

// What a handler fails with is logged, and names no document: neither by its id nor by
// another value of a key.
func TestErrorsNameNoDocument(t *testing.T) {
	key := streamtest.WithKeys("pk", "sk")
	down := errors.New("down")
	writesFail := func(w *world) { w.Fault = func(bool, []dynamo.Op) error { return down } }
	busy := func(w *world) {
		w.Fault = func(_ bool, ops []dynamo.Op) error {
			if len(ops) < 2 {
				return nil
			}
			return &dynamo.ConditionError{Failed: []int{2}}
		}
	}
	fx := Fixtures()
	removed := func(it sluice.Item) func(*testing.T) sluice.Record {
		return func(*testing.T) sluice.Record { return streamtest.Remove(writer.DefaultTable, it, key) }
	}
	check := func(of sluice.Item) func(*testing.T) sluice.Record {
		return func(t *testing.T) sluice.Record {
			var sent sluice.Message
			later := message.Later(func(_ context.Context, m sluice.Message) error { sent = m; return nil }, message.Options{})
			if err := later(t.Context(), message.Check{Kind: checkKind, Table: writer.DefaultTable, Key: of, DedupeKey: "d", NotBefore: time.Now().Add(-time.Hour)}); err != nil {
				t.Fatal(err)
			}
			sent.ID = "m1"
			return *sent.Record("arn:aws:sqs:us-east-1:000000000000:checks")
		}
	}
	for _, tt := range []struct {
		name  string
		rec   func(*testing.T) sluice.Record
		table []sluice.Item // what is there
		fails func(*world)
		want  string
	}{
		{"clean up", removed(fx[course]), []sluice.Item{fx[fref], fx[tref]}, writesFail, "deleting a reference of a document"},
		{"clean up, busy", removed(fx[course]), []sluice.Item{fx[fref], fx[tref]}, busy, "keeps changing"},
		{"its count", removed(fx[school]), []sluice.Item{fx[guard]}, writesFail, "deleting a count of a document"},
		{"last reference", removed(fx[fref]), []sluice.Item{fx[assign].With(item.Number("refCount", "0"))}, writesFail, "deleting a count (key hash "},
		{"alert", removed(fx[school]), []sluice.Item{fx[tref]}, func(w *world) { w.alertFails = down }, "telling of a document that is missing"},
		{"a reference to nothing", func(*testing.T) sluice.Record { return streamtest.Insert(writer.DefaultTable, fx[fref], key) }, []sluice.Item{fx[fref].Only("pk", "sk")}, func(*world) {}, "does not say to what"},
		{"a check of no reference", check(fx[school].Only("pk", "sk")), nil, func(*world) {}, "it holds the key of no reference"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.put(t, tt.table...)
				rec := tt.rec(t)
				tt.fails(w)
				err := w.router.Dispatch(t.Context(), &rec)
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("%v, want %s", err, tt.want)
				}
				for _, value := range []string{schoolID, courseID, "Ed-Fi", "TYPE#"} {
					if strings.Contains(err.Error(), value) {
						t.Errorf("the error has %s: %v", value, err)
					}
				}
			})
		})
	}
}
