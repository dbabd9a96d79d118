package deadletter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/state"
)

func createdAt(key string, n int, at time.Time) *sluice.Record {
	rec := recordtest.New(recordtest.Spec{Keys: `{"pk":{"S":"` + key + `"}}`, Sequence: recordtest.Sequence(n), Shard: "shard", Created: at})
	return &rec
}

// What succeeds when it comes again has no letter any more: neither of its route
// nor of all routes. Letters of other routes, records and items stay.
func TestHandledDeletesTheLetter(t *testing.T) {
	for _, restart := range []bool{false, true} {
		store := state.NewMemory()
		b := NewBox(store, "app")
		rec, other := record("a", 10), record("a", 20)
		park(t, b, rec, "r")
		park(t, b, rec, "s")
		park(t, b, rec, "")
		park(t, b, other, "r")
		if restart {
			b = NewBox(store, "app")
		}
		if held, err := b.Holds(t.Context(), other, "r"); !held || err != nil {
			t.Errorf("held: %v, %v", held, err)
		}
		if err := b.Handled(t.Context(), rec, "r"); err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(list(t, b)); got != "[test/10/s test/20/r]" {
			t.Errorf("restart %v: left are %s", restart, got)
		}
		if held, err := b.Holds(t.Context(), other, "r"); held || err != nil {
			t.Errorf("restart %v: held still: %v, %v", restart, held, err)
		}
	}
}

// asked counts the calls of a store.
type asked struct {
	state.Letters
	n     int
	lists []string          // ids after which letters were listed
	list  func(n int) error // called after the n-th answer of a list is made; nil: nothing
}

func (a *asked) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	letters, err := a.Letters.ListLetters(ctx, app, after, limit)
	if a.lists = append(a.lists, after); a.list != nil {
		err = errors.Join(err, a.list(len(a.lists)))
	}
	return letters, err
}

func (a *asked) GetLetter(ctx context.Context, app, id string) ([]byte, bool, error) {
	a.n++
	return a.Letters.GetLetter(ctx, app, id)
}

// The letter that another process left is deleted, once the box adopts its shard.
func TestHandledAfterATakeOver(t *testing.T) {
	store := state.NewMemory()
	first, second := NewBox(store, "app"), NewBox(store, "app")
	if err := second.Handled(t.Context(), record("a", 1), "r"); err != nil {
		t.Fatal(err)
	}
	rec := record("a", 2)
	park(t, first, rec, "r")
	second.Adopt(rec.ShardID)
	if err := second.Handled(t.Context(), rec, "r"); err != nil || len(list(t, second)) != 0 {
		t.Errorf("%v, left are %v", err, list(t, second))
	}
}

// inShard returns a record of a shard.
func inShard(shard string, n int) *sluice.Record {
	rec := record("a", n)
	rec.ShardID = shard
	return rec
}

// One list serves all shards that were adopted before it. Records of other shards wait for
// none.
func TestAdoptedShardsShareAList(t *testing.T) {
	store := &asked{Letters: state.NewMemory()}
	b := NewBox(store, "app")
	handled := func(rec *sluice.Record, lists int) {
		t.Helper()
		store.lists = nil
		if err := b.Handled(t.Context(), rec, "r"); err != nil || len(store.lists) != lists {
			t.Errorf("%d lists, want %d; %v", len(store.lists), lists, err)
		}
	}
	handled(inShard("old", 1), 1)
	for i := range 100 {
		b.Adopt(fmt.Sprint("new ", i))
	}
	handled(inShard("old", 2), 0)
	handled(inShard("new 50", 3), 1)
	for i := range 100 {
		handled(inShard(fmt.Sprint("new ", i), 4+i), 0)
	}
	if n := len(b.parked.adopted); n > 0 {
		t.Errorf("%d covered adoptions are kept", n)
	}
	b.Adopt("old")
	handled(inShard("old", 200), 1)
}

// A shard that is adopted while letters are listed needs another list: the first may be
// past the letter. An error only interrupts a list.
func TestAdoptWhileLettersAreListed(t *testing.T) {
	for _, fails := range []bool{false, true} {
		store := &asked{Letters: state.NewMemory()}
		mine, theirs := NewBox(store, "app"), NewBox(store.Letters, "app")
		park(t, theirs, inShard("first", 5), "r")
		late := inShard("second", 1)
		mine.Adopt("first")
		store.list = func(n int) error {
			switch n {
			case 1: // the list is past the id of late
				park(t, theirs, late, "r")
				mine.Adopt("second")
			case 2:
				if fails {
					return errDisk
				}
			}
			return nil
		}
		err := mine.Handled(t.Context(), inShard("first", 5), "r")
		if fails {
			if !errors.Is(err, errDisk) {
				t.Errorf("%v, want %v", err, errDisk)
			}
			err = mine.Handled(t.Context(), inShard("first", 5), "r")
		}
		if err != nil {
			t.Error(err)
		}
		first := len(store.lists)
		err = mine.Handled(t.Context(), late, "r")
		lists := store.lists
		if left := list(t, theirs); err != nil || len(left) != 0 {
			t.Errorf("%v, left are %v", err, left)
		}
		for i, after := range lists {
			if (after == "") != (i == 0 || i == first) {
				t.Errorf("fails %v: lists after %q, of which %d for the first shard", fails, lists, first)
			}
		}
	}
}

// The store is asked only for records that may have a letter.
func TestHandledAsksForFewRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &asked{Letters: state.NewMemory()}
		b := NewBox(store, "app")
		now := time.Now()
		handled := func(b *Box, rec *sluice.Record, gets int) {
			t.Helper()
			store.n = 0
			if err := b.Handled(t.Context(), rec, "r"); err != nil || store.n != gets {
				t.Errorf("%d letters were asked for, want %d; %v", store.n, gets, err)
			}
		}
		handled(b, createdAt("a", 1, now), 0)
		park(t, b, createdAt("a", 2, now), "r")
		handled(b, createdAt("a", 3, now), 0)
		handled(b, createdAt("a", 1, now), 0)
		handled(b, createdAt("a", 2, now), 2)
		unnumbered := record("a", 9)
		unnumbered.Sequence = ""
		handled(b, unnumbered, 0)
		park(t, b, unnumbered, "r")
		handled(b, unnumbered, 2)

		b = NewBox(store, "app") // a restart
		park(t, b, createdAt("b", 4, now), "r")
		b = NewBox(store, "app")
		handled(b, createdAt("b", 5, now), 0)
		handled(b, createdAt("b", 4, now), 2)
		if got := fmt.Sprint(list(t, b)); got != "[]" {
			t.Errorf("left are %s", got)
		}
	})
}

// several is a store that other processes have, too.
type several struct{ *asked }

func (several) SilentAfter() time.Duration { return time.Second }

// Any process can have received a message before. A table's record has a letter of
// another process only if its shard was adopted.
func TestHandledInASharedStore(t *testing.T) {
	store := several{&asked{Letters: state.NewMemory()}}
	b := NewBox(store, "app")
	message := record("a", 9)
	message.Sequence, message.EventName = "", sluice.Delivery
	for _, tt := range []struct {
		rec  *sluice.Record
		gets int
	}{{message, 2}, {record("a", 1), 0}} {
		store.n = 0
		if err := b.Handled(t.Context(), tt.rec, "r"); err != nil || store.n != tt.gets {
			t.Errorf("%s: %d letters were asked for, want %d; %v", tt.rec.EventName, store.n, tt.gets, err)
		}
	}
}

// An entry that another process parked or deleted counts for a redrive by id.
func TestRedriveInASharedStore(t *testing.T) {
	store := several{&asked{Letters: state.NewMemory()}}
	b, other := NewBox(store, "app"), NewBox(store, "app")
	first, second := record("a", 1), record("a", 2)
	park(t, b, second, "r")
	routes := anyMatcher{{Name: "r", Redrive: true, Handler: func(context.Context, *sluice.Record) error { return nil }}}
	redrive := func() error { return b.Redrive(t.Context(), routes, b.ID(second, "r"), How{}) }
	park(t, other, record("b", 1), "r")
	if err := b.Redrive(t.Context(), routes, b.ID(record("b", 1), "r"), How{}); err != nil {
		t.Fatal(err)
	}
	park(t, other, first, "r")
	if err := redrive(); err == nil || !strings.Contains(err.Error(), b.ID(first, "r")) {
		t.Errorf("an earlier change of another process: %v", err)
	}
	if err := other.Delete(t.Context(), b.ID(first, "r")); err != nil {
		t.Fatal(err)
	}
	if err := redrive(); err != nil {
		t.Errorf("once it is deleted: %v", err)
	}
}

// A store that fails is told, and the letter stays.
func TestHandledWithABrokenStore(t *testing.T) {
	for _, op := range []string{"list", "get", "delete"} {
		t.Run(op, func(t *testing.T) {
			store := &faulty{Letters: state.NewMemory()}
			rec := record("a", 10)
			park(t, NewBox(store, "app"), rec, "r")
			b := NewBox(store, "app")
			store.fails = op
			if err := b.Handled(t.Context(), rec, "r"); !errors.Is(err, errDisk) {
				t.Errorf("%v, want %v", err, errDisk)
			}
			store.fails = ""
			if err := b.Handled(t.Context(), rec, "r"); err != nil || len(list(t, b)) != 0 {
				t.Errorf("%v, left are %v", err, list(t, b))
			}
		})
	}
}
