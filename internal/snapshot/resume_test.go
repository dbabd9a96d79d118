package snapshot

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
)

// half runs a backfill until about half of the items are handled.
func half(t *testing.T, st *stub, o Options) (handled int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var got seen
	s := newSource(t, st, routed(func(ctx context.Context, rec *sluice.Record) error {
		if n, _ := got.count(); n > len(st.items)/2 {
			stop()
			<-ctx.Done() // as long as it may
			return ctx.Err()
		}
		time.Sleep(100 * time.Millisecond)
		got.add(rec)
		return nil
	}), o)
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if s.Progress().Finished {
		t.Fatal("finished before it was stopped")
	}
	handled, _ = got.count()
	return handled
}

// Settled items do not come again, unless the backfill is another one. The log says
// which.
func TestResume(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Options, *stub, Store)
		anew   string // what the log says about why
	}{
		"as it was":         {func(*Options, *stub, Store) {}, ""},
		"default segments":  {func(o *Options, _ *stub, _ Store) { o.Scan.Segments = 0 }, ""},
		"asked for again":   {func(o *Options, _ *stub, _ Store) { o.Again = true }, ""},
		"another pace":      {func(o *Options, _ *stub, _ Store) { o.Scan.ReadUnits, o.Scan.PageItems = 500, 3 }, ""},
		"other segments":    {func(o *Options, _ *stub, _ Store) { o.Scan.Segments = 2 }, "it had 3 segments, not 2"},
		"consistency":       {func(o *Options, _ *stub, _ Store) { o.Scan.Eventual = true }, "its consistency is another"},
		"a recreated table": {func(_ *Options, st *stub, _ Store) { st.id = "id-2" }, "was deleted and created again"},
		"created otherwise": {func(_ *Options, st *stub, _ Store) { st.created++ }, "was deleted and created again"},
		"another backfill":  {func(o *Options, _ *stub, _ Store) { o.Name = "other" }, "-"},
		"unreadable": {func(_ *Options, _ *stub, s Store) {
			_ = s.PutValue(context.Background(), "sluice", "backfill//"+tableARN, []byte("?"))
		}, "-"},
		"another table's": {func(_ *Options, st *stub, _ Store) { st.count = 0 }, ""},
		"other application's": {func(o *Options, _ *stub, s Store) {
			o.Application = "b"
			_, _ = s.Start(context.Background(), state.Stream{Application: "b", ARN: tableARN + "/stream/" + label}, state.Start{Position: "TRIM_HORIZON"})
		}, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, store := newStub(90), started(t)
				st.pageSize = 4
				o := testOptions(store)
				o.Scan.Segments, o.Flow.Concurrency = 3, 1
				before := half(t, st, o)

				var log bytes.Buffer
				o.Scan.Logger = slog.New(slog.NewTextHandler(&log, nil))
				test.change(&o, st, store)
				var got seen
				s := run(t, st, routed(into(&got)), o)
				calls, _ := got.count()
				// In each segment, items settled after the last whole page come again.
				if again := calls + before - 90; test.anew == "" && (again < 0 || again > 3*st.pageSize) {
					t.Errorf("%d handled before, %d after, of 90", before, calls)
				} else if test.anew != "" && calls != 90 {
					t.Errorf("%d handled when it began anew", calls)
				}
				text := log.String()
				if goesOn := strings.Contains(text, "the backfill goes on"); goesOn != (test.anew == "") {
					t.Errorf("the log says\n%s", text)
				}
				if len(test.anew) > 1 && !strings.Contains(text, test.anew) {
					t.Errorf("the log does not say %q:\n%s", test.anew, text)
				}
				if p := s.Progress(); p.Items != 90 || p.Settled != 90 {
					t.Errorf("%+v", p)
				}
			})
		})
	}
}

// A table is deleted and created again during the scan. The scan may miss new items
// before its current key.
func TestRecreatedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, store := newStub(50), started(t)
		var got seen
		h := func(_ context.Context, rec *sluice.Record) error {
			st.mu.Lock()
			st.id = "id-2"
			st.mu.Unlock()
			got.add(rec)
			return nil
		}
		err := newSource(t, st, routed(h), testOptions(store)).Run(t.Context())
		if !errors.Is(err, ErrRecreated) || !strings.Contains(err.Error(), "Read it again") {
			t.Errorf("%v", err)
		}
		run(t, st, routed(h), testOptions(store))
		if _, calls := got.count(); calls != 100 {
			t.Errorf("%d calls", calls)
		}
		for _, err := range Scan(t.Context(), st.config(), tableName, ScanOptions{Logger: quiet()}) {
			st.mu.Lock()
			st.created++
			st.mu.Unlock()
			if err != nil && !errors.Is(err, ErrRecreated) {
				t.Error(err)
			}
		}
	})
}

// A progress that a newer program wrote is left alone.
func TestNewerProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, store := newStub(5), started(t)
		name := "backfill//" + tableARN
		if err := store.PutValue(t.Context(), "sluice", name, []byte(`{"version":2}`)); err != nil {
			t.Fatal(err)
		}
		var got seen
		err := newSource(t, st, routed(into(&got)), testOptions(store)).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "version 2, written by a newer program") {
			t.Errorf("%v", err)
		}
		if data, _, _ := store.GetValue(t.Context(), "sluice", name); string(data) != `{"version":2}` || len(got.calls) > 0 {
			t.Errorf("it is %s now; %d calls", data, len(got.calls))
		}
	})
}

// The stream's position comes first.
func TestStreamFirst(t *testing.T) {
	stream := tableARN + "/stream/" + label
	for name, test := range map[string]struct {
		stored  string // ARN of a stream with a start
		without bool
		stream  string
		want    string
	}{
		"its start is stored":          {stored: stream, stream: label},
		"that of an earlier stream is": {stored: tableARN + "/stream/2025-01-01T00:00:00.000", stream: label},
		"nothing is stored":            {stream: label, want: "for the application"},
		"another table's is":           {stored: strings.Replace(stream, "/orders/", "/orders2/", 1), stream: label, want: "for the application"},
		"there is none":                {stored: stream, want: "the table has no stream"},
		"there need be none":           {without: true},
		"it need not be read":          {without: true, stream: label},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, store := newStub(12), state.NewMemory()
				st.stream = test.stream
				if test.stored != "" {
					begin(t, store, test.stored)
				}
				o := testOptions(store)
				o.WithoutStream = test.without
				var got seen
				err := newSource(t, st, routed(into(&got)), o).Run(t.Context())
				if test.want == "" {
					if err != nil || got.all(t, st) != 12 {
						t.Errorf("%v, %d items", err, len(got.calls))
					}
					return
				}
				if !errors.Is(err, ErrNoStream) || !strings.Contains(err.Error(), test.want) || len(got.calls) > 0 || len(st.scans()) > 0 {
					t.Errorf("%v, %d items", err, len(got.calls))
				}
				if left, _ := store.ListValues(t.Context(), "sluice", ""); left != nil {
					t.Errorf("stored: %v", left)
				}
			})
		})
	}
}
