package statestore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice/state"
)

// unreadable fails to read a value n times.
type unreadable struct {
	Store
	n int
}

func (u *unreadable) GetValue(ctx context.Context, app, name string) ([]byte, bool, error) {
	if u.n--; u.n >= 0 {
		return nil, false, errDown
	}
	return u.Store.GetValue(ctx, app, name)
}

// One failed read of the mark, of a target that has state.
func TestCopyFailedReadOfTheMark(t *testing.T) {
	to := filled(t, file(t), 3)
	want := dump(t, to)
	_, err := Copy(t.Context(), file(t), &unreadable{to, 1}, app, false, func() {})
	if have := dump(t, to); have != want {
		t.Errorf("Copy: %v; the target had\n%s\nand has\n%s", err, want, have)
	}
}

// unreleased fails to release a shard.
type unreleased struct{ Store }

func (u unreleased) Release(ctx context.Context, l state.Lease) error {
	if l.ShardID == "shard-5" {
		return errDown
	}
	return u.Store.Release(ctx, l)
}

// The release of the source fails.
func TestCopyFailedReleaseOfTheSource(t *testing.T) {
	from, to := filled(t, file(t), 1), file(t)
	_, err := Copy(t.Context(), unreleased{from}, to, app, false, func() {})
	if err == nil {
		t.Fatal("no error")
	}
	if ready := Ready(t.Context(), to, app); ready == nil {
		_, again := Copy(t.Context(), from, to, app, false, func() {})
		t.Errorf("Copy: %v, but the target is ready; the next copy: %v", err, again)
	}
}

// A worker takes a shard of the source during the copy, and settles a record.
func TestCopyLostClaimOfTheSource(t *testing.T) {
	from, to := filled(t, file(t), 1), file(t)
	once := false
	_, err := Copy(t.Context(), from, to, app, false, func() {
		if once {
			return
		}
		once = true
		all, _ := from.Shards(t.Context(), orders)
		for _, sh := range all {
			if sh.ID == "shard-5" {
				_ = from.Release(t.Context(), lease(orders, sh))
				got, err := from.Claim(t.Context(), orders, sh.ID, "", "worker")
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(from.Checkpoint(t.Context(), []state.Checkpoint{{Lease: lease(orders, got), Position: state.Position{Sequence: "4421584500000000017450439099"}}})...); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	if ready := Ready(t.Context(), to, app); err == nil || ready == nil {
		t.Errorf("Copy: %v; the target is ready: %v", err, ready)
	}
}

// A second copy begins while the first runs.
func TestCopyTwoCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := filled(t, file(t), 5), file(t)
		want := dump(t, from)
		rows := 0
		_, err := Copy(t.Context(), from, to, app, false, func() {
			if rows++; rows == 7 { // its letters are copied
				if _, err := Copy(t.Context(), from, to, app, false, func() {}); err == nil {
					t.Error("the second copy has ended beside the first")
				}
			}
		})
		have := dump(t, to)
		if err == nil && have != want {
			t.Errorf("the first: %v, ready: %v; the target has\n%s\nwant\n%s", err, Ready(t.Context(), to, app), have, want)
		}
	})
}

// A shard that nobody has read stays one.
func TestCopyPastShards(t *testing.T) {
	from, to := filled(t, file(t), 0), file(t)
	if _, err := Copy(t.Context(), from, to, app, false, func() {}); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Store{"source": from, "target": to} {
		all, _ := s.Shards(t.Context(), orders)
		for _, sh := range all {
			if sh.ID == "before-the-start" && sh.Epoch > 0 {
				t.Errorf("%s: %+v", name, sh)
			}
		}
	}
}
