package flow

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/localtest"
)

// The window's bits against a plain list.
func TestWindowAgainstAList(t *testing.T) {
	if localtest.Elsewhere(t) {
		return
	}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		o := Options{Window: 1 + rng.IntN(3000), MaxAhead: 1 + rng.IntN(5000)}.withDefaults()
		w := newWindow(o)
		settled := []bool{true} // ordinal 0
		var open []uint64
		for range 20_000 {
			if rng.IntN(2) == 0 && w.fits(1) {
				open = append(open, w.add(1))
				settled = append(settled, false)
			} else if len(open) > 0 {
				i := rng.IntN(len(open)) // the lowest is left behind at times
				if seed%2 == 0 && i == 0 && rng.IntN(100) > 0 {
					continue
				}
				ord := open[i]
				open[i] = open[len(open)-1]
				open = open[:len(open)-1]
				before := w.low
				moved := w.settle(ord, 1, false)
				settled[ord] = true
				low := before
				for int(low+1) < len(settled) && settled[low+1] {
					low++
				}
				if w.low != low || moved != (low > before) {
					t.Fatalf("seed %d: watermark %d (moved %v), want %d", seed, w.low, moved, low)
				}
			}
			if w.records != len(open) || w.bytes != int64(len(open)) {
				t.Fatalf("seed %d: %d records of %d bytes, want %d", seed, w.records, w.bytes, len(open))
			}
			if ahead := int(w.high-w.low) - len(open); len(open) > o.Window || ahead > o.MaxAhead {
				t.Fatalf("seed %d: %d unsettled, %d ahead", seed, len(open), ahead)
			}
			if rng.IntN(1000) == 0 {
				slices.Sort(open)
				most := rng.IntN(100)
				want, to := open, w.high
				if len(open) > most {
					want, to = open[:most], open[most]-1
				}
				if got, submitted := w.unsettled(most); !slices.Equal(got, want) || submitted != to {
					t.Fatalf("seed %d: of %d unsettled records up to %d: %v up to %d, want %v up to %d", seed, most, w.high, got, submitted, want, to)
				}
			}
		}
	}
}

func TestSubmitBlocksWhileTheWindowIsFull(t *testing.T) {
	big := func(n int) sluice.Record {
		r := rec(fmt.Sprint("big", n), n)
		r.SizeBytes = 1000
		return r
	}
	for name, c := range map[string]struct {
		o    Options
		recs []sluice.Record
		want []uint64 // taken after 0 s, 1 s, … when one record takes a second
	}{
		"records":                 {Options{Window: 2}, many("x", 5), []uint64{2, 4, 5}},
		"bytes":                   {Options{WindowBytes: 250}, many("x", 5), []uint64{2, 4, 5}},
		"one record fits":         {Options{WindowBytes: 500}, []sluice.Record{big(1), big(2)}, []uint64{1, 2}},
		"a big one waits":         {Options{WindowBytes: 1000}, []sluice.Record{rec("x", 1), big(2), rec("y", 3)}, []uint64{1, 2, 3}},
		"ahead of the first":      {Options{MaxAhead: 2}, many("x", 5), []uint64{3, 5}},
		"one lane takes turns":    {Options{Window: 2}, recs("x", "x", "x"), []uint64{2, 3}},
		"everything fits at once": {Options{}, many("x", 500), []uint64{500}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.o.Logger = quiet
				f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
					time.Sleep(time.Second)
					return nil
				}), c.o)
				go mustSubmit(t, f, c.recs...)
				time.Sleep(time.Millisecond)
				for i, want := range c.want {
					f.mu.Lock()
					got := f.window.high
					f.mu.Unlock()
					if got != want {
						t.Errorf("%d taken after %d s, want %d", got, i, want)
					}
					time.Sleep(time.Second)
				}
				mustClose(t, f, uint64(len(c.recs)))
			})
		})
	}
}

// Full names the budget that Submit waits for, and since when.
func TestFullNamesTheBudget(t *testing.T) {
	for want, o := range map[string]Options{
		"the 2 records of Window are not settled":                            {Window: 2},
		"the 250 bytes of WindowBytes are taken":                             {WindowBytes: 250},
		"more records than the 2 of MaxAhead follow":                         {MaxAhead: 2},
		"1 records that failed, or wait behind one that did, take more than": {HeldBytes: 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			o.Logger = quiet
			block := make(chan struct{})
			f := Open(t.Context(), routes(func(_ context.Context, r *sluice.Record) error {
				select {
				case <-block:
					return nil
				default:
				}
				if o.HeldBytes > 0 && nth(r) == 1 {
					return errDown
				}
				<-block
				return nil
			}), o)
			if why, since := f.Full(); why != "" || !since.IsZero() {
				t.Errorf("empty, and full: %q", why)
			}
			mustSubmit(t, f, rec("x", 1))
			synctest.Wait()
			began := time.Now()
			go mustSubmit(t, f, many("y", 5)...)
			time.Sleep(time.Second)
			if why, since := f.Full(); !strings.HasPrefix(why, want) || !since.Equal(began) {
				t.Errorf("full since %v: %q, want since %v: %q", since, why, began, want)
			}
			close(block)
			time.Sleep(time.Minute)
			mustClose(t, f, 6)
			if why, since := f.Full(); why != "" || !since.IsZero() {
				t.Errorf("closed, and full: %q", why)
			}
		})
	}
}

// One held item lets the rest of the shard go on, far beyond the window.
func TestOneHeldItemLetsTheOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r) == "slow" {
				<-release
			}
			return nil
		}), Options{Logger: quiet, Window: 10, MaxAhead: 5000})
		mustSubmit(t, f, rec("slow", 1))
		mustSubmit(t, f, many("x", 4000)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		last, err := f.Submit(ctx, many("y", 4000)...)
		if last != 5001 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Submit = %d, %v: want 5000 past the first", last, err)
		}
		if f.Settled() != 0 {
			t.Errorf("settled %d", f.Settled())
		}
		<-time.After(time.Second)
		close(release)
		mustClose(t, f, 5001)
	})
}

// A few places are given out at once when there is nothing else to run.
func TestSubmitIsWokenForOnePlaceWhenAllElseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r)[0] == 's' {
				time.Sleep(time.Hour)
			}
			return nil
		}), Options{Logger: quiet, Window: 16})
		mustSubmit(t, f, many("slow", 15)...)
		start := time.Now()
		mustSubmit(t, f, many("x", 30)...)
		if took := time.Since(start); took != 0 {
			t.Errorf("Submit took %v", took)
		}
		mustClose(t, f, 45)
	})
}

func TestSubmitWithACancelledContextTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(ok), Options{Logger: quiet})
		mustSubmit(t, f, recs("x", "y")...)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errDown)
		if last, err := f.Submit(ctx, rec("z", 3)); last != 2 || !errors.Is(err, errDown) {
			t.Errorf("Submit = %d, %v", last, err)
		}
		mustClose(t, f, 2)
	})
}

func TestChangedTellsThatSettledHasGrown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			time.Sleep(time.Second)
			return nil
		}), Options{Logger: quiet})
		mustSubmit(t, f, recs("x", "x", "x")...)
		for want := uint64(1); want <= 3; want++ {
			<-f.Changed()
			if n := f.Settled(); n != want {
				t.Errorf("settled %d, want %d", n, want)
			}
		}
		mustClose(t, f, 3)
	})
}

// Records whose keys cannot be read are in nobody's lane.
func TestUnreadableKeysHaveALaneOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d := slowLetters{}
		f := Open(t.Context(), routes(ok), Options{Logger: quiet, DeadLetter: d})
		mustSubmit(t, f, *sluice.DecodeRecord([]byte("{")), *sluice.DecodeRecord([]byte("{")), rec("x", 3))
		mustClose(t, f, 3)
		if took := time.Since(start); took != time.Hour {
			t.Errorf("took %v: they waited for one another", took)
		}
	})
}

func TestOptions(t *testing.T) {
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("the zero value is not valid: %v", err)
	}
	for want, o := range map[string]Options{
		"flow: Options.Concurrency is -1: must be 0 (the default) or more":            {Concurrency: -1},
		"flow: Options.Window is -1: must be 0 (the default) or more":                 {Window: -1},
		"flow: Options.WindowBytes is -1: must be 0 (the default) or more":            {WindowBytes: -1},
		"flow: Options.MaxAhead is -1: must be 0 (the default) or more":               {MaxAhead: -1},
		"flow: Options.MaxAge is -1s: must be 0 (the default) or more":                {MaxAge: -time.Second},
		"flow: Options.Margin is -1s: must be 0 (the default) or more":                {Margin: -time.Second},
		"flow: Options.StuckAfter is -1s: must be 0 (the default) or more":            {StuckAfter: -time.Second},
		"flow: Options.Order is 9: must be ByItem or ByShard":                         {Order: 9},
		"flow: Options.Policy is 9: must be Park or Stop":                             {Policy: 9},
		"flow: Options.StuckAfter is 100ns: must be 0 (the default) or 1 ms at least": {StuckAfter: 100},
	} {
		if err := o.Validate(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Open took what %s", want)
				}
			}()
			Open(t.Context(), routes(ok), o)
		}()
	}
}
