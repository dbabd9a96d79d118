package audit

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
	"github.com/sluicehq/sluice/internal/docrules"
)

// A tombstone in place of an item's document is reported once, as missing, also if its
// version is too low.
func TestTombstoneOfAnItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1)
		w.sequence = true
		w.change("a", false, false)
		w.change("b", false, false)
		w.pipes.Wait()
		body := docrules.WithMark([]byte("{}"), "m", document.Mark{Sequence: stamp(9000), Deleted: "2026-01-01T00:00:00Z"})
		w.docs["a"] = doc{1, string(body), w.writes}
		a := w.audit()
		a.Marks = &Marks{Field: "m", LeastVersion: leastVersion, Tombstones: w.Tombstones}
		r, err := a.Run(t.Context())
		if want := (Result{Items: 2, Documents: 2, Listed: 1, Missing: 1}); err != nil || r != want {
			t.Errorf("%+v, %v, want %+v", r, err, want)
		}
	})
}

// A change that is written right after a repair is no reason to call the repair
// refused.
func TestChangedRightAfterTheRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ghosts(2, 0)
		delete(w.docs, "k0000")
		a := w.audit()
		a.Write = func(ctx context.Context, op document.Op) error {
			err := w.Write(ctx, op)
			op.Version, op.Body = op.Version+1, []byte(`{"newer":true}`)
			return errors.Join(err, w.Write(ctx, op))
		}
		r, err := a.Run(t.Context())
		if want := (Result{Items: 2, Documents: 2, Listed: 2, Missing: 1, Repaired: 1}); err != nil || r != want {
			t.Errorf("%+v, %v, want %+v", r, err, want)
		}
	})
}

// An item that the first scan could not project, and the second does not find, may
// have any of the documents.
func TestFailedProjectionOfTheFirstScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := ghosts(100, 1)
		w.items["k0000"] = row{rev: 1, text: "bad"}
		a := w.audit()
		scan, scans := a.Scan, 0
		a.Scan = func(ctx context.Context) iter.Seq2[*sluice.Record, error] {
			if scans++; scans == 2 {
				delete(w.items, "k0000")
			}
			return scan(ctx)
		}
		r, err := a.Run(t.Context())
		if want := (Result{Items: 100, Documents: 99, Listed: 101, Failed: 1, Unchecked: 2}); err != nil || r != want {
			t.Errorf("%+v, %v, want %+v", r, err, want)
		}
	})
}

// Documents that the run itself has written do not make ghosts few.
func TestBrakeLeavesOutWhatWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := foreign(3, 300)
		a := w.audit()
		a.Write, a.Indices, a.TrustTables = w.Write, []string{"things"}, true
		_, err := a.Run(t.Context())
		if got, _ := errors.AsType[*BrakeError](err); got == nil || *got != (BrakeError{Ghosts: 3, Documents: 3, Allowed: 1}) {
			t.Errorf("%v", err)
		}
	})
}
