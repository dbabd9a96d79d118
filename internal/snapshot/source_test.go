package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
)

func TestScan(t *testing.T) {
	for _, segments := range []int{0, 1, 3, 7} {
		synctest.Test(t, func(t *testing.T) {
			st := newStub(95)
			st.hidden = func(pk string) bool { return pk < "k0040" } // whole pages
			var got seen
			for rec, err := range Scan(t.Context(), st.config(), tableName, ScanOptions{Segments: segments, Logger: quiet()}) {
				if err != nil {
					t.Fatal(err)
				}
				if rec.Err() != nil || rec.EventName != sluice.Snapshot || rec.Origin != sluice.Backfilled || rec.Table != tableName {
					t.Errorf("%+v", rec)
				}
				got.add(rec)
			}
			if calls := got.all(t, st); calls != 55 {
				t.Errorf("%d segments: %d records of 55 items", segments, calls)
			}
			for _, c := range st.scans() {
				if !c.in.ConsistentRead || c.in.ReturnConsumedCapacity != "TOTAL" {
					t.Errorf("%+v", c.in)
				}
			}
		})
	}
}

func TestRun(t *testing.T) {
	for _, segments := range []int{0, 1, 4} {
		synctest.Test(t, func(t *testing.T) {
			st, store := newStub(95), started(t)
			var got seen
			o := testOptions(store)
			o.Scan.Segments = segments
			s := run(t, st, routed(into(&got)), o)
			if calls := got.all(t, st); calls != 95 {
				t.Errorf("%d calls for 95 items", calls)
			}
			p := s.Progress()
			if p.Items != 95 || p.Settled != 95 || p.Units != 47.5 || p.TableItems != 95 || p.Done != p.Segments || p.Bytes == 0 {
				t.Errorf("%+v", p)
			}

			// Another Run does nothing, unless asked.
			if s := run(t, st, routed(into(&got)), o); s.Progress().Items != 95 {
				t.Errorf("a second time: %+v", s.Progress())
			}
			if _, calls := got.count(); calls != 95 {
				t.Errorf("%d calls after a second Run", calls)
			}
			o.Again = true
			run(t, st, routed(into(&got)), o)
			if _, calls := got.count(); calls != 190 {
				t.Errorf("%d calls when it was asked to read again", calls)
			}
		})
	}
}

// When the log says that a backfill is finished, now or earlier, the metrics say so,
// too.
func TestTellsTheEndInNumbersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told bytes.Buffer
		st, o := newStub(5), testOptions(started(t))
		o.Scan.Logger = slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key != slog.MessageKey {
				return slog.Attr{}
			}
			return a
		}}))
		o.Hooks.Progress = func(p Progress) { fmt.Fprintf(&told, "%d settled, %t\n", p.Settled, p.Finished) }
		h := func(context.Context, *sluice.Record) error { return nil }
		run(t, st, routed(h), o)
		if want := "msg=\"the backfill begins\"\n0 settled, false\n5 settled, true\nmsg=\"the backfill is finished\"\n"; told.String() != want {
			t.Errorf("%s", told.String())
		}
		told.Reset()
		run(t, st, routed(h), o)
		if want := "5 settled, true\nmsg=\"the backfill is finished: nothing is read\"\n"; told.String() != want {
			t.Errorf("finished before: %s", told.String())
		}
	})
}
