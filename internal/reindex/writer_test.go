package reindex

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/effect/document"
)

func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		name    string
		view    view
		put     []string
		deletes []string
	}{
		{"no alias", view{}, []string{"products"}, []string{"products"}},
		{"alone", view{primary: []string{"p1"}}, []string{"p1"}, []string{"p1"}},
		{"preparing", view{primary: []string{"p1"}, deletes: []string{"p2"}}, []string{"p1"}, []string{"p1", "p2"}},
		{"both", view{primary: []string{"p1"}, also: []string{"p2"}}, []string{"p1", "p2"}, []string{"p1", "p2"}},
		{"several behind the alias", view{primary: []string{"p1", "p0"}, also: []string{"p2"}}, []string{"products", "p2"}, []string{"products", "p2"}},
		{"one twice", view{primary: []string{"p1"}, also: []string{"p2", "p1"}, deletes: []string{"p2"}}, []string{"p1", "p2"}, []string{"p1", "p2"}},
	} {
		if got := tt.view.targets("products", false); !slices.Equal(got, tt.put) {
			t.Errorf("%s: put to %q, want %q", tt.name, got, tt.put)
		}
		if got := tt.view.targets("products", true); !slices.Equal(got, tt.deletes) {
			t.Errorf("%s: delete from %q, want %q", tt.name, got, tt.deletes)
		}
	}
}

// One look-up serves all writes of a TTL. A failed look-up fails only its own write.
func TestWriterLooksUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		var fail atomic.Bool
		write := Writer{
			Write: func(context.Context, document.Op) error { return nil },
			Behind: func(_ context.Context, aliases ...string) (map[string][]string, error) {
				asked.Add(1)
				time.Sleep(time.Second)
				if want := []string{"products", "products.also", "products.deletes"}; !slices.Equal(aliases, want) {
					t.Errorf("asked for %q", aliases)
				}
				if fail.Swap(false) {
					return nil, errors.New("away")
				}
				return nil, nil
			},
		}.New()
		all := func() (failed int) {
			var wg sync.WaitGroup
			var mu sync.Mutex
			for range 100 {
				wg.Go(func() {
					if err := write(t.Context(), document.Op{Index: "products"}); err != nil {
						mu.Lock()
						failed++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			return failed
		}
		if n := all(); n != 0 || asked.Load() != 1 {
			t.Errorf("%d failed, asked %d times", n, asked.Load())
		}
		time.Sleep(8 * time.Second) // 9 since it was asked
		if n := all(); n != 0 || asked.Load() != 1 {
			t.Errorf("%d failed, asked %d times", n, asked.Load())
		}
		time.Sleep(time.Second)
		fail.Store(true)
		if n := all(); n != 1 || asked.Load() != 3 {
			t.Errorf("%d failed, asked %d times", n, asked.Load())
		}

		// A writer that waits for another's look-up can give up.
		time.Sleep(10 * time.Second)
		go write(t.Context(), document.Op{Index: "products"})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := write(ctx, document.Op{Index: "products"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Second)
	})
}

// Each index must have taken the write.
func TestWriterFails(t *testing.T) {
	for _, at := range []string{"p1", "p2"} {
		write := Writer{
			Write: func(_ context.Context, op document.Op) error {
				if op.Index == at {
					return errors.New("full")
				}
				return nil
			},
			Behind: func(context.Context, ...string) (map[string][]string, error) {
				return map[string][]string{"products": {"p1"}, "products.also": {"p2"}}, nil
			},
		}.New()
		if err := write(t.Context(), document.Op{Index: "products"}); err == nil {
			t.Errorf("%s failed, and the write did not", at)
		}
	}
}

// If one index refuses a document for good, for example by its new mapping, the other
// index still gets it. A rollback must find the writes of the meantime.
func TestWriterRefusedByOne(t *testing.T) {
	refusal, away := sluice.Permanent(errors.New("mapping")), errors.New("away")
	for _, tt := range []struct {
		one, two error
		want     error
		wrote    []string
	}{
		{refusal, nil, refusal, []string{"p1", "p2"}},
		{nil, refusal, refusal, []string{"p1", "p2"}},
		{refusal, away, away, []string{"p1", "p2"}},
		{away, nil, away, []string{"p1"}},
	} {
		var wrote []string
		write := Writer{
			Write: func(_ context.Context, op document.Op) error {
				wrote = append(wrote, op.Index)
				return map[string]error{"p1": tt.one, "p2": tt.two}[op.Index]
			},
			Behind: func(context.Context, ...string) (map[string][]string, error) {
				return map[string][]string{"products": {"p1"}, "products.also": {"p2"}}, nil
			},
		}.New()
		if err := write(t.Context(), document.Op{Index: "products"}); !errors.Is(err, tt.want) || !slices.Equal(wrote, tt.wrote) {
			t.Errorf("%v and %v: %v after writes to %q, want %v and %q", tt.one, tt.two, err, wrote, tt.want, tt.wrote)
		}
	}
}

// Tombstones are deletions, when somebody says so.
func TestWriterTombstones(t *testing.T) {
	var wrote []string
	write := Writer{
		Write: func(_ context.Context, op document.Op) error { wrote = append(wrote, op.ID+"@"+op.Index); return nil },
		Behind: func(context.Context, ...string) (map[string][]string, error) {
			return map[string][]string{"products": {"p1"}, "products.deletes": {"p2"}}, nil
		},
		Deletes: func(op document.Op) bool { return strings.Contains(string(op.Body), "deleted") },
	}.New()
	write(t.Context(), document.Op{Action: document.Put, Index: "products", ID: "a", Body: []byte(`{}`)})
	write(t.Context(), document.Op{Action: document.Put, Index: "products", ID: "b", Body: []byte(`{"deleted":true}`)})
	if want := []string{"a@p1", "b@p1", "b@p2"}; !slices.Equal(wrote, want) {
		t.Errorf("wrote %q, want %q", wrote, want)
	}
}

// Names that are made of data do not fill the memory.
func TestViewsAreBounded(t *testing.T) {
	v := &views{ttl: time.Hour, known: map[string]*view{}, asked: map[string]chan struct{}{},
		behind: func(context.Context, ...string) (map[string][]string, error) { return nil, nil }}
	for i := range 3 * maxViews {
		if _, err := v.of(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if len(v.known) > maxViews {
			t.Fatalf("%d views after %d names", len(v.known), i+1)
		}
	}
	if len(v.asked) != 0 {
		t.Errorf("%d calls in progress", len(v.asked))
	}
}

// A view ages by either clock: that of a machine that was suspended may have
// stood still, and the other one may have been set.
func TestYoung(t *testing.T) {
	for _, tt := range []struct {
		monotonic, wall time.Duration
		young           bool
	}{
		{0, 0, true}, {9, 9, true}, {10, 10, false}, {10, 1, false}, {1, 10, false}, {1, -1, false},
	} {
		if got := young(tt.monotonic, tt.wall, 10); got != tt.young {
			t.Errorf("%d by the monotonic clock, %d by the other: %v", tt.monotonic, tt.wall, got)
		}
	}
}
