package flow

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/item"
)

// sheet is a page that keeps account of what it gets back. With the first of
// that the page itself is gone, so it overwrites the page: who still reads it
// is found out.
type sheet struct {
	Page
	t    *testing.T
	raw  [][]byte
	mu   sync.Mutex
	free int64
}

// paged puts copies of rs on a page of bytes bytes.
func paged(t *testing.T, bytes int64, rs ...sluice.Record) *sheet {
	s := &sheet{t: t}
	s.Page = Page{Bytes: bytes, Freed: s.freed, Records: make([]sluice.Record, len(rs))}
	for i, r := range rs {
		raw := append([]byte{}, r.Keys.Raw()...)
		if len(raw) > 0 {
			it, err := item.Parse(raw)
			if err != nil {
				panic(err)
			}
			r.Keys = it
		}
		s.raw, s.Records[i] = append(s.raw, raw), r
	}
	return s
}

func (s *sheet) freed(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n <= 0 || s.free+n > s.Bytes {
		s.t.Errorf("%d bytes are given back after %d of %d", n, s.free, s.Bytes)
	}
	if s.free == 0 {
		for i, raw := range s.raw {
			clear(raw)
			s.Records[i] = sluice.Record{EventID: "overwritten"}
		}
	}
	s.free += n
}

func (s *sheet) kept() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Bytes - s.free
}

// A page is given back as its records settle; a few that are held are copied
// out of it, more of them keep it.
func TestPagesAreGivenBack(t *testing.T) {
	const bytes = 100_000
	one := copyWeight(&[]sluice.Record{rec("x", 1)}[0]) // all keys here are as long
	for name, c := range map[string]struct {
		held, behind int   // of 100 items; records behind each of them, on a page of their own
		slow         bool  // a handler that takes long, in place of a retry
		bytes        int64 // of the first page
		want         int64 // kept while they are held
	}{
		"all settled":                     {bytes: bytes},
		"two held":                        {held: 2, bytes: bytes, want: 2 * one},
		"most held":                       {held: 90, bytes: bytes, want: bytes},
		"a page so small that all is one": {held: 1, bytes: one, want: one},
		"a slow one":                      {held: 1, slow: true, bytes: bytes, want: bytes},
		"records behind a held one":       {held: 2, behind: 5, bytes: bytes, want: 12 * one},
		"records behind a slow one":       {held: 1, behind: 5, slow: true, bytes: bytes, want: bytes + 5*one},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var open atomic.Bool
				h := func(_ context.Context, r *sluice.Record) error {
					switch key := keyOf(r); {
					case key == "" || key[0] != 'h' || open.Load():
					case c.slow:
						<-release
					default:
						return sluice.RetryAfter(time.Hour, errDown)
					}
					return nil
				}
				f := Open(t.Context(), routes(h), Options{Logger: quiet})
				var first, second []sluice.Record
				for i := range 100 {
					key := "s"
					if i < c.held {
						key = "h"
						for n := range c.behind {
							second = append(second, rec(fmt.Sprintf("%s%d", key, i), 1000+n))
						}
					}
					first = append(first, rec(fmt.Sprintf("%s%d", key, i), i+1))
				}
				pages := []*sheet{paged(t, c.bytes, first...), paged(t, bytes, append(second, rec("s", 5000))...)}
				for _, p := range pages {
					if _, err := f.SubmitPage(t.Context(), p.Page); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(30 * time.Second)
				got := pages[0].kept() + pages[1].kept()
				if math.Abs(float64(got-c.want)) > float64(c.want)/50 {
					t.Errorf("%d bytes are kept, want about %d", got, c.want)
				}
				open.Store(true)
				close(release)
				mustClose(t, f, uint64(len(first)+len(second)+1))
				if n := pages[0].kept() + pages[1].kept(); n != 0 {
					t.Errorf("%d bytes are kept after Close", n)
				}
			})
		})
	}
}

// One that is in a handler when its page is needed for nothing else is copied
// when it comes back.
func TestHeldRecordsAreCopiedWhenNoHandlerHasThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		f := Open(t.Context(), routes(func(_ context.Context, r *sluice.Record) error {
			switch keyOf(r) {
			case "held":
				if calls++; calls == 2 {
					time.Sleep(time.Minute)
				}
				return sluice.RetryAfter(time.Duration(calls)*time.Second, errDown)
			case "held too":
				return sluice.RetryAfter(time.Hour, errDown)
			case "slow":
				time.Sleep(10 * time.Second)
			}
			return nil
		}), Options{Logger: quiet})
		p := paged(t, 10_000, recs("held", "held too", "slow")...)
		if _, err := f.SubmitPage(t.Context(), p.Page); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if n := p.kept(); n != 10_000 {
			t.Errorf("%d bytes are kept while a handler has a record of the page", n)
		}
		time.Sleep(31500 * time.Millisecond)
		if n := p.kept(); n > 2000 {
			t.Errorf("%d bytes are kept when no handler has", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		f.Close(ctx)
		if n := p.kept(); n != 0 {
			t.Errorf("%d bytes are kept after Close", n)
		}
	})
}

// What Close leaves is given back at once, but for what a handler still has.
func TestCloseGivesBackWhatIsUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := Open(t.Context(), routes(func(_ context.Context, r *sluice.Record) error {
			switch keyOf(r) {
			case "stuck":
				<-release
			case "held":
				return errDown
			}
			return nil
		}), Options{Logger: quiet, Window: 7})
		pages := []*sheet{paged(t, 10_000, recs("stuck", "x", "stuck")...), paged(t, 10_000, recs("held", "y", "held")...),
			paged(t, 10_000, recs("stuck", "stuck", "stuck", "stuck", "stuck", "stuck")...)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for i, p := range pages {
			if _, err := f.SubmitPage(ctx, p.Page); (err != nil) != (i == 2) {
				t.Error(err)
			}
		}
		f.Close(ctx)
		for i, want := range []int64{10_000, 0, 0} {
			if n := pages[i].kept(); n != want {
				t.Errorf("page %d keeps %d bytes after Close, want %d", i, n, want)
			}
		}
		if len(f.lanes.last) != 0 || len(f.held) != 0 {
			t.Error("a flow that is kept by a stuck handler keeps its records")
		}
		close(release)
		<-f.Idle()
		synctest.Wait()
		if n := pages[0].kept(); n != 0 {
			t.Errorf("%d bytes are kept when the handler has returned", n)
		}
		late := paged(t, 10_000, recs("x")...)
		if _, err := f.SubmitPage(t.Context(), late.Page); err == nil || late.kept() != 0 {
			t.Errorf("a closed flow keeps %d bytes of a page: %v", late.kept(), err)
		}
		none := paged(t, 10_000)
		if _, err := f.SubmitPage(t.Context(), none.Page); err != nil || none.kept() != 0 {
			t.Errorf("%d bytes of a page without records are kept: %v", none.kept(), err)
		}
	})
}

// After a crowd a quiet flow is as small as a new one.
func TestAQuietFlowShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Open(t.Context(), routes(func(context.Context, *sluice.Record) error {
			time.Sleep(time.Second)
			return nil
		}), Options{Logger: quiet})
		for range 3 {
			mustSubmit(t, f, many("x", 4000)...)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			f.mu.Lock()
			if f.lanes.free != nil || len(f.window.done) != firstBits/64 || cap(f.all)+cap(f.free) > 0 {
				t.Errorf("%d words, %d and %d places for workers are left", len(f.window.done), cap(f.all), cap(f.free))
			}
			f.mu.Unlock()
		}
		mustClose(t, f, 12_000)
	})
}
