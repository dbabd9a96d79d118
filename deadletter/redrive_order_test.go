package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/state"
)

// Two people work on the same letters: what one has deleted while the other's
// redrive was on its way there is not run.
func TestDeletedWhileOthersAreRedriven(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	park(t, b, record("a", 10), "r")
	second := park(t, b, record("b", 20), "r")
	var got []int
	m := router.New()
	m.Handle("*#*", func(ctx context.Context, rec *sluice.Record) error {
		got = append(got, recordtest.Nth(rec.Sequence))
		return b.Delete(ctx, second)
	}, router.Name("r"), router.Redrive())
	report, err := b.RedriveAll(t.Context(), m, Filter{}, How{})
	if err != nil || report != (Report{Done: 1}) || !slices.Equal(got, []int{10}) {
		t.Errorf("%+v, %v; it ran %v, want 10 alone", report, err, got)
	}
}

// So too behind the earlier ones that a single redrive was asked to run first.
func TestDeletedWhileEarlierOnesAreRedriven(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	park(t, b, record("a", 10), "r")
	later := park(t, b, record("a", 20), "r")
	var got []int
	m := router.New()
	m.Handle("*#*", func(ctx context.Context, rec *sluice.Record) error {
		got = append(got, recordtest.Nth(rec.Sequence))
		return b.Delete(ctx, later)
	}, router.Name("r"), router.Redrive())
	err := b.Redrive(t.Context(), m, later, How{Earlier: true})
	if !errors.Is(err, ErrNotFound) || !slices.Equal(got, []int{10}) {
		t.Errorf("%v; it ran %v, want 10 alone", err, got)
	}
}

// An entry that cannot be read may be of any item: what comes behind it waits,
// unless it is forced. What comes before it does not.
func TestRedriveBehindUnreadable(t *testing.T) {
	letters := state.NewMemory()
	b := NewBox(letters, "app")
	park(t, b, record("a", 10), "r")
	middle := record("a", 20)
	damaged := idOf(middle, "r")
	if err := letters.PutLetter(t.Context(), "app", damaged, fmt.Appendf(nil, `{"version":9,"id":%q,"position":{"streamArn":%q,"sequence":%q}}`, damaged, middle.StreamARN, middle.Sequence)); err != nil {
		t.Fatal(err)
	}
	behind := park(t, b, record("a", 30), "r")
	var c calls
	m := router.New()
	m.Handle("*#*", c.handle, router.Name("r"), router.Redrive())
	var last Outcome
	report, err := b.RedriveAll(t.Context(), m, Filter{}, How{Told: func(o Outcome) { last = o }})
	if report != (Report{Done: 1, Waiting: 1}) || !slices.Equal(c.got, []string{"10 redriven"}) || !strings.Contains(fmt.Sprint(err), damaged) {
		t.Errorf("%+v, %v; it ran %v", report, err, c.got)
	}
	if last.ID != behind || last.Result != Waiting || !slices.Equal(last.Earlier, []string{damaged}) || !strings.Contains(last.Note, "cannot be read") {
		t.Errorf("%+v", last)
	}
	if report, _ := b.RedriveAll(t.Context(), m, Filter{}, How{Force: true}); report != (Report{Done: 1}) {
		t.Errorf("by force: %+v", report)
	}
}

// All of a newer version's letters, which the older one finds after a step back,
// are not named with each that waits.
func TestRedriveBehindManyUnreadable(t *testing.T) {
	letters := state.NewMemory()
	b := NewBox(letters, "app")
	for i := range 5 {
		id := idOf(record("a", 10+i), "r")
		if err := letters.PutLetter(t.Context(), "app", id, fmt.Appendf(nil, `{"version":9,"id":%q}`, id)); err != nil {
			t.Fatal(err)
		}
	}
	park(t, b, record("b", 20), "r")
	var told Outcome
	if report, _ := b.RedriveAll(t.Context(), router.New(), Filter{}, How{Told: func(o Outcome) { told = o }}); report != (Report{Waiting: 1}) {
		t.Errorf("%+v", report)
	}
	if len(told.Earlier) != 3 || !strings.Contains(told.Note, " and 2 more cannot be read") {
		t.Errorf("%+v", told)
	}
}

// failsOnce is a store that cannot be read for a moment, after some lists.
type failsOnce struct {
	state.Letters
	after int
}

var errDisk = errors.New("disk")

func (f *failsOnce) ListLetters(ctx context.Context, app, after string, limit int) ([]state.Letter, error) {
	if f.after--; f.after == 0 {
		return nil, errDisk
	}
	return f.Letters.ListLetters(ctx, app, after, limit)
}

// Where the store cannot be read for a moment, no later stream of a table is run
// before an older one.
func TestRedriveWhenTheStoreFails(t *testing.T) {
	for after := 1; after <= 6; after++ {
		letters := &failsOnce{Letters: state.NewMemory()}
		b := NewBox(letters, "app")
		park(t, b, itemOn(earlierARN, "a", 20), "r")
		park(t, b, itemOn(laterARN, "a", 10), "r")
		var c calls
		m := router.New()
		m.Handle("*#*", c.handle, router.Name("r"), router.Redrive())
		letters.after = after
		_, err := b.RedriveAll(t.Context(), m, Filter{}, How{})
		if letters.after > 0 { // it did not come to that
			continue
		}
		if !errors.Is(err, errDisk) || len(c.got) > 0 && c.got[0] != "20 redriven" {
			t.Errorf("list %d fails: %v, it ran %v", after, err, c.got)
		}
	}
}

// What one route of an entry for all becomes is not counted, nor run, once more.
func TestRedriveAllTakesWhatWasThere(t *testing.T) {
	for seq := range 20 { // whose ids sort this way and that
		b := NewBox(state.NewMemory(), "app")
		park(t, b, record("a", 100+seq), "")
		c := calls{answer: func(*sluice.Record) error { return errors.New("down") }}
		m := router.New()
		m.Handle("*#*", c.handle, router.Name("r"), router.Redrive())
		report, _ := b.RedriveAll(t.Context(), m, Filter{}, How{})
		if report != (Report{Failed: 1}) || len(c.got) != 1 {
			t.Fatalf("%d: %+v, %v", seq, report, c.got)
		}
	}
}

// Who gives up waiting for another's redrive gets an answer.
func TestRedriveIsNotWaitedForForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBox(state.NewMemory(), "app")
		id := park(t, b, record("a", 10), "r")
		stuck := make(chan struct{})
		m := router.New()
		m.Handle("*#*", func(context.Context, *sluice.Record) error { <-stuck; return nil }, router.Name("r"), router.Redrive())
		ended := make(chan error)
		go func() { ended <- b.Redrive(t.Context(), m, id, How{}) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan error, 3)
		go func() { answers <- b.Redrive(ctx, m, id, How{}) }()
		go func() { _, err := b.RedriveAll(ctx, m, Filter{}, How{}); answers <- err }()
		go func() { _, err := b.Purge(ctx, Filter{}, false); answers <- err }()
		synctest.Wait()
		cancel()
		for range 3 {
			if err := <-answers; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "another redrive or purge") {
				t.Error(err)
			}
		}
		close(stuck)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// What cannot be read has its place among the streams of its table, too: a later
// one may have numbers that are lower. It keeps nobody waiting of another table,
// nor what came before it.
func TestRedriveBehindUnreadableOfAnotherStream(t *testing.T) {
	at20 := func(arn string) string {
		return fmt.Sprintf(`{"streamArn":%q,"sequence":%q}`, arn, recordtest.Sequence(20))
	}
	otherTable := strings.Replace(recordtest.ARN, ":table/", ":table/other-", 1)
	for name, tt := range map[string]struct {
		unread string // its position
		entry  *sluice.Record
		waits  bool
	}{
		"an earlier stream, a greater number":          {at20(earlierARN), record("a", 10), true},
		"a later stream, a lower number":               {at20(laterARN), record("a", 30), false},
		"another table":                                {at20(otherTable), record("a", 30), false},
		"the same stream, a lower number":              {at20(recordtest.ARN), record("a", 30), true},
		"the same stream, a greater number":            {at20(recordtest.ARN), record("a", 10), false},
		"the same stream, no number":                   {`{"streamArn":"` + recordtest.ARN + `"}`, record("a", 10), true},
		"what it says is of another entry":             {at20(laterARN) + `,"id":"other"`, record("a", 10), true},
		"nobody knows which stream, a lower number":    {`{}`, record("a", 30), true},
		"nobody knows which stream, a greater number":  {`{}`, record("a", 10), true},
		"nobody knows which stream, an entry of a gap": {"gap", record("a", 10), false},
	} {
		t.Run(name, func(t *testing.T) {
			letters := state.NewMemory()
			b := NewBox(letters, "app")
			damaged := idOf(record("a", 20), "r")
			if tt.unread == "gap" {
				damaged, tt.unread = gapID(gap("s", 1)), "{}"
			}
			if err := letters.PutLetter(t.Context(), "app", damaged, fmt.Appendf(nil, `{"version":9,"id":%q,"position":%s}`, damaged, tt.unread)); err != nil {
				t.Fatal(err)
			}
			id := park(t, b, tt.entry, "r")
			m := router.New()
			m.Handle("*#*", (&calls{}).handle, router.Name("r"), router.Redrive())
			for _, one := range []bool{true, false} {
				var told Outcome
				how := How{DryRun: true, Told: func(o Outcome) { told = o }}
				if one {
					err := b.Redrive(t.Context(), m, id, how)
					if err != nil != tt.waits || tt.waits && !strings.Contains(err.Error(), damaged+" cannot be read") {
						t.Errorf("by its id: %v", err)
					}
				} else if _, err := b.RedriveAll(t.Context(), m, Filter{}, how); err == nil || !strings.Contains(err.Error(), damaged) {
					t.Errorf("all: %v", err)
				}
				if told.ID != id || (told.Result == Waiting) != tt.waits || slices.Equal(told.Earlier, []string{damaged}) != tt.waits || strings.Contains(told.Note, "cannot be read") != tt.waits {
					t.Errorf("one %v: told %+v", one, told)
				}
			}
		})
	}
}

// Once the one that cannot be read is deleted, or parked anew, a single redrive
// goes on; what it holds is known again.
func TestRedriveOfOneOnceTheUnreadableIsDealtWith(t *testing.T) {
	for name, deal := range map[string]func(*Box, *sluice.Record) error{
		"deleted":     func(b *Box, rec *sluice.Record) error { return b.Delete(t.Context(), idOf(rec, "r")) },
		"parked anew": func(b *Box, rec *sluice.Record) error { return b.Park(t.Context(), rec, failure("r")) },
	} {
		t.Run(name, func(t *testing.T) {
			letters := state.NewMemory()
			b := NewBox(letters, "app")
			rec := record("b", 20)
			damaged := idOf(rec, "r")
			if err := letters.PutLetter(t.Context(), "app", damaged, []byte("{")); err != nil {
				t.Fatal(err)
			}
			id := park(t, b, record("a", 30), "r")
			m := router.New()
			m.Handle("*#*", (&calls{}).handle, router.Name("r"), router.Redrive())
			if err := b.Redrive(t.Context(), m, id, How{}); err == nil || !strings.Contains(err.Error(), damaged) {
				t.Errorf("while it is there: %v", err)
			}
			if _, err := b.Holds(t.Context(), record("c", 40), "r"); err == nil || !strings.Contains(err.Error(), damaged) {
				t.Errorf("which items are held: %v", err)
			}
			if err := deal(b, rec); err != nil {
				t.Fatal(err)
			}
			if held, err := b.Holds(t.Context(), record("c", 40), "r"); held || err != nil {
				t.Errorf("afterwards: %v, %v", held, err)
			}
			if err := b.Redrive(t.Context(), m, id, How{}); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// An entry for all routes runs each of them: behind what is parked of each, also
// when it is only one of the earlier ones.
func TestEarlierOnesOfAnEntryForAllRoutes(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	park(t, b, record("a", 10), "s")
	park(t, b, record("a", 20), "")
	id := park(t, b, record("a", 30), "r")
	park(t, b, record("a", 25), "s") // which 30 has nothing to do with
	var got []string
	m := router.New()
	for _, route := range []string{"r", "s"} {
		m.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			got = append(got, fmt.Sprint(route, " ", recordtest.Nth(rec.Sequence)))
			return nil
		}, router.Name(route), router.Redrive())
	}
	err := b.Redrive(t.Context(), m, id, How{Earlier: true})
	if want := []string{"s 10", "r 20", "s 20", "r 30"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v; it ran %q, want %q", err, got, want)
	}
}

// What waits holds what comes behind it, for all routes that it is of.
func TestRedriveBehindOneThatWaits(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	park(t, b, record("a", 10), "s")
	park(t, b, record("a", 20), "")
	park(t, b, record("a", 30), "r")
	var got []string
	m := router.New()
	for _, route := range []string{"r", "s"} {
		m.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
			got = append(got, fmt.Sprint(route, " ", recordtest.Nth(rec.Sequence)))
			return errors.New("down")
		}, router.Name(route), router.Redrive())
	}
	report, _ := b.RedriveAll(t.Context(), m, Filter{}, How{})
	if report != (Report{Failed: 1, Waiting: 2}) || !slices.Equal(got, []string{"s 10"}) {
		t.Errorf("%+v; it ran %q, want 10 alone", report, got)
	}
}

// An earlier one that somebody has deleted meanwhile is not waited for.
func TestEarlierOneIsDeletedMeanwhile(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	park(t, b, record("a", 10), "r")
	second := park(t, b, record("a", 20), "r")
	id := park(t, b, record("a", 30), "r")
	var got []int
	m := router.New()
	m.Handle("*#*", func(ctx context.Context, rec *sluice.Record) error {
		got = append(got, recordtest.Nth(rec.Sequence))
		return b.Delete(ctx, second)
	}, router.Name("r"), router.Redrive())
	if err := b.Redrive(t.Context(), m, id, How{Earlier: true}); err != nil || !slices.Equal(got, []int{10, 30}) {
		t.Errorf("%v; it ran %v, want 10 and 30", err, got)
	}
}

// What somebody has deleted while its handler ran stays deleted, whatever came of it.
func TestDeletedWhileItIsRedriven(t *testing.T) {
	for _, route := range []string{"r", ""} {
		b := NewBox(state.NewMemory(), "app")
		id := park(t, b, record("a", 10), route)
		m := router.New()
		m.Handle("*#*", func(ctx context.Context, _ *sluice.Record) error {
			return errors.Join(errors.New("still down"), b.Delete(ctx, id))
		}, router.Name("r"), router.Redrive())
		var told Outcome
		err := b.Redrive(t.Context(), m, id, How{Told: func(o Outcome) { told = o }})
		if err == nil || told.Result != Failed || !strings.Contains(told.Error, "still down") || !strings.Contains(told.Error, "it was deleted meanwhile, and is not parked again") {
			t.Errorf("route %q: %v, told %+v", route, err, told)
		}
		if left := list(t, b); left != nil {
			t.Errorf("route %q: it came back: %v", route, left)
		}
		if held, err := b.Holds(t.Context(), record("a", 20), "r"); held || err != nil {
			t.Errorf("route %q: its item is held: %v, %v", route, held, err)
		}
	}
}

// A record that fails anew while its entry is run and fails keeps the new failure.
func TestFailedAnewWhileItIsRedriven(t *testing.T) {
	b := NewBox(state.NewMemory(), "app")
	rec := record("a", 10)
	id := park(t, b, rec, "r")
	m := router.New()
	m.Handle("*#*", func(ctx context.Context, _ *sluice.Record) error {
		f := failure("r")
		f.Last = errors.New("failed anew")
		return errors.Join(errors.New("still down"), b.Park(ctx, rec, f))
	}, router.Name("r"), router.Redrive())
	if err := b.Redrive(t.Context(), m, id, How{}); err == nil || !strings.Contains(err.Error(), "meanwhile") {
		t.Error(err)
	}
	if e, err := b.Get(t.Context(), id); err != nil || e.Last.Error != "failed anew" {
		t.Errorf("%+v, %v", e.Last, err)
	}
}
