package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// faulty are letters of which one operation fails.
type faulty struct {
	state.Letters
	fails string
}

func (f *faulty) err(op string) error {
	if f.fails == op {
		return errDisk
	}
	return nil
}

func (f *faulty) PutLetter(ctx context.Context, app, id string, data []byte) error {
	if err := f.err("put"); err != nil {
		return err
	}
	return f.Letters.PutLetter(ctx, app, id, data)
}

func (f *faulty) GetLetter(ctx context.Context, app, id string) ([]byte, bool, error) {
	if err := f.err("get"); err != nil {
		return nil, false, err
	}
	return f.Letters.GetLetter(ctx, app, id)
}

func (f *faulty) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	if err := f.err("list"); err != nil {
		return nil, err
	}
	return f.Letters.ListLetters(ctx, app, after, limit)
}

func (f *faulty) DeleteLetter(ctx context.Context, app, id string) error {
	if err := f.err("delete"); err != nil {
		return err
	}
	return f.Letters.DeleteLetter(ctx, app, id)
}

// A store that fails is told of by whatever needs it, and no letter is gone then:
// what was not stored is not taken for stored, nor what was not deleted for deleted.
func TestStoreFails(t *testing.T) {
	g := gap("s1", 5)
	m := router.New()
	var c calls
	m.Handle("*#*", c.handle, router.Name("r"), router.Redrive())
	bad := router.New()
	bad.Handle("*#*", func(context.Context, *sluice.Record) error { return errors.New("still down") }, router.Name("r"), router.Redrive())
	for _, tt := range []struct {
		what, fails string
		do          func(ctx context.Context, b *Box, id string) error
	}{
		{"park", "put", func(ctx context.Context, b *Box, _ string) error {
			err := b.Park(ctx, record("other", 20), failure("r"))
			if held, _ := b.Holds(ctx, record("other", 21), "r"); held {
				t.Error("an item is held by what was not stored")
			}
			return err
		}},
		{"park a gap", "put", func(ctx context.Context, b *Box, _ string) error { return b.ParkGap(ctx, gap("s2", 6)) }},
		{"acknowledge", "delete", func(ctx context.Context, b *Box, _ string) error { return b.AcknowledgeGap(ctx, g) }},
		{"delete", "delete", func(ctx context.Context, b *Box, id string) error {
			err := b.Delete(ctx, id)
			if held, herr := b.Holds(ctx, record("a", 11), "r"); !held || herr != nil {
				t.Errorf("what could not be deleted holds its item no more: %v", herr)
			}
			return err
		}},
		{"get", "get", func(ctx context.Context, b *Box, id string) error { _, err := b.Get(ctx, id); return err }},
		{"list", "list", func(ctx context.Context, b *Box, _ string) error { _, _, err := b.List(ctx, "", 10); return err }},
		{"gaps", "list", func(ctx context.Context, b *Box, _ string) error { _, err := b.Gaps(ctx); return err }},
		{"all", "list", func(ctx context.Context, b *Box, _ string) error {
			return b.All(ctx, Filter{}, func(Entry) error { return nil })
		}},
		{"counts", "list", func(ctx context.Context, b *Box, _ string) error {
			_, err := (&Box{letters: listed{b.letters}, app: "app"}).Counts(ctx)
			return err
		}},
		{"load", "list", func(ctx context.Context, b *Box, _ string) error { return b.Load(ctx) }},
		{"holds", "list", func(ctx context.Context, b *Box, _ string) error {
			_, err := b.Holds(ctx, record("a", 11), "r")
			return err
		}},
		{"purge", "list", func(ctx context.Context, b *Box, _ string) error { _, err := b.Purge(ctx, Filter{}, false); return err }},
		{"purge that cannot look again", "get", func(ctx context.Context, b *Box, _ string) error {
			n, err := b.Purge(ctx, Filter{}, false)
			if n != 0 {
				t.Errorf("%d purged", n)
			}
			return err
		}},
		{"purge that cannot delete", "delete", func(ctx context.Context, b *Box, _ string) error { _, err := b.Purge(ctx, Filter{}, false); return err }},
		{"redrive", "get", func(ctx context.Context, b *Box, id string) error { return b.Redrive(ctx, m, id, How{}) }},
		{"redrive that cannot see what is before it", "list", func(ctx context.Context, b *Box, id string) error { return b.Redrive(ctx, m, id, How{}) }},
		{"redrive that cannot delete", "delete", func(ctx context.Context, b *Box, id string) error { return b.Redrive(ctx, m, id, How{}) }},
		{"redrive that cannot keep its error", "put", func(ctx context.Context, b *Box, id string) error { return b.Redrive(ctx, bad, id, How{}) }},
		{"redrive of all", "list", func(ctx context.Context, b *Box, _ string) error {
			_, err := b.RedriveAll(ctx, m, Filter{}, How{})
			return err
		}},
		{"redrive of all that cannot delete", "delete", func(ctx context.Context, b *Box, _ string) error {
			r, err := b.RedriveAll(ctx, m, Filter{}, How{})
			if r.Done != 0 || r.Failed != 1 {
				t.Errorf("report %+v", r)
			}
			return err
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			letters := &faulty{Letters: state.NewMemory()}
			b := NewBox(letters, "app")
			one := park(t, b, record("a", 10), "r")
			parkGap(t, b, g)
			before := list(t, b)
			letters.fails = tt.fails
			if err := tt.do(t.Context(), NewBox(letters, "app"), one); !errors.Is(err, errDisk) {
				t.Errorf("%v, want what the store says", err)
			}
			letters.fails = ""
			if got := list(t, b); !slices.Equal(got, before) || len(got) != 2 {
				t.Errorf("left %q, want %q", got, before)
			}
		})
	}
}

// listed are letters that cannot list heads alone.
type listed struct{ state.Letters }

// A sender's failure is the parking's: whoever parks tries it again.
func TestSenderFails(t *testing.T) {
	s := Sender(func(_ context.Context, e Entry, _ []byte) error { return fmt.Errorf("%s: %w", e.ID, errDisk) })
	if err := s.Park(t.Context(), record("a", 10), failure("r")); !errors.Is(err, errDisk) {
		t.Errorf("a record: %v", err)
	}
	if err := s.ParkGap(t.Context(), gap("s1", 5)); !errors.Is(err, errDisk) || !strings.Contains(err.Error(), gapID(gap("s1", 5))) {
		t.Errorf("a gap: %v", err)
	}
}

// What fails again after it was read is another failure, whatever of it is the same.
func TestSameFailure(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := Entry{ID: "id", Attempts: 3, Redrives: 2, ParkedAt: at, First: Fault{At: at, Error: "first"}, Last: Fault{At: at, Error: "last"}}
	for what, change := range map[string]func(*Entry){
		"attempts": func(e *Entry) { e.Attempts++ }, "redrives": func(e *Entry) { e.Redrives++ }, "time": func(e *Entry) { e.ParkedAt = at.Add(1) },
		"last": func(e *Entry) { e.Last.Error = "x" }, "time of the last": func(e *Entry) { e.Last.At = at.Add(1) }, "first": func(e *Entry) { e.First.Error = "x" },
	} {
		o := e
		if !e.sameFailure(&o) {
			t.Errorf("%s: the same is another", what)
		}
		if change(&o); e.sameFailure(&o) {
			t.Errorf("another %s is the same failure", what)
		}
	}
}

// Who is told of a redrive is told what each entry waits for.
func TestToldOfWaiting(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	m := router.New()
	m.Handle("*#*", func(context.Context, *sluice.Record) error { return errors.New("still down") }, router.Name("r"), router.Redrive())
	one, two := park(t, b, record("a", 10), "r"), park(t, b, record("a", 20), "r")
	lost := gap("s1", 5)
	three := parkGap(t, b, lost)
	var told []string
	how := How{Earlier: true, Told: func(o Outcome) { told = append(told, fmt.Sprintf("%s %s %q %s", o.ID, o.Result, o.Earlier, o.Note)) }}
	if err := b.Redrive(t.Context(), m, two, how); err == nil || !strings.Contains(err.Error(), "still down") {
		t.Error(err)
	}
	failed, waits := fmt.Sprintf("%s failed [] ", one), fmt.Sprintf("%s waiting [%q] ", two, one)
	if want := []string{failed, waits}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	told, how.Earlier = nil, false
	if r, err := b.RedriveAll(t.Context(), m, Filter{}, how); err != nil || r != (Report{Failed: 1, Waiting: 1, Gaps: 1}) {
		t.Errorf("%+v, %v", r, err)
	}
	if want := []string{failed, waits, fmt.Sprintf("%s gap [] %s", three, lost)}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	err := b.Redrive(t.Context(), m, two, How{})
	if err == nil || !strings.Contains(err.Error(), two+": earlier changes of its item are still parked: "+one+";") {
		t.Errorf("%v", err)
	}
}

// An entry keeps what a stored one says of where and when it failed.
func TestOriginAndDetailsAreStored(t *testing.T) {
	rec := record("a", 10)
	rec.Origin = sluice.Backfilled
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := NewBox(state.NewMemory(), "app")
	before := time.Now()
	if err := b.Park(t.Context(), rec, sluice.Failure{Route: "r", First: errors.New("one"), FirstAt: at, Last: errors.New("two"), LastAt: at.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	e, err := b.Get(t.Context(), idOf(rec, "r"))
	if err != nil || e.Origin != sluice.Backfilled || !e.First.At.Equal(at) || !e.Last.At.Equal(at.Add(time.Hour)) || e.ParkedAt.Before(before.Add(-time.Second)) || e.EventID != rec.EventID {
		t.Errorf("%+v, %v", e, err)
	}
	gone := gap("s1", 5)
	gone.Gone = true
	parkGap(t, b, gone)
	if got, err := b.Gaps(t.Context()); err != nil || len(got) != 1 || !got[0].Gone {
		t.Errorf("%+v, %v", got, err)
	}
}
