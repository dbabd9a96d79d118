package lambda

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/recordtest"
	"github.com/sluicehq/sluice/router"
)

// stream is one shard's records behind an event source mapping: it invokes h
// with batches until all are done, and gives up after so many invocations.
type stream struct {
	records     []change
	next        int // the mapping's checkpoint
	invocations int
	oldest      []int // checkpoint before each invocation
}

func (s *stream) write(c change) {
	c.seq = len(s.records) + 6 // numbers grow longer with the tenth
	s.records = append(s.records, c)
}

// drain reports whether the stream was drained within limit invocations.
// redeliver now and then forgets an answer, as the service may.
func (s *stream) drain(ctx context.Context, h lambda.Handler, limit int, size, forget func() int) bool {
	for range limit {
		if s.next == len(s.records) {
			return true
		}
		s.oldest = append(s.oldest, s.next)
		batch := s.records[s.next:min(s.next+size(), len(s.records))]
		ids := make([]sluice.Sequence, len(batch))
		for i := range batch {
			ids[i] = recordtest.Sequence(batch[i].seq)
		}
		s.invocations++
		answer, err := h.Invoke(ctx, event(batch...))
		if forget() == 0 {
			continue
		}
		s.next += comesAgain(ids, answer, err != nil)
	}
	return s.next == len(s.records)
}

// Records fail, are repeated, or are forgotten. Every record is handled, and
// none before an earlier record of its item.
func TestStreamIsDrainedInOrder(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s stream
		for range 1 + rnd.IntN(60) {
			s.write(change{
				name: []string{"INSERT", "MODIFY", "REMOVE"}[rnd.IntN(3)],
				item: string(rune('a' + rnd.IntN(5))),
			})
		}
		var mu sync.Mutex
		done := map[sluice.Sequence]bool{}
		handle := func(_ context.Context, rec *sluice.Record) error {
			mu.Lock()
			defer mu.Unlock()
			for _, c := range s.records {
				seq := recordtest.Sequence(c.seq)
				if v, _ := rec.Keys.Lookup("pk"); c.item == v.Str() && seq.Compare(rec.Sequence) < 0 && !done[seq] {
					t.Errorf("seed %d: %s of item %s before %s", seed, rec.Sequence, c.item, seq)
				}
			}
			switch rnd.IntN(12) {
			case 0:
				return errBroken
			case 1:
				panic("now and then")
			case 2:
				return sluice.Permanent(errBroken)
			}
			done[rec.Sequence] = true
			return nil
		}
		r := router.New()
		r.Handle("search#*", handle)
		h := NewHandler(r, Options{Concurrency: 1 + rnd.IntN(4), Logger: quiet()})
		var draw sync.Mutex
		random := func(n int) func() int {
			return func() int {
				draw.Lock()
				defer draw.Unlock()
				mu.Lock()
				defer mu.Unlock()
				return rnd.IntN(n)
			}
		}
		size := random(20)
		if !s.drain(t.Context(), h, 10_000, func() int { return 1 + size() }, random(8)) {
			t.Fatalf("seed %d: not drained", seed)
		}
		if len(done) != len(s.records) {
			t.Errorf("seed %d: %d of %d records handled", seed, len(done), len(s.records))
		}
		if !slices.IsSorted(s.oldest) {
			t.Errorf("seed %d: the checkpoint went back: %v", seed, s.oldest)
		}
	}
}

// A handler may write to the table that it listens to. If its writes change nothing,
// the stream becomes idle. Otherwise records never end, and the hook counts them.
func TestHandlerWritesToItsOwnTable(t *testing.T) {
	for _, tt := range []struct {
		name       string
		idempotent bool
	}{{"idempotent", true}, {"not idempotent", false}} {
		t.Run(tt.name, func(t *testing.T) {
			var s stream
			records := 0
			count := map[string]string{} // item → attribute
			r := router.New()
			r.Handle("search#INSERT search#MODIFY", func(_ context.Context, rec *sluice.Record) error {
				v, _ := rec.Keys.Lookup("pk")
				stamp := "seen"
				if !tt.idempotent {
					stamp = "seen by " + string(rec.Sequence)
				}
				if count[v.Str()] != stamp { // the service writes no record when nothing changes
					count[v.Str()] = stamp
					s.write(change{name: "MODIFY", item: v.Str()})
				}
				return nil
			})
			h := NewHandler(r, Options{Concurrency: 1, Invoked: func(i Invocation) { records += i.Records }})
			s.write(change{item: "a"})
			s.write(change{item: "b"})
			size := func() int { return 100 }
			drained := s.drain(t.Context(), h, 16, size, func() int { return 1 })
			if drained != tt.idempotent {
				t.Errorf("drained %v after %d invocations", drained, s.invocations)
			}
			if tt.idempotent && records != 4 {
				t.Errorf("%d records told, want 4", records)
			}
			if !tt.idempotent && records <= 16 {
				t.Errorf("%d records told, want more than one a round", records)
			}
		})
	}
}

// An item that is replaced may arrive as REMOVE and INSERT.
func TestReplacedItemArrivesAsRemoveAndInsert(t *testing.T) {
	var seen recorder
	r := router.New()
	for _, name := range []string{"INSERT", "MODIFY", "REMOVE"} {
		r.Handle("search#"+name, func(_ context.Context, rec *sluice.Record) error {
			seen.add(name + " " + short(string(rec.Sequence)))
			return nil
		})
	}
	h := NewHandler(r, Options{})
	invoke(t, t.Context(), h, event(
		change{name: "INSERT", seq: 1}, change{name: "REMOVE", seq: 2}, change{name: "INSERT", seq: 3}, change{name: "MODIFY", seq: 4}))
	want := []string{"INSERT 1", "REMOVE 2", "INSERT 3", "MODIFY 4"}
	if got := seen.take(); !slices.Equal(got, want) {
		t.Errorf("handled %v, want %v", got, want)
	}
}

// A retried batch repeats the records from the answer on. All routes of a record run
// again, because no state outlives an invocation. Each route gets the same event id.
func TestRedeliveryHasTheSameIdentity(t *testing.T) {
	var seen recorder
	fail := true
	r := router.New()
	r.Handle("search#*", func(_ context.Context, rec *sluice.Record) error {
		seen.add("first " + rec.EventID + " " + rec.Sequence.Fence())
		return nil
	})
	r.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
		seen.add("second " + rec.EventID + " " + rec.Sequence.Fence())
		if fail {
			return errBroken
		}
		return nil
	})
	h := NewHandler(r, Options{Logger: quiet()})
	batch := event(change{seq: 17, id: "one"})
	if got := invoke(t, t.Context(), h, batch); got != failsFrom(17) {
		t.Errorf("answer %s", got)
	}
	fail = false
	if got := invoke(t, t.Context(), h, batch); got != allDone {
		t.Errorf("answer %s", got)
	}
	id := " one " + strings.Repeat("0", 12) + string(recordtest.Sequence(17))
	want := []string{"first" + id, "second" + id, "first" + id, "second" + id}
	if got := seen.take(); !slices.Equal(got, want) {
		t.Errorf("handled %q, want %q", got, want)
	}
}
