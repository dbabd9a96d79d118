package flow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/item"
)

var (
	errDown = errors.New("down")
	quiet   = slog.New(slog.NewTextHandler(io.Discard, nil))
)

// table is a Matcher: every record takes all routes, or those that pick says.
type table struct {
	routes []*sluice.Route
	pick   func(rec *sluice.Record) ([]int, error)
}

func (t *table) Routes() []*sluice.Route { return t.routes }

func (t *table) Match(dst []*sluice.Route, rec *sluice.Record) ([]*sluice.Route, error) {
	if t.pick == nil {
		return append(dst, t.routes...), nil
	}
	is, err := t.pick(rec)
	for _, i := range is {
		dst = append(dst, t.routes[i])
	}
	return dst, err
}

// routes makes a table of handlers named a, b, c…
func routes(hs ...sluice.Handler) *table {
	t := &table{}
	for i, h := range hs {
		t.routes = append(t.routes, &sluice.Route{Name: string(rune('a' + i)), Index: i, Handler: h})
	}
	return t
}

func ok(context.Context, *sluice.Record) error { return nil }

// rec is a change of item key; n counts its sequence number.
func rec(key string, n int) sluice.Record {
	it, err := item.Parse(fmt.Appendf(nil, `{"pk":{"S":%q}}`, key))
	if err != nil {
		panic(err)
	}
	return sluice.Record{
		EventName: sluice.Modify,
		Table:     "t",
		Sequence:  recordtest.Sequence(n),
		Keys:      it,
		SizeBytes: 100,
	}
}

// nth is the number that rec was given.
func nth(r *sluice.Record) int { return recordtest.Nth(r.Sequence) }

// recs makes one record for each key, numbered from 1.
func recs(keys ...string) (out []sluice.Record) {
	for i, k := range keys {
		out = append(out, rec(k, i+1))
	}
	return out
}

func keyOf(rec *sluice.Record) string {
	v, _ := rec.Keys.Lookup("pk")
	return v.Str()
}

// log collects what happened, safe for concurrent use.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *log) want(t *testing.T, want ...string) {
	t.Helper()
	if got := l.all(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func mustSubmit(t *testing.T, f *Flow, rs ...sluice.Record) {
	t.Helper()
	if _, err := f.Submit(t.Context(), rs...); err != nil {
		t.Errorf("Submit: %v", err)
	}
}

func mustClose(t *testing.T, f *Flow, want uint64) {
	t.Helper()
	n, err := f.Close(context.Background())
	if n != want || err != nil {
		t.Errorf("Close = %d, %v; want %d", n, err, want)
	}
}

func TestOrderWithinItemsAndConcurrencyAcrossPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l log
		start := time.Now()
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			if keyOf(r) == "slow" {
				time.Sleep(time.Second)
			} else {
				time.Sleep(10 * time.Millisecond)
			}
			l.add("%s %d %v", keyOf(r), nth(r), time.Since(start))
			return nil
		}), Options{Logger: quiet})
		mustSubmit(t, f, rec("slow", 1), rec("x", 2), rec("slow", 3))
		time.Sleep(100 * time.Millisecond)
		mustSubmit(t, f, rec("y", 4), rec("x", 5))
		time.Sleep(100 * time.Millisecond)
		if n := f.Settled(); n != 0 {
			t.Errorf("watermark %d passes the slow record", n)
		}
		time.Sleep(time.Second)
		if n := f.Settled(); n != 2 {
			t.Errorf("watermark %d, want 2", n)
		}
		mustClose(t, f, 5)
		got := l.all()
		slices.Sort(got[1:3])
		want := []string{"x 2 10ms", "x 5 110ms", "y 4 110ms", "slow 1 1s", "slow 3 2s"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := 3
		f := Open(t.Context(), routes(func(ctx context.Context, r *sluice.Record) error {
			if fails--; fails >= 0 {
				return errDown
			}
			return nil
		}), Options{Logger: quiet})
		mustSubmit(t, f, recs("x", "x")...)
		mustClose(t, f, 2)
	})
}
