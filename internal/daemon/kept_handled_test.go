package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/flow"
	"github.com/sluicehq/sluice/router"
	"github.com/sluicehq/sluice/sources/poller"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// settledAtDelete notes how far the flow is settled when a letter is deleted.
type settledAtDelete struct {
	state.Letters
	flow *flow.Flow
	at   []uint64
}

func (s *settledAtDelete) DeleteLetter(ctx context.Context, app, id string) error {
	s.at = append(s.at, s.flow.Settled())
	return s.Letters.DeleteLetter(ctx, app, id)
}

// A record is parked, the process ends before it has stored its position, and
// the record succeeds when it comes again. Its letter goes before the position
// may be stored, and a redrive runs nothing over the changes that came since.
func TestNoLetterOfWhatSucceedsAfterARestart(t *testing.T) {
	for _, parkItem := range []bool{false, true} {
		t.Run(fmt.Sprint("park item ", parkItem), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &settledAtDelete{Letters: state.NewMemory()}
				first := streamtest.Insert("orders", map[string]any{"pk": "a", "v": 1})
				second := streamtest.Modify("orders", map[string]any{"pk": "a", "v": 1}, map[string]any{"pk": "a", "v": 2})
				fails := true
				var ran []string
				m := router.New()
				m.Handle("*#*", func(_ context.Context, rec *sluice.Record) error {
					if fails {
						return sluice.Permanent(errors.New("not yet"))
					}
					v, _ := rec.New.Lookup("v")
					text, _ := v.AppendText(nil)
					ran = append(ran, string(text)+" "+rec.Origin.String())
					return nil
				}, router.Name("r"), router.Redrive())
				process := func(recs ...sluice.Record) *deadletter.Box {
					k := &kept{Box: deadletter.NewBox(store, "app"), logger: slog.New(slog.DiscardHandler)}
					o := flow.Options{DeadLetter: k, ParkItem: parkItem, Logger: k.logger}
					o.Hooks.Handled = k.handled
					f := flow.Open(t.Context(), m, o)
					store.flow = f
					for i := range recs {
						if _, err := f.SubmitPage(t.Context(), flow.Page{Records: recs[i : i+1 : i+1]}); err != nil {
							t.Fatal(err)
						}
					}
					synctest.Wait()
					if _, err := f.Close(t.Context()); err != nil {
						t.Error(err)
					}
					return k.Box
				}
				letters := func(b *deadletter.Box) int {
					all, _, err := b.List(t.Context(), "", 10)
					if err != nil {
						t.Error(err)
					}
					return len(all)
				}
				if n := letters(process(first)); n != 1 {
					t.Fatalf("%d letters, want 1", n)
				}
				fails = false
				b := process(first, second)
				if n := letters(b); n != 0 {
					t.Errorf("%d letters are left", n)
				}
				if fmt.Sprint(store.at) != "[0]" {
					t.Errorf("the letter was deleted when so many records were settled: %v; want 0", store.at)
				}
				if report, err := b.RedriveAll(t.Context(), m, deadletter.Filter{}, deadletter.How{}); report.Done != 0 || err != nil {
					t.Errorf("a redrive did %+v, %v", report, err)
				}
				if got := fmt.Sprint(ran); got != "[1 live 2 live]" {
					t.Errorf("ran %s", got)
				}
			})
		})
	}
}

// claims says which shards nobody had before.
type claims map[state.Stream]string

func (c claims) FirstClaim(s state.Stream, shardID string) bool { return c[s] == shardID }

// The hook of a started shard has the box look for letters of its earlier owner, unless
// there was none.
func TestStartedShardIsAdopted(t *testing.T) {
	store := state.NewMemory()
	mine, theirs := &kept{Box: deadletter.NewBox(store, "app")}, deadletter.NewBox(store, "app")
	before, rec := streamtest.Insert("orders", map[string]any{"pk": "a"}), streamtest.Insert("orders", map[string]any{"pk": "b"})
	started := 0
	hooks := mine.adopted(poller.Hooks{ShardStarted: func(poller.Shard, sluice.Sequence) { started++ }},
		claims{{Application: "app", ARN: rec.StreamARN}: "fresh"})
	if err := mine.Handled(t.Context(), &before, "r"); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Park(t.Context(), &rec, sluice.Failure{Route: "r", Attempts: 1}); err != nil {
		t.Fatal(err)
	}
	for i, shard := range []string{"fresh", "taken over"} {
		rec.ShardID = shard
		hooks.ShardStarted(poller.Shard{StreamARN: rec.StreamARN, ID: shard}, "")
		if err := mine.Handled(t.Context(), &rec, "r"); err != nil {
			t.Fatal(err)
		}
		letters, err := store.ListLetters(t.Context(), "app", "", 10)
		if err != nil || len(letters) != 1-i || started != 1+i {
			t.Errorf("%s: %d letters are left, %v; the metrics' hook ran %d times", shard, len(letters), err, started)
		}
	}
}
