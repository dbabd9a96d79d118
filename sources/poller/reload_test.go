package poller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/state"
	"github.com/sluicehq/sluice/streamtest"
)

// A handover keeps the claims of the streams that are read on, and of no other.
func TestHandOverKeepsClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := streamtest.NewService(t)
		store := state.NewMemory()
		handled := 0
		h := func(context.Context, *sluice.Record) error { handled++; return nil }
		run := func(owner string, tables ...string) (p *Poller, end func(error)) {
			o := testOptions(store, tables...)
			o.Owner = owner
			p, err := New(svc.Config(), matcher(h), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() { done <- p.Run(ctx) }()
			time.Sleep(5 * time.Second)
			return p, func(cause error) {
				stop(cause)
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		}
		a := svc.CreateTable("table-a", streamtest.TableOptions{PartitionKey: "id"})
		b := svc.CreateTable("table-b", streamtest.TableOptions{PartitionKey: "id"})
		owners := func() (all [2]string) {
			for i, arn := range []string{a.StreamARN(), b.StreamARN()} {
				shards, err := store.Shards(t.Context(), state.Stream{Application: "sluice", ARN: arn})
				if err != nil || len(shards) != 1 {
					t.Fatalf("%v, %v", shards, err)
				}
				all[i] = shards[0].Owner
			}
			return all
		}
		p, end := run("me", "table-a", "table-b")
		a.Put(map[string]any{"id": "1"})
		time.Sleep(5 * time.Second)
		end(&HandOver{Streams: []Stream{{Table: "table-a"}, {Table: "table-c"}}})
		if got := owners(); got != [2]string{"me", ""} {
			t.Errorf("the claims are of %q", got)
		}
		a.Put(map[string]any{"id": "2"})
		_, end = run(p.Owner(), "table-a")
		if handled != 2 {
			t.Errorf("%d calls, want one for each record", handled)
		}
		end(nil)
		if got := owners(); got != [2]string{"", ""} {
			t.Errorf("after a stop the claims are of %q", got)
		}
	})
}

// What Prepare refuses, it refuses without a trace.
func TestPrepareStoresNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := streamtest.NewService(t)
		svc.CreateTable("table-a", streamtest.TableOptions{PartitionKey: "id"})
		store := state.NewMemory()
		for _, tt := range []struct {
			start, table string
			want         error
		}{{"", "table-a", state.ErrNoStart}, {TrimHorizon, "none", nil}} {
			o := testOptions(store, tt.table)
			o.Start = tt.start
			p, err := New(svc.Config(), matcher(func(context.Context, *sluice.Record) error { return nil }), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Prepare(t.Context()); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("table %q, start %q: %v", tt.table, tt.start, err)
			}
		}
		if all, err := store.Streams(t.Context(), "sluice"); err != nil || len(all) > 0 {
			t.Errorf("stored: %v, %v", all, err)
		}
	})
}
